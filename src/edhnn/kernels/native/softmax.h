// Softmax and the first maximum inside each hyperedge, column by column. A hyperedge is never shared between threads.
#pragma once

#include <limits>

#include "links.h"

namespace edhnn {

// out = exp(x - max) / sum, the sum and the largest value per column kept in `space`.
template <typename T>
void softmax_segment(const T* x, Index rows, Index columns, T* space, T* out) {
    T *most = space, *total = space + columns;
    for (Index c = 0; c < columns; ++c) most[c] = -std::numeric_limits<T>::infinity(), total[c] = T(0);
    for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) most[c] = x[i * columns + c] > most[c] ? x[i * columns + c] : most[c];
    for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) {
            const T y = std::exp(x[i * columns + c] - most[c]);
            out[i * columns + c] = y;
            total[c] += y;
        }
    for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) out[i * columns + c] /= total[c];
}

// out = s (g - sum of s g)
template <typename T>
void softmax_gradient(const T* g, const T* s, Index rows, Index columns, T* space, T* out) {
    std::fill(space, space + columns, T(0));
    for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) space[c] += g[i * columns + c] * s[i * columns + c];
    for (Index i = 0; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) out[i * columns + c] = s[i * columns + c] * (g[i * columns + c] - space[c]);
}

// The first row (counted over all segments) with the largest value; NaN counts as the largest; -1 for an empty segment.
template <typename T>
void argmax_segment(const T* x, Index first, Index rows, Index columns, Index* out) {
    for (Index c = 0; c < columns; ++c) out[c] = rows > 0 ? first : -1;
    for (Index i = 1; i < rows; ++i)
        for (Index c = 0; c < columns; ++c) {
            const T most = x[(out[c] - first) * columns + c], here = x[i * columns + c];
            if (here > most || (here != here && most == most)) out[c] = first + i;
        }
}

enum class SegmentTask { kSoftmax, kSoftmaxGradient, kArgmax };

template <typename T, SegmentTask TASK>
struct SegmentGroups {
    const T *x, *soft;
    const Index* edge_ptr;
    Index edges, columns, groups;
    T* space;
    T* out;
    Index* rows_out;

    void operator()(Index group, int thread) const {
        const Index total = edge_ptr[edges], begin = total * group / groups, end = total * (group + 1) / groups;
        const Index* stop = edge_ptr + edges;
        Index edge = group == 0 ? 0 : std::lower_bound(edge_ptr, stop, begin) - edge_ptr;
        const Index last = group + 1 == groups ? edges : std::lower_bound(edge_ptr, stop, end) - edge_ptr;
        T* mine = space + thread * 2 * columns;
        for (; edge < last; ++edge) {
            const Index first = edge_ptr[edge], rows = edge_ptr[edge + 1] - first, corner = first * columns;
            if (TASK == SegmentTask::kSoftmax) softmax_segment(x + corner, rows, columns, mine, out + corner);
            if (TASK == SegmentTask::kSoftmaxGradient)
                softmax_gradient(x + corner, soft + corner, rows, columns, mine, out + corner);
            if (TASK == SegmentTask::kArgmax) argmax_segment(x + corner, first, rows, columns, rows_out + edge * columns);
        }
    }
};

template <SegmentTask TASK, typename T>
Status over_groups(const T* x, const T* soft, const Index* edge_ptr, Index edges, Index columns, int threads, T* out,
                   Index* rows_out) {
    if (edges == 0 || columns == 0) return kDone;
    Workspace space;
    space.take<T>(threads * 2 * columns);
    if (!space.reserve()) return kOutOfMemory;
    T* scratch = space.take<T>(threads * 2 * columns);
    const Index groups = groups_for(edge_ptr[edges], columns);
    in_parallel(groups, threads, SegmentGroups<T, TASK>{x, soft, edge_ptr, edges, columns, groups, scratch, out, rows_out});
    return kDone;
}

}  // namespace edhnn
