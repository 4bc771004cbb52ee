// How a kernel runs over segments: rows [edge_ptr[e], edge_ptr[e + 1]) of a row-major table belong to hyperedge e, and
// every (hyperedge, column) pair is a problem of its own.
//
// A task is one hyperedge and as many columns as fill a cache line. Its columns are ranked together, gathered into a
// small buffer, solved one after the other in double precision, and written back. Threads own contiguous, equally long
// stretches of tasks; no task depends on another, so the number of threads cannot change a bit of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace edhnn {

using Index = std::int64_t;

enum Status : int { kDone = 0, kOutOfMemory = 1 };

constexpr Index kBlock = 16;              // columns of a task: a cache line of floats, two of doubles
constexpr Index kWorthAThread = 1 << 13;  // entries; below this a thread costs more than it saves

struct Segments {
    const Index* edge_ptr;
    Index num_edges;
    Index num_columns;

    Index begin(Index edge) const { return edge_ptr[edge]; }
    Index size(Index edge) const { return edge_ptr[edge + 1] - edge_ptr[edge]; }
    Index num_rows() const { return num_edges > 0 ? edge_ptr[num_edges] : 0; }
    Index largest() const {
        Index found = 0;
        for (Index edge = 0; edge < num_edges; ++edge) found = std::max(found, size(edge));
        return found;
    }
};

// Whether every number is finite: 0 * x is 0 exactly then.
inline bool all_finite(const double* x, Index size) {
    double zero = 0.0;
    for (Index i = 0; i < size; ++i) zero += 0.0 * x[i];
    return zero == 0.0;
}

// One problem: its place, its values and, for kernels that sort, the rank of each row in descending order.
struct Column {
    Index edge, column, begin, size;
    const double* given;
    const Index* rank;
};

// The tasks of one thread: those whose place, counted in rows times blocks of columns, lies in its share.
template <typename Task>
void for_share(const Segments& segments, Index block, Index thread, Index num_threads, Task task) {
    const Index columns = segments.num_columns, num_blocks = (columns + block - 1) / block;
    const Index total = segments.num_rows() * num_blocks;
    const Index start = total / num_threads * thread + std::min(thread, total % num_threads);
    const Index stop = total / num_threads * (thread + 1) + std::min(thread + 1, total % num_threads);
    const Index* end = segments.edge_ptr + segments.num_edges + 1;
    Index edge = std::upper_bound(segments.edge_ptr, end, start / num_blocks) - segments.edge_ptr - 1;
    for (; edge < segments.num_edges && segments.begin(edge) * num_blocks < stop; ++edge) {
        const Index size = segments.size(edge), corner = segments.begin(edge) * num_blocks;
        for (Index b = 0; b < num_blocks && size > 0; ++b) {
            const Index place = corner + b * size;
            if (place >= start && place < stop) task(edge, b * block, std::min(block, columns - b * block));
        }
    }
}

// Solve every (hyperedge, column). A `Worker` is what one thread needs, made before the threads start so that nothing is
// allocated per segment: Worker(input, largest segment, columns per task), run(segments, values, edge, first column,
// columns, out).
template <typename Worker, typename T, typename Input, typename Result>
Status over_segments(const Segments& segments, const T* values, const Input& input, int threads, Result* out) {
    const Index largest = segments.largest();
    if (largest == 0 || segments.num_columns == 0) return kDone;
    const Index block = std::min(segments.num_columns, kBlock);
    const Index worth = 1 + segments.num_rows() * segments.num_columns / kWorthAThread;
    const Index wanted = std::max<Index>(1, std::min<Index>(threads, worth));
    std::vector<Worker> workers;
    try {
        workers.reserve(wanted);
        for (Index i = 0; i < wanted; ++i) workers.emplace_back(input, largest, block);
    } catch (const std::bad_alloc&) {
        return kOutOfMemory;
    }
    const auto share = [&](Index thread, Index num_threads) {
        for_share(segments, block, thread, num_threads, [&](Index edge, Index first, Index width) {
            workers[thread].run(segments, values, edge, first, width, out);
        });
    };
#ifdef _OPENMP
#pragma omp parallel num_threads(static_cast<int>(wanted)) if (wanted > 1)
    share(omp_get_thread_num(), omp_get_num_threads());
#else
    share(0, 1);
#endif
    return kDone;
}

}  // namespace edhnn
