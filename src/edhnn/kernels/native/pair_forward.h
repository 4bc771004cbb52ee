// Forward of `pair_sum`, row by row, or column by column with rows scattered into. One of the files compiled once per
// instruction set.

template <bool RELU, bool NORM, bool TAIL, typename T>
EDHNN_INLINE typename Simd<T>::V normalised(const Link<T>& link, typename Simd<T>::V bias, typename Simd<T>::V gamma,
                                            typename Simd<T>::V delta, Index c, int n) {
    using S = Simd<T>;
    typename S::V t;
    const auto u = message<RELU, TAIL>(link, bias, S::set(link.rho), c, n, t);
    return NORM ? S::fma(gamma, S::mul(S::sub(u, S::set(link.mean)), S::set(link.spread)), delta) : u;
}

template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE void add_messages(const Shared<T>& all, const Link<T>* links, int count, const std::uint32_t* bits, Index words,
                         bool first, Index c, int n, T* out) {
    using S = Simd<T>;
    const auto bias = at<TAIL>(all.bias + c, n);
    const auto gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero(), delta = NORM ? at<TAIL>(all.delta + c, n) : S::zero();
    auto total = first ? S::zero() : at<TAIL>(out + c, n);
    for (int l = 0; l < count; ++l) {
        auto s = normalised<RELU, NORM, TAIL>(links[l], bias, gamma, delta, c, n);
        if (DROP) s = S::keep(S::bits(bits + l * words, c), s);
        total = S::fma(S::set(links[l].weight), s, total);
    }
    put<TAIL>(out + c, total, n);
}

template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE void scatter_messages(const Shared<T>& all, const Link<T>* links, int count, const std::uint32_t* bits,
                                   Index words, Index c, int n, T* const* rows) {
    using S = Simd<T>;
    const auto bias = at<TAIL>(all.bias + c, n);
    const auto gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero(), delta = NORM ? at<TAIL>(all.delta + c, n) : S::zero();
    for (int l = 0; l < count; ++l) {
        auto s = normalised<RELU, NORM, TAIL>(links[l], bias, gamma, delta, c, n);
        if (DROP) s = S::keep(S::bits(bits + l * words, c), s);
        put<TAIL>(rows[l] + c, S::fma(S::set(links[l].weight), s, at<TAIL>(rows[l] + c, n)), n);
    }
}

// One link, ready for its channels to be run through.
template <bool RELU, bool NORM, bool DROP, typename T>
EDHNN_INLINE void prepare_message(const Pair<T>& pair, const Shared<T>& all, Index row, Index column, Index id, Link<T>& link,
                                  std::uint32_t* bits) {
    link.a = pair.a + row * all.channels, link.b = pair.b + column * all.channels;
    link.rho = pair.rho(row, column);
    link.weight = all.scale * pair.share(row) * (pair.weight != nullptr ? pair.weight[id] : T(1));
    if (DROP) draw_bits(all.patterns, key_of(all.seed, id), all.threshold, blocks_of(all.channels), bits);
    if (NORM) measure<RELU, DROP, false>(all, link, nullptr);
}

template <typename T, bool RELU, bool NORM, bool DROP>
struct PairForward {
    const Pair<T>& pair;
    const Shared<T>& all;
    Index groups;
    T* heads;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        const Side side = pair.row_side();
        const Share share(side, group, groups);
        std::uint32_t* mine = bits + thread * kBatch * blocks_of(all.channels);
        if (share.has_head()) row(side, share.first - 1, share.begin, share.head_end, mine, heads + group * all.channels);
        for (Index r = share.first; r < share.last; ++r)
            row(side, r, side.ptr[r], std::min(side.ptr[r + 1], share.end), mine, pair.out + r * all.channels);
    }

    void row(const Side& side, Index r, Index from, Index to, std::uint32_t* mine, T* out) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        if (from == to) std::fill(out, out + channels, T(0));
        for (Index k = from; k < to; k += kBatch) {
            Link<T> links[kBatch];
            const int count = static_cast<int>(std::min<Index>(kBatch, to - k));
            for (int l = 0; l < count; ++l) {
                const Index column = side.other[k + l], ahead = k + l + kAhead;
                if (ahead < pair.row_ptr[pair.rows]) prefetch(pair.b + side.other[ahead] * channels, channels * sizeof(T));
                prepare_message<RELU, NORM, DROP>(pair, all, r, column, side.id(k + l), links[l], mine + l * words);
            }
            for (Index c = 0; c < full; c += S::W)
                add_messages<RELU, NORM, DROP, false>(all, links, count, mine, words, k == from, c, S::W, out);
            if (rest > 0) add_messages<RELU, NORM, DROP, true>(all, links, count, mine, words, k == from, full, rest, out);
        }
    }
};

