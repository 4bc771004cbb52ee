// Which passes a call takes, and how the groups' parts become one. One of the files compiled once per instruction set.

constexpr Index kCachedBytes = Index{1} << 21;  // a table that is scattered into stays in a core's cache
constexpr Index kMostTables = 16;

// Groups that scatter into a table each; 0: two passes cost less.
template <typename T>
Index tables_for(const Pair<T>& pair) {
    const Index links = pair.row_side().num_links(), smaller = std::max<Index>(1, std::min(pair.rows, pair.columns));
    if (smaller * table_width<T>(pair.channels) * static_cast<Index>(sizeof(T)) > kCachedBytes) return 0;
    const Index groups = groups_for(links, pair.channels);
    const Index tables = std::min({kMostTables, links / (4 * smaller), groups});
    return groups == 1 ? 1 : tables >= 2 ? tables : 0;
}

// Forward scatters only where row by row would fetch the columns from memory again and again.
template <typename T>
bool scatters_forward(const Pair<T>& pair) {
    const Index bytes = pair.columns * pair.channels * static_cast<Index>(sizeof(T));
    return pair.rows < pair.columns && bytes > 4 * kCachedBytes && tables_for(pair) >= 2;
}

// What rows that began in an earlier group still have to get.
template <typename T>
void add_heads(const Side& side, Index groups, Index channels, const T* heads, const T* moments, T* out, T* out_q, T* out_mu) {
    for (Index group = 1; group < groups; ++group) {
        const Share share(side, group, groups);
        if (!share.has_head()) continue;
        const Index owner = share.first - 1;
        for (Index c = 0; c < channels; ++c) out[owner * channels + c] += heads[group * channels + c];
        if (out_q != nullptr) out_q[owner] += moments[2 * group], out_mu[owner] += moments[2 * group + 1];
    }
}

// The tables' sum, in the order of the groups.
template <typename T>
struct SumTables {
    const T* tables;
    Index groups, others, channels, stretch;
    T *out, *out_q, *out_mu;

    void operator()(Index part, int) const {
        using S = Simd<T>;
        const Index width = table_width<T>(channels);
        for (Index i = part * stretch; i < std::min(others, (part + 1) * stretch); ++i) {
            const T* row = tables + i * width;
            Index c = 0;
            for (; c + S::W <= channels; c += S::W) {
                auto total = S::load(row + c);
                for (Index g = 1; g < groups; ++g) total = S::add(total, S::load(row + g * others * width + c));
                S::store(out + i * channels + c, total);
            }
            for (; c < channels + 2; ++c) {
                T total = row[c];
                for (Index g = 1; g < groups; ++g) total += row[g * others * width + c];
                if (c < channels) out[i * channels + c] = total;
                else if (out_q != nullptr) (c == channels ? out_q : out_mu)[i] = total;
            }
        }
    }
};

template <typename T>
void sum_tables(const T* tables, Index groups, Index others, Index channels, Index threads, T* out, T* out_q, T* out_mu) {
    const Index stretch = 64;
    in_parallel((others + stretch - 1) / stretch, threads,
                SumTables<T>{tables, groups, others, channels, stretch, out, out_q, out_mu});
}

template <typename T>
struct PairForwardCall {
    const Pair<T>& pair;

    template <bool RELU, bool NORM, bool DROP>
    Status run() const {
        const Index channels = pair.channels, tables = scatters_forward(pair) ? tables_for(pair) : 0;
        const Index groups = tables > 0 ? tables : groups_for(pair.row_side().num_links(), channels);
        Workspace space;
        Shared<T> all;
        T *heads = nullptr, *table = nullptr;
        std::uint32_t* bits = nullptr;
        for (const bool ready : {false, true}) {
            if (ready && !space.reserve()) return kOutOfMemory;
            all = share_options<T>(space, pair, pair.bias, ready);
            heads = space.take<T>(groups * channels);
            table = space.take<T>(tables * pair.rows * table_width<T>(channels));
            bits = space.take<std::uint32_t>(DROP ? pair.threads * kBatch * blocks_of(channels) : 0);
        }
        if (tables > 0) {
            in_parallel(groups, pair.threads, PairScatter<T, RELU, NORM, DROP>{pair, all, groups, table, bits});
            sum_tables<T>(table, groups, pair.rows, channels, pair.threads, pair.out, nullptr, nullptr);
            return kDone;
        }
        in_parallel(groups, pair.threads, PairForward<T, RELU, NORM, DROP>{pair, all, groups, heads, bits});
        add_heads<T>(pair.row_side(), groups, channels, heads, nullptr, pair.out, nullptr, nullptr);
        return kDone;
    }
};

