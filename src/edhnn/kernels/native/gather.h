// `gather_sum`: out_r = sum of w x_s over links (r, s), and the gradient of w. One of the files compiled once per
// instruction set.

template <bool TAIL, typename T>
EDHNN_INLINE void add_rows(const T* const* rows, const T* weights, int count, bool first, Index c, int n, T* out) {
    using S = Simd<T>;
    auto total = first ? S::zero() : at<TAIL>(out + c, n);
    for (int l = 0; l < count; ++l) total = S::fma(S::set(weights[l]), at<TAIL>(rows[l] + c, n), total);
    put<TAIL>(out + c, total, n);
}

template <typename T>
struct GatherRows {
    const Gather<T>& gather;
    Index groups;
    T* heads;

    void operator()(Index group, int) const {
        const Side side = gather.side();
        const Share share(side, group, groups);
        const Index channels = gather.channels;
        if (share.has_head()) run(side, share.first - 1, share.begin, share.head_end, heads + group * channels);
        for (Index r = share.first; r < share.last; ++r)
            run(side, r, side.ptr[r], std::min(side.ptr[r + 1], share.end), gather.out + r * channels);
    }

    void run(const Side& side, Index r, Index from, Index to, T* out) const {
        using S = Simd<T>;
        const Index channels = gather.channels, full = channels / S::W * S::W, last = side.num_links();
        const int rest = static_cast<int>(channels - full);
        const T share = gather.own_mean != 0 ? T(1) / static_cast<T>(side.ptr[r + 1] - side.ptr[r]) : T(1);
        if (from == to) std::fill(out, out + channels, T(0));
        for (Index k = from; k < to; k += kBatch) {
            const T* rows[kBatch];
            T weights[kBatch];
            const int count = static_cast<int>(std::min<Index>(kBatch, to - k));
            for (int l = 0; l < count; ++l) {
                const Index source = side.other[k + l];
                if (k + l + kAhead < last) prefetch(gather.x + side.other[k + l + kAhead] * channels, channels * sizeof(T));
                rows[l] = gather.x + source * channels;
                weights[l] = gather.weight != nullptr ? share * gather.weight[side.id(k + l)] : share;
                if (gather.source_ptr != nullptr)
                    weights[l] /= static_cast<T>(gather.source_ptr[source + 1] - gather.source_ptr[source]);
            }
            for (Index c = 0; c < full; c += S::W) add_rows<false>(rows, weights, count, k == from, c, S::W, out);
            if (rest > 0) add_rows<true>(rows, weights, count, k == from, full, rest, out);
        }
    }
};

template <typename T>
Status gather(const Gather<T>& problem) {
    const Side side = problem.side();
    const Index groups = groups_for(side.num_links(), problem.channels);
    Workspace space;
    space.take<T>(groups * problem.channels);
    if (!space.reserve()) return kOutOfMemory;
    T* heads = space.take<T>(groups * problem.channels);
    in_parallel(groups, problem.threads, GatherRows<T>{problem, groups, heads});
    add_heads<T>(side, groups, problem.channels, heads, nullptr, problem.out, nullptr, nullptr);
    return kDone;
}

template <bool TAIL, typename T>
EDHNN_INLINE void add_products(const T* x, const T* y, Index c, int n, typename Simd<T>::V& total) {
    total = Simd<T>::fma(at<TAIL>(x + c, n), at<TAIL>(y + c, n), total);
}

template <typename T>
struct GatherWeights {
    const Gather<T>& gather;
    Index groups;

    void operator()(Index group, int) const {
        using S = Simd<T>;
        const Side side = gather.side();
        const Index links = side.num_links(), channels = gather.channels, full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        const Index begin = links * group / groups, end = links * (group + 1) / groups;
        Index r = std::upper_bound(side.ptr, side.ptr + side.count + 1, begin) - side.ptr - 1;
        for (Index k = begin; k < end; ++k) {
            while (side.ptr[r + 1] <= k) ++r;
            if (k + kAhead < links) prefetch(gather.x + side.other[k + kAhead] * channels, channels * sizeof(T));
            const T *x = gather.x + side.other[k] * channels, *y = gather.grad + r * channels;
            auto total = S::zero();
            for (Index c = 0; c < full; c += S::W) add_products<false>(x, y, c, S::W, total);
            if (rest > 0) add_products<true>(x, y, full, rest, total);
            T dot = S::sum(total);
            const Index* counted = gather.own_mean != 0 ? side.ptr + r : gather.source_ptr;
            if (gather.own_mean == 0 && counted != nullptr) counted += side.other[k];
            if (counted != nullptr) dot /= static_cast<T>(counted[1] - counted[0]);
            gather.weight_out[side.id(k)] = dot;
        }
    }
};

template <typename T>
Status gather_weight(const Gather<T>& problem) {
    const Index links = problem.side().num_links(), groups = groups_for(links, problem.channels);
    if (links > 0) in_parallel(groups, problem.threads, GatherWeights<T>{problem, groups});
    return kDone;
}
