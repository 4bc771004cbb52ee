// The C interface of the network kernels, and the choice of instruction set at run time.
#include <atomic>

#include "api.h"
#include "softmax.h"
#include "targets.h"

namespace edhnn {

enum Level : int { kPortable = 0, kAvx2 = 1, kAvx512 = 2 };

inline int best_level() {
#if defined(EDHNN_X86) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return kAvx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2;
#endif
    return kPortable;
}

inline std::atomic<int>& level() {
    static std::atomic<int> chosen{best_level()};
    return chosen;
}

template <typename T>
Kernels<T> chosen_kernels() {
#ifdef EDHNN_X86
    if (level() == kAvx512) return avx512_kernels<T>();
    if (level() == kAvx2) return avx2_kernels<T>();
#endif
    return portable_kernels<T>();
}

}  // namespace edhnn

// The instruction set in use: 0 portable, 1 AVX2, 2 AVX-512. Wanting one (not negative) that the machine lacks changes
// nothing.
EDHNN_API int edhnn_instruction_set(int wanted) {
    if (wanted >= 0 && wanted <= edhnn::best_level()) edhnn::level() = wanted;
    return edhnn::level();
}

#define EDHNN_NETWORK(T, SUFFIX)                                                                          \
    EDHNN_API int edhnn_pair_forward_##SUFFIX(const edhnn::Pair<T>* problem) {                            \
        return edhnn::chosen_kernels<T>().pair_forward(*problem);                                         \
    }                                                                                                     \
    EDHNN_API int edhnn_pair_backward_##SUFFIX(const edhnn::Pair<T>* problem) {                           \
        return edhnn::chosen_kernels<T>().pair_backward(*problem);                                        \
    }                                                                                                     \
    EDHNN_API int edhnn_gather_##SUFFIX(const edhnn::Gather<T>* problem) {                                \
        return edhnn::chosen_kernels<T>().gather(*problem);                                               \
    }                                                                                                     \
    EDHNN_API int edhnn_gather_weight_##SUFFIX(const edhnn::Gather<T>* problem) {                         \
        return edhnn::chosen_kernels<T>().gather_weight(*problem);                                        \
    }                                                                                                     \
    EDHNN_API int edhnn_rows_forward_##SUFFIX(const edhnn::Rows<T>* problem) {                            \
        return edhnn::chosen_kernels<T>().rows_forward(*problem);                                         \
    }                                                                                                     \
    EDHNN_API int edhnn_rows_backward_##SUFFIX(const edhnn::Rows<T>* problem) {                           \
        return edhnn::chosen_kernels<T>().rows_backward(*problem);                                        \
    }                                                                                                     \
    EDHNN_API int edhnn_moments_forward_##SUFFIX(const edhnn::Moments<T>* problem) {                      \
        return edhnn::chosen_kernels<T>().moments_forward(*problem);                                      \
    }                                                                                                     \
    EDHNN_API int edhnn_moments_backward_##SUFFIX(const edhnn::Moments<T>* problem) {                     \
        return edhnn::chosen_kernels<T>().moments_backward(*problem);                                     \
    }                                                                                                     \
    EDHNN_API int edhnn_column_sum_##SUFFIX(const edhnn::Columns<T>* problem) {                           \
        return edhnn::chosen_kernels<T>().column_sum(*problem);                                           \
    }                                                                                                     \
    EDHNN_API int edhnn_add_bias_##SUFFIX(const edhnn::Columns<T>* problem) {                             \
        return edhnn::chosen_kernels<T>().add_bias(*problem);                                             \
    }                                                                                                     \
    EDHNN_API int edhnn_fold_forward_##SUFFIX(const edhnn::Fold<T>* problem) {                            \
        return edhnn::chosen_kernels<T>().fold_forward(*problem);                                         \
    }                                                                                                     \
    EDHNN_API int edhnn_fold_backward_##SUFFIX(const edhnn::Fold<T>* problem) {                           \
        return edhnn::chosen_kernels<T>().fold_backward(*problem);                                        \
    }

#define EDHNN_SOFTMAX(T, SUFFIX)                                                                                  \
    EDHNN_API int edhnn_segment_softmax_##SUFFIX(const T* x, const edhnn::Index* edge_ptr, edhnn::Index edges,    \
                                                 edhnn::Index columns, int threads, T* out) {                     \
        return edhnn::over_groups<edhnn::SegmentTask::kSoftmax, T>(x, nullptr, edge_ptr, edges, columns, threads, \
                                                                   out, nullptr);                                 \
    }                                                                                                             \
    EDHNN_API int edhnn_segment_softmax_backward_##SUFFIX(const T* grad, const edhnn::Index* edge_ptr,            \
                                                          edhnn::Index edges, edhnn::Index columns, int threads,  \
                                                          const T* soft, T* out) {                                \
        return edhnn::over_groups<edhnn::SegmentTask::kSoftmaxGradient, T>(grad, soft, edge_ptr, edges, columns,  \
                                                                           threads, out, nullptr);                \
    }                                                                                                             \
    EDHNN_API int edhnn_segment_argmax_##SUFFIX(const T* x, const edhnn::Index* edge_ptr, edhnn::Index edges,     \
                                                edhnn::Index columns, int threads, edhnn::Index* out) {           \
        return edhnn::over_groups<edhnn::SegmentTask::kArgmax, T>(x, nullptr, edge_ptr, edges, columns, threads,  \
                                                                  nullptr, out);                                  \
    }

EDHNN_NETWORK(float, f32)
EDHNN_NETWORK(double, f64)
EDHNN_SOFTMAX(float, f32)
EDHNN_SOFTMAX(double, f64)