template <typename T>
struct PairBackwardCall {
    const Pair<T>& pair;

    template <bool RELU, bool NORM, bool DROP>
    Status run() const {
        const Index channels = pair.channels, links = pair.row_side().num_links(), tables = tables_for(pair);
        const Index groups = tables > 0 ? tables : groups_for(links, channels);
        const bool by_rows = tables == 0 || pair.rows > pair.columns;
        const Index others = by_rows ? pair.columns : pair.rows;
        Workspace space;
        Shared<T> all;
        T *heads = nullptr, *moments = nullptr, *sums = nullptr, *table = nullptr;
        Saved<T>* saved = nullptr;
        std::uint32_t* bits = nullptr;
        for (const bool ready : {false, true}) {
            if (ready && !space.reserve()) return kOutOfMemory;
            all = share_options<T>(space, pair, pair.bias, ready);
            heads = space.take<T>(groups * channels);
            moments = space.take<T>(groups * 2);
            sums = space.take<T>(groups * 3 * channels);
            table = space.take<T>(tables * others * table_width<T>(channels));
            saved = space.take<Saved<T>>(tables > 0 ? 0 : links);
            bits = space.take<std::uint32_t>(DROP ? pair.threads * kBatch * blocks_of(channels) : 0);
        }
        T* own = by_rows ? pair.grad_a : pair.grad_b;
        T* own_q = by_rows ? pair.grad_q_row : pair.grad_q_column;
        T* own_mu = by_rows ? pair.grad_mu_row : pair.grad_mu_column;
        if (tables > 0) {
            in_parallel(groups, pair.threads,
                        PairBackward<T, RELU, NORM, DROP, true>{pair, all, by_rows, groups, own, own_q, own_mu, heads,
                                                                moments, sums, table, saved, bits});
            sum_tables<T>(table, groups, others, channels, pair.threads, by_rows ? pair.grad_b : pair.grad_a,
                          by_rows ? pair.grad_q_column : pair.grad_q_row, by_rows ? pair.grad_mu_column : pair.grad_mu_row);
        } else {
            in_parallel(groups, pair.threads,
                        PairBackward<T, RELU, NORM, DROP, false>{pair, all, by_rows, groups, own, own_q, own_mu, heads,
                                                                 moments, sums, table, saved, bits});
        }
        const Side side = by_rows ? pair.row_side() : pair.column_side();
        add_heads(side, groups, channels, heads, moments, own, own_q, own_mu);
        T* vectors[] = {pair.grad_bias, pair.grad_norm_weight, pair.grad_norm_bias};
        for (int which = 0; which < 3; ++which) {
            for (Index c = 0; c < channels && vectors[which] != nullptr; ++c) {
                double total = 0;
                for (Index group = 0; group < groups; ++group) total += sums[(group * 3 + which) * channels + c];
                vectors[which][c] = static_cast<T>(total);
            }
        }
        if (tables > 0) return kDone;
        in_parallel(groups, pair.threads, PairColumns<T, RELU, NORM, DROP>{pair, all, groups, heads, moments, saved, bits});
        add_heads(pair.column_side(), groups, channels, heads, moments, pair.grad_b, pair.grad_q_column, pair.grad_mu_column);
        return kDone;
    }
};

template <typename T>
Status pair_backward(const Pair<T>& pair) {
    return with_options(PairBackwardCall<T>{pair}, pair.relu != 0, pair.norm_weight != nullptr, pair.dropout.threshold > 0);
}

template <typename T>
Status pair_forward(const Pair<T>& pair) {
    return with_options(PairForwardCall<T>{pair}, pair.relu != 0, pair.norm_weight != nullptr, pair.dropout.threshold > 0);
}
