// Descending, stable order of the columns of a segment; NaN counts as greater than every number, as in torch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "segments.h"

namespace edhnn {

constexpr Index kCounted = 64;   // up to here counting beats sorting
constexpr Index kInserted = 24;  // narrow tasks leave the lanes empty: insertion up to here, then std::sort

template <typename T>
inline bool greater(T a, T b) {
    return a > b || (a != a && b == b);
}

// rank[i][c]: how many rows come before row i in column c. Every pair of rows is compared once, all columns of a
// task side by side and without a branch: random order costs nothing extra.
template <typename T, typename Lane>
inline void count_ranks(const T* rows, Index row_stride, Index size, Index width, Lane* rank) {
    for (Index j = 0; j < size; ++j) {
        const T* later = rows + j * row_stride;
        Lane* mine = rank + j * width;
        for (Index c = 0; c < width; ++c) mine[c] = 0;
        for (Index i = 0; i < j; ++i) {
            const T* earlier = rows + i * row_stride;
            Lane* other = rank + i * width;
            for (Index c = 0; c < width; ++c) {
                const T a = later[c], b = earlier[c];
                const Lane number = b == b ? 1 : 0, above = a > b ? 1 : (a != a ? number : 0);
                other[c] += above;
                mine[c] += 1 - above;
            }
        }
    }
}

struct Ranked {
    double value;
    Index row;
};

inline void rank_by_sorting(const double* given, Index size, Ranked* ranked, Index* rank) {
    if (size <= kInserted) {
        for (Index i = 0; i < size; ++i) {
            Index place = i;
            for (; place > 0 && greater(given[i], ranked[place - 1].value); --place) ranked[place] = ranked[place - 1];
            ranked[place] = {given[i], i};
        }
    } else {
        for (Index i = 0; i < size; ++i) ranked[i] = {given[i], i};
        std::sort(ranked, ranked + size, [](const Ranked& a, const Ranked& b) {
            return greater(a.value, b.value) || (!greater(b.value, a.value) && a.row < b.row);
        });
    }
    for (Index i = 0; i < size; ++i) rank[ranked[i].row] = i;
}

// Gathers the columns of a task, ranks them if `kSorted`, hands them to `Kernel::solve(column, found)` one by one and
// writes what it found.
template <typename Kernel, typename T, bool kSorted>
class ColumnWorker {
    using Lane = std::conditional_t<sizeof(T) == 4, std::int32_t, double>;  // as wide as T, and quick to count in
    Kernel kernel;
    std::vector<double> given;
    std::vector<typename Kernel::Entry> found;
    std::vector<Index> rank;
    std::vector<Lane> lanes;
    std::vector<Ranked> ranked;

    void rank_columns(const T* rows, Index row_stride, Index size, Index width, Index stride) {
        if (size > kCounted || (width < 4 && size > 4)) {
            for (Index c = 0; c < width; ++c)
                rank_by_sorting(&given[c * stride], size, ranked.data(), &rank[c * stride]);
            return;
        }
        if (width == kBlock) count_ranks(rows, row_stride, size, kBlock, lanes.data());
        else count_ranks(rows, row_stride, size, width, lanes.data());
        for (Index i = 0; i < size; ++i)
            for (Index c = 0; c < width; ++c) rank[c * stride + i] = static_cast<Index>(lanes[i * width + c]);
    }

   public:
    ColumnWorker(const typename Kernel::Input& input, Index largest, Index width)
        : kernel(input, largest),
          given((largest | 1) * width),
          found((largest | 1) * width),
          rank(kSorted ? (largest | 1) * width : 0),
          lanes(kSorted ? std::min(largest, kCounted) * width : 0),
          ranked(kSorted ? largest : 0) {}

    template <typename Result>
    void run(const Segments& segments, const T* values, Index edge, Index first, Index width, Result* out) {
        const Index begin = segments.begin(edge), size = segments.size(edge), columns = segments.num_columns;
        const Index stride = size | 1;  // odd, so that the columns of long segments do not share cache sets
        const Index corner = begin * columns + first;
        for (Index i = 0; i < size; ++i)
            for (Index c = 0; c < width; ++c) given[c * stride + i] = values[corner + i * columns + c];
        if (kSorted) rank_columns(values + corner, columns, size, width, stride);
        for (Index c = 0; c < width; ++c) {
            const Index* order = kSorted ? &rank[c * stride] : nullptr;
            kernel.solve(Column{edge, first + c, begin, size, &given[c * stride], order}, &found[c * stride]);
        }
        for (Index i = 0; i < size; ++i)
            for (Index c = 0; c < width; ++c)
                out[corner + i * columns + c] = static_cast<Result>(found[c * stride + i]);
    }
};

struct SegmentSort {
    struct Input {};
    using Entry = Index;

    SegmentSort(const Input&, Index) {}

    void solve(const Column& column, Index* found) const {
        for (Index i = 0; i < column.size; ++i) found[column.rank[i]] = column.begin + i;
    }
};

}  // namespace edhnn
