// `row_moments`: the mean of each row and the sum of squares around it, and their backward. One of the files compiled once
// per instruction set.

template <bool TAIL, typename T>
EDHNN_INLINE typename Simd<T>::V centred(const T* x, Index c, int n, T mean) {
    using S = Simd<T>;
    return S::sub(at<TAIL>(x + c, n), S::set(mean));
}

template <typename T>
struct MomentsForward {
    const Moments<T>& the;
    Index stretch;

    void operator()(Index group, int) const {
        using S = Simd<T>;
        const Index channels = the.channels, full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        for (Index r = group * stretch; r < std::min(the.rows, (group + 1) * stretch); ++r) {
            const T* x = the.x + r * channels;
            auto sum = S::zero();
            for (Index c = 0; c < full; c += S::W) sum = S::add(sum, S::load(x + c));
            if (rest > 0) sum = S::add(sum, S::load(x + full, rest));
            const T mean = S::sum(sum) / static_cast<T>(channels);
            auto square = S::zero();
            for (Index c = 0; c < full; c += S::W) {
                const auto d = centred<false>(x, c, S::W, mean);
                square = S::fma(d, d, square);
            }
            T spread = S::sum(square);
            for (Index c = full; c < channels; ++c) spread += (x[c] - mean) * (x[c] - mean);
            the.mean[r] = mean;
            the.spread[r] = spread / static_cast<T>(the.width);
        }
    }
};

template <typename T>
struct MomentsBackward {
    const Moments<T>& the;
    Index stretch;

    void operator()(Index group, int) const {
        using S = Simd<T>;
        const Index channels = the.channels, full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        for (Index r = group * stretch; r < std::min(the.rows, (group + 1) * stretch); ++r) {
            const T* x = the.x + r * channels;
            T* out = the.grad_x + r * channels;
            const T mean = the.mean[r];
            const auto shift = S::set(the.grad_mean[r] / static_cast<T>(channels)), pull = S::set(2 * the.grad_spread[r] / static_cast<T>(the.width));
            for (Index c = 0; c < full; c += S::W) S::store(out + c, S::fma(pull, centred<false>(x, c, S::W, mean), shift));
            if (rest > 0) S::store(out + full, S::fma(pull, centred<true>(x, full, rest, mean), shift), rest);
        }
    }
};

template <template <typename> class Work, typename T>
Status over_rows(const Moments<T>& the) {
    const Index wanted = groups_for(the.rows, the.channels);
    const Index stretch = std::max<Index>(1, (the.rows + wanted - 1) / wanted);
    in_parallel((the.rows + stretch - 1) / stretch, the.threads, Work<T>{the, stretch});
    return kDone;
}

template <typename T>
Status moments_forward(const Moments<T>& the) {
    return over_rows<MomentsForward>(the);
}

template <typename T>
Status moments_backward(const Moments<T>& the) {
    return over_rows<MomentsBackward>(the);
}
