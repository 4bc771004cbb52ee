// Vectors of 32 bytes: AVX2 with fused multiply-add. One of the files compiled once per instruction set.

template <typename T>
struct Simd;

alignas(32) static const std::int32_t kFirst32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
alignas(32) static const std::int64_t kFirst64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

template <>
struct Simd<float> {
    static constexpr int W = 8;
    using V = __m256;
    using M = __m256;
    static __m256i first(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst32 + 8 - n)); }
    static V zero() { return _mm256_setzero_ps(); }
    static V set(float x) { return _mm256_set1_ps(x); }
    static V load(const float* p) { return _mm256_loadu_ps(p); }
    static V load(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
    static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
    static void store(float* p, V v, int n) { _mm256_maskstore_ps(p, first(n), v); }
    static V add(V a, V b) { return _mm256_add_ps(a, b); }
    static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
    static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
    static V relu(V a) { return _mm256_max_ps(zero(), a); }  // NaN, second, stays
    static M positive(V a) { return _mm256_cmp_ps(a, zero(), _CMP_GT_OQ); }
    static V keep(M m, V a) { return _mm256_and_ps(m, a); }
    static M bits(const std::uint32_t* words, Index c) {
        const __m256i place = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i here = _mm256_set1_epi32(reinterpret_cast<const std::uint8_t*>(words)[c / 8]);
        return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(here, place), place));
    }
    static float sum(V a) {
        __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
    }
};

template <>
struct Simd<double> {
    static constexpr int W = 4;
    using V = __m256d;
    using M = __m256d;
    static __m256i first(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst64 + 4 - n)); }
    static V zero() { return _mm256_setzero_pd(); }
    static V set(double x) { return _mm256_set1_pd(x); }
    static V load(const double* p) { return _mm256_loadu_pd(p); }
    static V load(const double* p, int n) { return _mm256_maskload_pd(p, first(n)); }
    static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
    static void store(double* p, V v, int n) { _mm256_maskstore_pd(p, first(n), v); }
    static V add(V a, V b) { return _mm256_add_pd(a, b); }
    static V sub(V a, V b) { return _mm256_sub_pd(a, b); }
    static V mul(V a, V b) { return _mm256_mul_pd(a, b); }
    static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
    static V relu(V a) { return _mm256_max_pd(zero(), a); }
    static M positive(V a) { return _mm256_cmp_pd(a, zero(), _CMP_GT_OQ); }
    static V keep(M m, V a) { return _mm256_and_pd(m, a); }
    static M bits(const std::uint32_t* words, Index c) {
        const __m256i place = _mm256_setr_epi64x(1, 2, 4, 8);
        const __m256i here = _mm256_set1_epi64x(words[c / 32] >> (c % 32));
        return _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(here, place), place));
    }
    static double sum(V a) {
        const __m128d x = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
        return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
    }
};

inline std::uint32_t as_bits(__m256i mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

inline void draw_bits(const std::uint32_t* patterns, Key key, std::uint32_t threshold, Index blocks,
                      std::uint32_t* bits) {
    const __m256i low = _mm256_set1_epi32(static_cast<int>(key.low)), high = _mm256_set1_epi32(static_cast<int>(key.high));
    const __m256i one = _mm256_set1_epi32(static_cast<int>(kFirstFactor)), two = _mm256_set1_epi32(static_cast<int>(kSecondFactor));
    const __m256i limit = _mm256_set1_epi32(static_cast<int>(threshold) - 1), half = _mm256_set1_epi32(0xFFFF);
    for (Index block = 0; block < blocks; ++block) {
        std::uint32_t found = 0;
        for (int part = 0; part < 2; ++part) {
            const auto* p = reinterpret_cast<const __m256i*>(patterns + 16 * block + 8 * part);
            __m256i x = _mm256_mullo_epi32(_mm256_xor_si256(_mm256_loadu_si256(p), low), one);
            x = _mm256_xor_si256(_mm256_xor_si256(x, _mm256_srli_epi32(x, 15)), high);
            x = _mm256_mullo_epi32(x, two);
            const __m256i upper = _mm256_srli_epi32(x, 16), lower = _mm256_and_si256(_mm256_xor_si256(x, upper), half);
            found |= as_bits(_mm256_cmpgt_epi32(lower, limit)) << (8 * part);
            found |= as_bits(_mm256_cmpgt_epi32(upper, limit)) << (8 * part + 16);
        }
        bits[block] = found;
    }
}