// The same for few rows and many columns: columns are read once, in order, and each group adds to its own table of rows.
template <typename T, bool RELU, bool NORM, bool DROP>
struct PairScatter {
    const Pair<T>& pair;
    const Shared<T>& all;
    Index groups;
    T* tables;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        const Side side = pair.column_side();
        const Share share(side, group, groups);
        const Index size = pair.rows * table_width<T>(all.channels);
        std::uint32_t* mine = bits + thread * kBatch * blocks_of(all.channels);
        T* table = tables + group * size;
        std::fill(table, table + size, T(0));
        if (share.has_head()) column(side, share.first - 1, share.begin, share.head_end, mine, table);
        for (Index s = share.first; s < share.last; ++s)
            column(side, s, side.ptr[s], std::min(side.ptr[s + 1], share.end), mine, table);
    }

    void column(const Side& side, Index s, Index from, Index to, std::uint32_t* mine, T* table) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        for (Index k = from; k < to; k += kBatch) {
            Link<T> links[kBatch];
            T* rows[kBatch];
            const int count = static_cast<int>(std::min<Index>(kBatch, to - k));
            for (int l = 0; l < count; ++l) {
                const Index row = side.other[k + l];
                rows[l] = table + row * table_width<T>(channels);
                prepare_message<RELU, NORM, DROP>(pair, all, row, s, side.id(k + l), links[l], mine + l * words);
            }
            for (Index c = 0; c < full; c += S::W)
                scatter_messages<RELU, NORM, DROP, false>(all, links, count, mine, words, c, S::W, rows);
            if (rest > 0) scatter_messages<RELU, NORM, DROP, true>(all, links, count, mine, words, full, rest, rows);
        }
    }
};

// Arrays every call needs: the channel vectors of options left out, and the words of the hash.
template <typename T, typename Problem>
Shared<T> share_options(Workspace& space, const Problem& problem, const T* bias, bool ready) {
    const Index channels = problem.channels, words = 16 * blocks_of(channels);
    T* zeros = space.take<T>(channels);
    auto* patterns = space.take<std::uint32_t>(problem.dropout.threshold > 0 ? words : 0);
    if (ready) {
        std::fill(zeros, zeros + channels, T(0));
        for (Index j = 0; j < words && problem.dropout.threshold > 0; ++j)
            patterns[j] = word_pattern(static_cast<std::uint32_t>(j));
    }
    return {channels, bias != nullptr ? bias : zeros, problem.norm_weight, problem.norm_bias != nullptr ? problem.norm_bias : zeros,
            static_cast<T>(problem.norm_eps), static_cast<T>(problem.dropout.scale()), patterns, fold_seed(problem.dropout.seed),
            static_cast<std::uint32_t>(problem.dropout.threshold)};
}

// Call.run<RELU, NORM, DROP>() with what the problem asks for.
template <typename Call>
Status with_options(const Call& call, bool relu, bool norm, bool drop) {
    if (relu && norm && drop) return call.template run<true, true, true>();
    if (relu && norm) return call.template run<true, true, false>();
    if (relu && drop) return call.template run<true, false, true>();
    if (relu) return call.template run<true, false, false>();
    if (norm && drop) return call.template run<false, true, true>();
    if (norm) return call.template run<false, true, false>();
    if (drop) return call.template run<false, false, true>();
    return call.template run<false, false, false>();
}
