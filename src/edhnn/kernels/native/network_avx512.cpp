// The network kernels for machines with AVX-512.
#include "targets.h"

#ifdef EDHNN_X86

EDHNN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
namespace edhnn::avx512 {
#include "simd_avx512.h"
#include "target.h"
}  // namespace edhnn::avx512

namespace edhnn {
template <>
Kernels<float> avx512_kernels<float>() { return avx512::kernels<float>(); }
template <>
Kernels<double> avx512_kernels<double>() { return avx512::kernels<double>(); }
}  // namespace edhnn
EDHNN_TARGET_END

#endif
