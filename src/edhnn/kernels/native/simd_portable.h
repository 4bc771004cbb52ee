// Vectors of 16 bytes as plain arrays: what every machine can do, and what the compiler turns into SSE2 or NEON.
// No include guard: this is one of the files compiled once per instruction set.

template <typename T>
struct Simd {
    static constexpr int W = 16 / sizeof(T);
    struct V {
        T lane[W];
    };
    struct M {
        bool lane[W];
    };
#define EDHNN_LANES for (int i = 0; i < W; ++i)
    static V zero() { return V{}; }
    static V set(T x) { V r; EDHNN_LANES r.lane[i] = x; return r; }
    static V load(const T* p) { V r; std::memcpy(r.lane, p, sizeof(r.lane)); return r; }
    static V load(const T* p, int n) { V r{}; for (int i = 0; i < n; ++i) r.lane[i] = p[i]; return r; }
    static void store(T* p, V v) { std::memcpy(p, v.lane, sizeof(v.lane)); }
    static void store(T* p, V v, int n) { for (int i = 0; i < n; ++i) p[i] = v.lane[i]; }
    static V add(V a, V b) { EDHNN_LANES a.lane[i] += b.lane[i]; return a; }
    static V sub(V a, V b) { EDHNN_LANES a.lane[i] -= b.lane[i]; return a; }
    static V mul(V a, V b) { EDHNN_LANES a.lane[i] *= b.lane[i]; return a; }
    static V fma(V a, V b, V c) { EDHNN_LANES a.lane[i] = a.lane[i] * b.lane[i] + c.lane[i]; return a; }
    static V relu(V a) { EDHNN_LANES a.lane[i] = a.lane[i] < T(0) ? T(0) : a.lane[i]; return a; }
    static M positive(V a) { M m; EDHNN_LANES m.lane[i] = a.lane[i] > T(0); return m; }
    static V keep(M m, V a) { EDHNN_LANES a.lane[i] = m.lane[i] ? a.lane[i] : T(0); return a; }
    static M bits(const std::uint32_t* words, Index c) {
        const std::uint32_t here = words[c / 32] >> (c % 32);
        M m;
        EDHNN_LANES m.lane[i] = (here >> i) & 1u;
        return m;
    }
    static T sum(V a) { T total = 0; EDHNN_LANES total += a.lane[i]; return total; }
#undef EDHNN_LANES
};

// Bit c of the result says whether channel c is kept.
inline void draw_bits(const std::uint32_t* patterns, Key key, std::uint32_t threshold, Index blocks,
                      std::uint32_t* bits) {
    for (Index block = 0; block < blocks; ++block) {
        std::uint32_t found = 0;
        for (int j = 0; j < 16; ++j) {
            const std::uint32_t word = hash_word(patterns[16 * block + j], key);
            found |= static_cast<std::uint32_t>((word & 0xFFFFu) >= threshold) << j;
            found |= static_cast<std::uint32_t>((word >> 16) >= threshold) << (j + 16);
        }
        bits[block] = found;
    }
}
