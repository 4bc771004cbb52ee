// Backward of `pair_sum`. Messages are recomputed, never stored. One of the files compiled once per instruction set.
//
// With g = kept grad, e = gamma g, u the activation, mean and spread its statistics:
//     dz = [z > 0] (spread w e + slope (u - mean) + offset),   d(a_r) = d(b_s) = rho dz,   d(rho) = sum_c dz (a_r + b_s).
// A pass over one side in its own order sums that side's gradients in registers. The other side's are either scattered
// into a table per group (one pass, when that side is small), or summed by a second pass in the other order, for which
// the first leaves six numbers per link (`Saved`).

template <typename T>
struct Saved {
    T rho, mean, pull, slope, offset, argument;  // pull = spread w; argument = d(q_r + q_s + ...)
};

template <typename T>
struct ChannelSums {
    T *bias, *gamma, *delta;
};

// The gradient at z, and on the way the channel sums of bias, gamma and delta.
template <bool RELU, bool NORM, bool DROP, bool TAIL, typename T>
EDHNN_INLINE typename Simd<T>::V gradient(const Link<T>& link, T pull, typename Simd<T>::V bias, typename Simd<T>::V gamma,
                                    const std::uint32_t* bits, Index c, int n, typename Simd<T>::V& t,
                                    typename Simd<T>::V& g, typename Simd<T>::V& x) {
    using S = Simd<T>;
    const auto u = message<RELU, TAIL>(link, bias, S::set(link.rho), c, n, t);
    g = at<TAIL>(link.grad + c, n);
    if (DROP) g = S::keep(S::bits(bits, c), g);
    auto dz = g;
    if (NORM) {
        x = S::sub(u, S::set(link.mean));
        dz = S::fma(S::set(pull), S::mul(gamma, g), S::fma(S::set(link.slope), x, S::set(link.offset)));
    } else {
        dz = S::mul(S::set(link.weight), g);
    }
    return RELU ? S::keep(S::positive(u), dz) : dz;
}

template <bool RELU, bool NORM, bool DROP, bool SCATTER, bool TAIL, typename T>
EDHNN_INLINE void add_gradients(const Shared<T>& all, const Link<T>* links, int count, const std::uint32_t* bits, Index words,
                          bool first, Index c, int n, T* own, T* const* others, const ChannelSums<T>& sums,
                          typename Simd<T>::V* dots) {
    using S = Simd<T>;
    const auto bias = at<TAIL>(all.bias + c, n), gamma = NORM ? at<TAIL>(all.gamma + c, n) : S::zero();
    auto total = first ? S::zero() : at<TAIL>(own + c, n), d_bias = at<TAIL>(sums.bias + c, n);
    auto d_gamma = NORM ? at<TAIL>(sums.gamma + c, n) : S::zero(), d_delta = NORM ? at<TAIL>(sums.delta + c, n) : S::zero();
    for (int l = 0; l < count; ++l) {
        typename S::V t, g, x;
        const T pull = links[l].spread * links[l].weight;
        const auto dz = gradient<RELU, NORM, DROP, TAIL>(links[l], pull, bias, gamma, bits + l * words, c, n, t, g, x);
        const auto moved = S::mul(S::set(links[l].rho), dz);
        total = S::add(total, moved);
        d_bias = S::add(d_bias, dz);
        dots[l] = S::fma(dz, t, dots[l]);
        if (NORM) {
            d_gamma = S::fma(g, S::mul(S::set(pull), x), d_gamma);
            d_delta = S::fma(S::set(links[l].weight), g, d_delta);
        }
        if (SCATTER) put<TAIL>(others[l] + c, S::add(at<TAIL>(others[l] + c, n), moved), n);
    }
    put<TAIL>(own + c, total, n);
    put<TAIL>(sums.bias + c, d_bias, n);
    if (NORM) put<TAIL>(sums.gamma + c, d_gamma, n), put<TAIL>(sums.delta + c, d_delta, n);
}

// sum_c kept grad * (delta or u): what grad_weight needs beside the statistics.
template <bool RELU, bool NORM, bool DROP, typename T>
inline T weight_dot(const Shared<T>& all, const Link<T>& link, const std::uint32_t* bits) {
    T total = 0;
    for (Index c = 0; c < all.channels; ++c) {
        const T z = link.rho * (link.a[c] + link.b[c]) + all.bias[c], u = RELU && z < T(0) ? T(0) : z;
        const bool kept = !DROP || (bits[c / 32] >> (c % 32) & 1u);
        if (kept) total += link.grad[c] * (NORM ? all.delta[c] : u);
    }
    return total;
}

// The first pass: gradients of the owner's side, of the channel vectors and of weights.
template <typename T, bool RELU, bool NORM, bool DROP, bool SCATTER>
struct PairBackward {
    const Pair<T>& pair;
    const Shared<T>& all;
    bool by_rows;  // the owner is a row
    Index groups;
    T *own, *own_q, *own_mu;
    T *heads, *head_moments, *channel_sums, *tables;  // per group
    Saved<T>* saved;
    std::uint32_t* bits;

