// One link's message s = norm(activation(rho (a + b) + bias)) and its mean and spread over channels.
// One of the files compiled once per instruction set.

constexpr int kBatch = 8;  // links whose channels are run through together, so that sums stay in registers
constexpr int kAhead = 8;  // links between asking for a row and using it

template <bool TAIL, typename T>
EDHNN_INLINE typename Simd<T>::V at(const T* p, int n) {
    return TAIL ? Simd<T>::load(p, n) : Simd<T>::load(p);
}

template <bool TAIL, typename T>
EDHNN_INLINE void put(T* p, typename Simd<T>::V v, int n) {
    TAIL ? Simd<T>::store(p, v, n) : Simd<T>::store(p, v);
}

// Always inline: gcc takes a function that only prefetches for one without effect, and drops the call.
EDHNN_INLINE void prefetch(const void* p, Index bytes) {
#if defined(__GNUC__)
    for (Index i = 0; i < std::min<Index>(bytes, 1024); i += 64) __builtin_prefetch(static_cast<const char*>(p) + i);
#else
    (void)p, (void)bytes;
#endif
}

// What every link of a call shares.
template <typename T>
struct Shared {
    Index channels;
    const T *bias, *gamma, *delta;
    T norm_eps, scale;
    const std::uint32_t* patterns;
    std::uint64_t seed;
    std::uint32_t threshold;
};

// What one link needs once its statistics are known.
template <typename T>
struct Link {
    const T *a, *b, *grad;
    T rho, weight;  // weight includes 1 / keep
    T mean, spread;  // spread = 1 / sqrt(variance + eps)
    T slope, offset; // backward: dz = [z > 0] (spread weight gamma grad + slope (u - mean) + offset)
};

template <bool RELU, bool TAIL, typename T>
EDHNN_INLINE typename Simd<T>::V message(const Link<T>& link, typename Simd<T>::V bias, typename Simd<T>::V rho, Index c, int n,
                                   typename Simd<T>::V& sum) {
    using S = Simd<T>;
    sum = S::add(at<TAIL>(link.a + c, n), at<TAIL>(link.b + c, n));
    const auto z = S::fma(rho, sum, bias);
    return RELU ? S::relu(z) : z;
}

// Sums over channels of u, u^2, e = kept gamma grad, and e u (the last two for backward only).
template <typename T>
struct Sums {
    typename Simd<T>::V u, uu, e, eu;
};

template <bool RELU, bool DROP, bool GRAD, bool TAIL, typename T>
EDHNN_INLINE void add_sums(const Shared<T>& all, const Link<T>& link, const std::uint32_t* bits, Index c, int n, Sums<T>& sums,
                     typename Simd<T>::V rho) {
    using S = Simd<T>;
    typename S::V t;
    const auto u = message<RELU, TAIL>(link, at<TAIL>(all.bias + c, n), rho, c, n, t);
    sums.u = S::add(sums.u, u);
    sums.uu = S::fma(u, u, sums.uu);
    if (GRAD) {
        auto e = S::mul(at<TAIL>(all.gamma + c, n), at<TAIL>(link.grad + c, n));
        if (DROP) e = S::keep(S::bits(bits, c), e);
        sums.e = S::add(sums.e, e);
        sums.eu = S::fma(e, u, sums.eu);
    }
}

// The same around the mean, for messages whose mean is large beside their spread: u^2 - mean^2 would cancel.
template <bool RELU, bool DROP, bool GRAD, bool TAIL, typename T>
EDHNN_INLINE void add_centred(const Shared<T>& all, const Link<T>& link, const std::uint32_t* bits, Index c, int n, Sums<T>& sums) {
    using S = Simd<T>;
    typename S::V t;
    auto d = message<RELU, TAIL>(link, at<TAIL>(all.bias + c, n), S::set(link.rho), c, n, t);
    d = S::sub(d, S::set(link.mean));
    if (TAIL) {  // empty lanes have no distance from the mean
        T lanes[S::W] = {};
        S::store(lanes, d, n);
        d = S::load(lanes);
    }
    sums.uu = S::fma(d, d, sums.uu);
    if (GRAD) {
        auto e = S::mul(at<TAIL>(all.gamma + c, n), at<TAIL>(link.grad + c, n));
        if (DROP) e = S::keep(S::bits(bits, c), e);
        sums.eu = S::fma(e, d, sums.eu);
    }
}

// Mean and spread of the message; with GRAD also slope and offset. Returns sum of kept gamma grad (u - mean).
template <bool RELU, bool DROP, bool GRAD, typename T>
inline T measure(const Shared<T>& all, Link<T>& link, const std::uint32_t* bits) {
    using S = Simd<T>;
    const Index full = all.channels / S::W * S::W;
    const int rest = static_cast<int>(all.channels - full);
    const auto rho = S::set(link.rho);
    Sums<T> sums{S::zero(), S::zero(), S::zero(), S::zero()};
    for (Index c = 0; c < full; c += S::W) add_sums<RELU, DROP, GRAD, false>(all, link, bits, c, S::W, sums, rho);
    if (rest > 0) add_sums<RELU, DROP, GRAD, true>(all, link, bits, full, rest, sums, rho);
    const T count = static_cast<T>(all.channels);
    link.mean = S::sum(sums.u) / count;
    T variance = S::sum(sums.uu) / count - link.mean * link.mean;
    const T e = GRAD ? S::sum(sums.e) : T(0);
    T ed = GRAD ? S::sum(sums.eu) - link.mean * e : T(0);
    if (!(link.mean * link.mean <= T(8) * variance)) {
        sums.uu = sums.eu = S::zero();
        for (Index c = 0; c < full; c += S::W) add_centred<RELU, DROP, GRAD, false>(all, link, bits, c, S::W, sums);
        if (rest > 0) add_centred<RELU, DROP, GRAD, true>(all, link, bits, full, rest, sums);
        variance = S::sum(sums.uu) / count;
        ed = GRAD ? S::sum(sums.eu) : T(0);
    }
    link.spread = T(1) / std::sqrt(variance + all.norm_eps);
    if (GRAD) {
        link.slope = -link.weight * link.spread * link.spread * link.spread * ed / count;
        link.offset = -link.weight * link.spread * e / count;
    }
    return ed;
}
