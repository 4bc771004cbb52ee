// The second pass of backward, for a side too large to scatter into: the columns' gradients, column by column, from the
// six numbers per link that the first pass left. One of the files compiled once per instruction set.

template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE void add_column_gradients(const Shared<T>& all, const Link<T>* links, int count, const std::uint32_t* bits,
                                 Index words, bool first, Index c, int n, T* own) {
    using S = Simd<T>;
    const auto bias = at<TAIL>(all.bias + c, n), gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero();
    auto total = first ? S::zero() : at<TAIL>(own + c, n);
    for (int l = 0; l < count; ++l) {
        typename S::V t, g, x;
        const auto dz = gradient<RELU, NORM, DROP, TAIL>(links[l], links[l].weight, bias, gamma, bits + l * words, c, n, t, g, x);
        total = S::fma(S::set(links[l].rho), dz, total);
    }
    put<TAIL>(own + c, total, n);
}

template <typename T, bool RELU, bool NORM, bool DROP>
struct PairColumns {
    const Pair<T>& pair;
    const Shared<T>& all;
    Index groups;
    T *heads, *head_moments;
    const Saved<T>* saved;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        const Side side = pair.column_side();
        const Index channels = all.channels;
        const Share share(side, group, groups);
        std::uint32_t* mine = bits + thread * kBatch * blocks_of(channels);
        if (share.has_head())
            run(side, share.first - 1, share.begin, share.head_end, mine, heads + group * channels,
                head_moments + 2 * group, head_moments + 2 * group + 1);
        for (Index s = share.first; s < share.last; ++s)
            run(side, s, side.ptr[s], std::min(side.ptr[s + 1], share.end), mine, pair.grad_b + s * channels,
                pair.grad_q_column != nullptr ? pair.grad_q_column + s : nullptr,
                pair.grad_mu_column != nullptr ? pair.grad_mu_column + s : nullptr);
    }

    void run(const Side& side, Index column, Index from, Index to, std::uint32_t* mine, T* out, T* out_q, T* out_mu) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const Index bytes = channels * static_cast<Index>(sizeof(T));
        const int rest = static_cast<int>(channels - full);
        T d_q = 0, d_mu = 0;
        if (from == to) std::fill(out, out + channels, T(0));
        for (Index k = from; k < to; k += kBatch) {
            Link<T> links[kBatch];
            const int count = static_cast<int>(std::min<Index>(kBatch, to - k));
            for (int l = 0; l < count; ++l) {
                if (k + l + kAhead < side.num_links()) {
                    const Index ahead = side.other[k + l + kAhead] * channels;
                    prefetch(pair.a + ahead, bytes), prefetch(pair.grad + ahead, bytes);
                    prefetch(saved + side.id(k + l + kAhead), sizeof(Saved<T>));
                }
                const Index row = side.other[k + l], id = side.id(k + l);
                const Saved<T>& known = saved[id];
                links[l] = {pair.a + row * channels, pair.b + column * channels, pair.grad + row * channels, known.rho,
                            known.pull, known.mean, T(1), known.slope, known.offset};
                if (DROP) draw_bits(all.patterns, key_of(all.seed, id), all.threshold, words, mine + l * words);
                d_q += known.argument;
                if (pair.mu_row != nullptr)
                    d_mu -= known.argument * static_cast<T>(2 * pair.kappa) * (pair.mu_row[row] - pair.mu_column[column]);
            }
            for (Index c = 0; c < full; c += S::W)
                add_column_gradients<RELU, NORM, DROP, false>(all, links, count, mine, words, k == from, c, S::W, out);
            if (rest > 0)
                add_column_gradients<RELU, NORM, DROP, true>(all, links, count, mine, words, k == from, full, rest, out);
        }
        if (out_q != nullptr) *out_q = d_q, *out_mu = d_mu;
    }
};
