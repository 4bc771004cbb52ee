// Vectors of 64 bytes: AVX-512 with its mask registers. One of the files compiled once per instruction set.

template <typename T>
struct Simd;

template <>
struct Simd<float> {
    static constexpr int W = 16;
    using V = __m512;
    using M = __mmask16;
    static M first(int n) { return static_cast<M>((1u << n) - 1u); }
    static V zero() { return _mm512_setzero_ps(); }
    static V set(float x) { return _mm512_set1_ps(x); }
    static V load(const float* p) { return _mm512_loadu_ps(p); }
    static V load(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
    static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
    static void store(float* p, V v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }
    static V add(V a, V b) { return _mm512_add_ps(a, b); }
    static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
    static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
    static V relu(V a) { return _mm512_max_ps(zero(), a); }  // NaN, second, stays
    static M positive(V a) { return _mm512_cmp_ps_mask(a, zero(), _CMP_GT_OQ); }
    static V keep(M m, V a) { return _mm512_maskz_mov_ps(m, a); }
    static M bits(const std::uint32_t* words, Index c) { return reinterpret_cast<const std::uint16_t*>(words)[c / 16]; }
    static float sum(V a) { return _mm512_reduce_add_ps(a); }
};

template <>
struct Simd<double> {
    static constexpr int W = 8;
    using V = __m512d;
    using M = __mmask8;
    static M first(int n) { return static_cast<M>((1u << n) - 1u); }
    static V zero() { return _mm512_setzero_pd(); }
    static V set(double x) { return _mm512_set1_pd(x); }
    static V load(const double* p) { return _mm512_loadu_pd(p); }
    static V load(const double* p, int n) { return _mm512_maskz_loadu_pd(first(n), p); }
    static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
    static void store(double* p, V v, int n) { _mm512_mask_storeu_pd(p, first(n), v); }
    static V add(V a, V b) { return _mm512_add_pd(a, b); }
    static V sub(V a, V b) { return _mm512_sub_pd(a, b); }
    static V mul(V a, V b) { return _mm512_mul_pd(a, b); }
    static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
    static V relu(V a) { return _mm512_max_pd(zero(), a); }
    static M positive(V a) { return _mm512_cmp_pd_mask(a, zero(), _CMP_GT_OQ); }
    static V keep(M m, V a) { return _mm512_maskz_mov_pd(m, a); }
    static M bits(const std::uint32_t* words, Index c) { return reinterpret_cast<const std::uint8_t*>(words)[c / 8]; }
    static double sum(V a) { return _mm512_reduce_add_pd(a); }
};

inline void draw_bits(const std::uint32_t* patterns, Key key, std::uint32_t threshold, Index blocks,
                      std::uint32_t* bits) {
    const __m512i low = _mm512_set1_epi32(static_cast<int>(key.low)), high = _mm512_set1_epi32(static_cast<int>(key.high));
    const __m512i one = _mm512_set1_epi32(static_cast<int>(kFirstFactor)), two = _mm512_set1_epi32(static_cast<int>(kSecondFactor));
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(threshold)), half = _mm512_set1_epi32(0xFFFF);
    for (Index block = 0; block < blocks; ++block) {
        __m512i x = _mm512_loadu_si512(patterns + 16 * block);
        x = _mm512_mullo_epi32(_mm512_xor_si512(x, low), one);
        x = _mm512_ternarylogic_epi32(x, _mm512_srli_epi32(x, 15), high, 0x96);  // exclusive or of the three
        x = _mm512_mullo_epi32(x, two);
        const __m512i upper = _mm512_srli_epi32(x, 16), lower = _mm512_and_si512(_mm512_xor_si512(x, upper), half);
        const std::uint32_t kept_low = _mm512_cmpge_epu32_mask(lower, limit), kept_high = _mm512_cmpge_epu32_mask(upper, limit);
        bits[block] = kept_low | kept_high << 16;
    }
}