    void operator()(Index group, int thread) const {
        const Side side = by_rows ? pair.row_side() : pair.column_side();
        const Index channels = all.channels, others = by_rows ? pair.columns : pair.rows;
        const Share share(side, group, groups);
        std::uint32_t* mine = bits + thread * kBatch * blocks_of(channels);
        T* table = SCATTER ? tables + group * others * table_width<T>(channels) : nullptr;
        if (SCATTER) std::fill(table, table + others * table_width<T>(channels), T(0));
        T* sums = channel_sums + group * 3 * channels;
        std::fill(sums, sums + 3 * channels, T(0));
        const ChannelSums<T> vectors{sums, sums + channels, sums + 2 * channels};
        if (share.has_head())
            run(side, share.first - 1, share.begin, share.head_end, mine, table, vectors, heads + group * channels,
                head_moments + 2 * group, head_moments + 2 * group + 1);
        for (Index r = share.first; r < share.last; ++r)
            run(side, r, side.ptr[r], std::min(side.ptr[r + 1], share.end), mine, table, vectors, own + r * channels,
                own_q != nullptr ? own_q + r : nullptr, own_mu != nullptr ? own_mu + r : nullptr);
    }

    void run(const Side& side, Index owner, Index from, Index to, std::uint32_t* mine, T* table, const ChannelSums<T>& sums,
             T* out, T* out_q, T* out_mu) const {
        using S = Simd<T>;
        const Index channels = all.channels, words = blocks_of(channels), full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        const T twice_kappa = static_cast<T>(2 * pair.kappa);
        T d_q = 0, d_mu = 0;
        if (from == to) std::fill(out, out + channels, T(0));
        for (Index k = from; k < to; k += kBatch) {
            Link<T> links[kBatch];
            T* others[kBatch];
            typename S::V dots[kBatch];
            const int count = static_cast<int>(std::min<Index>(kBatch, to - k));
            for (int l = 0; l < count; ++l) {
                fetch(side, k + l + kAhead);
                prepare(side, owner, k + l, links[l], mine + l * words);
                others[l] = SCATTER ? table + side.other[k + l] * table_width<T>(channels) : nullptr;
                dots[l] = S::zero();
            }
            for (Index c = 0; c < full; c += S::W)
                add_gradients<RELU, NORM, DROP, SCATTER, false>(all, links, count, mine, words, k == from, c, S::W, out,
                                                                others, sums, dots);
            if (rest > 0)
                add_gradients<RELU, NORM, DROP, SCATTER, true>(all, links, count, mine, words, k == from, full, rest, out,
                                                               others, sums, dots);
            for (int l = 0; l < count; ++l) {
                const Link<T>& link = links[l];
                const Index other = side.other[k + l], row = by_rows ? owner : other, column = by_rows ? other : owner;
                T argument = 0, pushed = 0;
                if (pair.q_row != nullptr) {
                    argument = T(-0.5) * link.rho * link.rho * link.rho * S::sum(dots[l]);
                    pushed = argument * twice_kappa * (pair.mu_row[row] - pair.mu_column[column]);
                    d_q += argument, d_mu += by_rows ? pushed : -pushed;
                }
                if (SCATTER) others[l][channels] += argument, others[l][channels + 1] += by_rows ? -pushed : pushed;
                if (!SCATTER)
                    saved[side.id(k + l)] = {link.rho, link.mean, link.spread * link.weight, link.slope, link.offset, argument};
            }
        }
        if (out_q != nullptr) *out_q = d_q, *out_mu = d_mu;
    }

    EDHNN_INLINE void fetch(const Side& side, Index place) const {
        if (place >= side.num_links()) return;
        const Index other = side.other[place], bytes = all.channels * static_cast<Index>(sizeof(T));
        if (by_rows) prefetch(pair.b + other * all.channels, bytes);
        if (!by_rows) prefetch(pair.a + other * all.channels, bytes), prefetch(pair.grad + other * all.channels, bytes);
    }

    void prepare(const Side& side, Index owner, Index place, Link<T>& link, std::uint32_t* mine) const {
        const Index other = side.other[place], row = by_rows ? owner : other, column = by_rows ? other : owner;
        const Index id = side.id(place), channels = all.channels;
        const T share = all.scale * pair.share(row), weight = pair.weight != nullptr ? pair.weight[id] : T(1);
        link = {pair.a + row * channels, pair.b + column * channels, pair.grad + row * channels,
                pair.rho(row, column), share * weight, T(0), T(1), T(0), T(0)};
        if (DROP) draw_bits(all.patterns, key_of(all.seed, id), all.threshold, blocks_of(channels), mine);
        T dot = 0;
        if (NORM) {
            dot = measure<RELU, DROP, true>(all, link, mine);  // sets link.spread
            dot *= link.spread;
        }
        if (pair.grad_weight != nullptr)
            pair.grad_weight[id] = share * (dot + weight_dot<RELU, NORM, DROP>(all, link, mine));
    }
};
