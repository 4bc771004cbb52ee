// The network kernels for any machine.
#include "targets.h"

namespace edhnn::portable {
#include "simd_portable.h"
#include "target.h"
}  // namespace edhnn::portable

namespace edhnn {
template <>
Kernels<float> portable_kernels<float>() { return portable::kernels<float>(); }
template <>
Kernels<double> portable_kernels<double>() { return portable::kernels<double>(); }
}  // namespace edhnn
