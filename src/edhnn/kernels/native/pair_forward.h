// Forward of `pair_sum`, row by row. One of the files compiled once per instruction set.

template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE void add_messages(const Shared<T>& all, const Link<T>* links, int count, const std::uint32_t* bits, Index words,
                         bool first, Index c, int n, T* out) {
    using S = Simd<T>;
    const auto bias = at<TAIL>(all.bias + c, n);
    const auto gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero(), delta = NORM ? at<TAIL>(all.delta + c, n) : S::zero();
    auto total = first ? S::zero() : at<TAIL>(out + c, n);
    for (int l = 0; l < count; ++l) {
        typename S::V t;
        auto s = message<RELU, TAIL>(links[l], bias, S::set(links[l].rho), c, n, t);
        if (NORM) s = S::fma(gamma, S::mul(S::sub(s, S::set(links[l].mean)), S::set(links[l].spread)), delta);
        if (DROP) s = S::keep(S::bits(bits + l * words, c), s);
        total = S::fma(S::set(links[l].weight), s, total);
    }
    put<TAIL>(out + c, total, n);
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
                const Index column = side.other[k + l], ahead = k + l + kBatch;
                if (ahead < pair.row_ptr[pair.rows]) prefetch(pair.b + side.other[ahead] * channels, channels * sizeof(T));
                Link<T>& link = links[l];
                link.a = pair.a + r * channels, link.b = pair.b + column * channels;
                link.rho = pair.rho(r, column);
                link.weight = all.scale * (pair.weight != nullptr ? pair.weight[side.id(k + l)] : T(1));
                if (DROP) draw_bits(all.patterns, key_of(all.seed, side.id(k + l)), all.threshold, words, mine + l * words);
                if (NORM) measure<RELU, DROP, false>(all, link, nullptr);
            }
            for (Index c = 0; c < full; c += S::W)
                add_messages<RELU, NORM, DROP, false>(all, links, count, mine, words, k == from, c, S::W, out);
            if (rest > 0) add_messages<RELU, NORM, DROP, true>(all, links, count, mine, words, k == from, full, rest, out);
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

template <typename T>
struct PairForwardCall {
    const Pair<T>& pair;

    template <bool RELU, bool NORM, bool DROP>
    Status run() const {
        const Index channels = pair.channels, groups = groups_for(pair.row_side().num_links(), channels);
        Workspace space;
        Shared<T> all;
        T* heads = nullptr;
        std::uint32_t* bits = nullptr;
        for (const bool ready : {false, true}) {
            if (ready && !space.reserve()) return kOutOfMemory;
            all = share_options<T>(space, pair, pair.bias, ready);
            heads = space.take<T>(groups * channels);
            bits = space.take<std::uint32_t>(DROP ? pair.threads * kBatch * blocks_of(channels) : 0);
        }
        in_parallel(groups, pair.threads, PairForward<T, RELU, NORM, DROP>{pair, all, groups, heads, bits});
        for (Index group = 1; group < groups; ++group) {
            const Share share(pair.row_side(), group, groups);
            if (!share.has_head()) continue;
            T* out = pair.out + (share.first - 1) * channels;
            for (Index c = 0; c < channels; ++c) out[c] += heads[group * channels + c];
        }
        return kDone;
    }
};

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

template <typename T>
Status pair_forward(const Pair<T>& pair) {
    return with_options(PairForwardCall<T>{pair}, pair.relu != 0, pair.norm_weight != nullptr, pair.dropout.threshold > 0);
}
