// The C interface: pointers and sizes in, a status out. Nothing of Python or torch is included; `native_backend.py` calls
// it through ctypes. Raise the ABI number with every change of a signature or of what a function promises.
#include <cstdint>

#include "api.h"
#include "cardinality.h"
#include "order.h"
#include "pav.h"
#include "segments.h"
#include "water.h"
#include "water_lanes.h"

using namespace edhnn;

EDHNN_API int edhnn_kernels_abi() { return 4; }

EDHNN_API int edhnn_kernels_openmp() {
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

#define EDHNN_KERNELS(T, SUFFIX)                                                                                       \
    EDHNN_API int edhnn_segment_sort_##SUFFIX(const T* values, const Index* edge_ptr, Index num_edges,                 \
                                              Index num_columns, int threads, Index* order) {                          \
        return over_segments<ColumnWorker<SegmentSort, T, true>>({edge_ptr, num_edges, num_columns}, values, SegmentSort::Input{}, threads, order);             \
    }                                                                                                                  \
    EDHNN_API int edhnn_segment_pav_##SUFFIX(const T* values, const Index* edge_ptr, Index num_edges,                  \
                                             Index num_columns, int threads, const double* weight, Index row_stride,   \
                                             Index column_stride, T* out) {                                            \
        return over_segments<ColumnWorker<SegmentPav, T, false>>({edge_ptr, num_edges, num_columns}, values,                                   \
                                         SegmentPav::Input{weight, row_stride, column_stride}, threads, out);                           \
    }                                                                                                                  \
    EDHNN_API int edhnn_prox_total_variation_##SUFFIX(const T* values, const Index* edge_ptr, Index num_edges,         \
                                                      Index num_columns, int threads, const double* step,              \
                                                      const double* weight, int power, T* out) {                       \
        return over_segments<TotalVariationWorker<T>>({edge_ptr, num_edges, num_columns}, values, TotalVariationProx::Input{step, weight, power},    \
                                                 threads, out);                                                        \
    }                                                                                                                  \
    EDHNN_API int edhnn_prox_cardinality_##SUFFIX(const T* values, const Index* edge_ptr, Index num_edges,             \
                                                  Index num_columns, int threads, const double* step,                  \
                                                  const double* cut_weight, int power, T* out) {                       \
        return over_segments<ColumnWorker<CardinalityProx, T, true>>({edge_ptr, num_edges, num_columns}, values, CardinalityProx::Input{step, cut_weight, power},   \
                                              threads, out);                                                           \
    }

EDHNN_KERNELS(float, f32)
EDHNN_KERNELS(double, f64)
