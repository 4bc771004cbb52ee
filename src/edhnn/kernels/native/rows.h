// `row_activation`: dropout(norm(activation(x_r))) and its backward, a link per row with b = 0. One of the files compiled
// once per instruction set.

template <typename T, bool RELU, bool NORM, bool DROP>
struct RowsForward {
    const Rows<T>& rows;
    const Shared<T>& all;
    Index stretch;
    const T* zeros;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        std::uint32_t* mine = bits + thread * words;
        for (Index r = group * stretch; r < std::min(rows.rows, (group + 1) * stretch); ++r) {
            Link<T> link{rows.x + r * channels, zeros, nullptr, T(1), all.scale, T(0), T(1), T(0), T(0)};
            if (DROP) draw_bits(all.patterns, key_of(all.seed, r), all.threshold, words, mine);
            if (NORM) measure<RELU, DROP, false>(all, link, nullptr);
            T* out = rows.out + r * channels;
            for (Index c = 0; c < full; c += S::W)
                add_messages<RELU, NORM, DROP, false>(all, &link, 1, mine, words, true, c, S::W, out);
            if (rest > 0) add_messages<RELU, NORM, DROP, true>(all, &link, 1, mine, words, true, full, rest, out);
        }
    }
};

template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE void put_gradient(const Shared<T>& all, const Link<T>& link, const std::uint32_t* bits, Index c, int n, T* out,
                         const ChannelSums<T>& sums) {
    using S = Simd<T>;
    typename S::V t, g, x;
    const T pull = link.spread * link.weight;
    const auto gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero();
    put<TAIL>(out + c, gradient<RELU, NORM, DROP, TAIL>(link, pull, S::zero(), gamma, bits, c, n, t, g, x), n);
    if (!NORM) return;
    put<TAIL>(sums.gamma + c, S::fma(g, S::mul(S::set(pull), x), at<TAIL>(sums.gamma + c, n)), n);
    put<TAIL>(sums.delta + c, S::fma(S::set(link.weight), g, at<TAIL>(sums.delta + c, n)), n);
}

template <typename T, bool RELU, bool NORM, bool DROP>
struct RowsBackward {
    const Rows<T>& rows;
    const Shared<T>& all;
    Index stretch;
    const T* zeros;
    T* channel_sums;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        std::uint32_t* mine = bits + thread * words;
        T* sums = channel_sums + group * 2 * channels;
        std::fill(sums, sums + 2 * channels, T(0));
        const ChannelSums<T> vectors{nullptr, sums, sums + channels};
        for (Index r = group * stretch; r < std::min(rows.rows, (group + 1) * stretch); ++r) {
            Link<T> link{rows.x + r * channels, zeros, rows.grad + r * channels, T(1), all.scale, T(0), T(1), T(0), T(0)};
            if (DROP) draw_bits(all.patterns, key_of(all.seed, r), all.threshold, words, mine);
            if (NORM) measure<RELU, DROP, true>(all, link, mine);
            T* out = rows.grad_x + r * channels;
            for (Index c = 0; c < full; c += S::W) put_gradient<RELU, NORM, DROP, false>(all, link, mine, c, S::W, out, vectors);
            if (rest > 0) put_gradient<RELU, NORM, DROP, true>(all, link, mine, full, rest, out, vectors);
        }
    }
};

template <typename T>
struct RowsCall {
    const Rows<T>& rows;
    bool backward;

    template <bool RELU, bool NORM, bool DROP>
    Status run() const {
        const Index channels = rows.channels, wanted = groups_for(rows.rows, channels);
        const Index stretch = std::max<Index>(1, (rows.rows + wanted - 1) / wanted), groups = (rows.rows + stretch - 1) / stretch;
        Workspace space;
        Shared<T> all;
        T* sums = nullptr;
        std::uint32_t* bits = nullptr;
        for (const bool ready : {false, true}) {
            if (ready && !space.reserve()) return kOutOfMemory;
            all = share_options<T>(space, rows, static_cast<const T*>(nullptr), ready);
            sums = space.take<T>(backward ? groups * 2 * channels : 0);
            bits = space.take<std::uint32_t>(DROP ? rows.threads * blocks_of(channels) : 0);
        }
        const T* zeros = all.bias;
        if (!backward) {
            in_parallel(groups, rows.threads, RowsForward<T, RELU, NORM, DROP>{rows, all, stretch, zeros, bits});
            return kDone;
        }
        in_parallel(groups, rows.threads, RowsBackward<T, RELU, NORM, DROP>{rows, all, stretch, zeros, sums, bits});
        T* vectors[] = {rows.grad_norm_weight, rows.grad_norm_bias};
        for (int which = 0; which < 2; ++which) {
            for (Index c = 0; c < channels && vectors[which] != nullptr; ++c) {
                double total = 0;
                for (Index group = 0; group < groups; ++group) total += sums[(group * 2 + which) * channels + c];
                vectors[which][c] = static_cast<T>(total);
            }
        }
        return kDone;
    }
};

template <typename T>
Status rows_forward(const Rows<T>& rows) {
    return with_options(RowsCall<T>{rows, false}, rows.relu != 0, rows.norm_weight != nullptr, rows.dropout.threshold > 0);
}

template <typename T>
Status rows_backward(const Rows<T>& rows) {
    return with_options(RowsCall<T>{rows, true}, rows.relu != 0, rows.norm_weight != nullptr, rows.dropout.threshold > 0);
}
