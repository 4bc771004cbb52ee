// The network kernels for machines with AVX2 and fused multiply-add.
#include "targets.h"

#ifdef EDHNN_X86

EDHNN_TARGET("avx2,fma")
namespace edhnn::avx2 {
#include "simd_avx2.h"
#include "target.h"
}  // namespace edhnn::avx2

namespace edhnn {
template <>
Kernels<float> avx2_kernels<float>() { return avx2::kernels<float>(); }
template <>
Kernels<double> avx2_kernels<double>() { return avx2::kernels<double>(); }
}  // namespace edhnn
EDHNN_TARGET_END

#endif
