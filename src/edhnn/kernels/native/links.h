// How the network kernels run over links. A link joins a row to a column; `Side` is one of its two compressed orders.
//
// Work is cut into groups that own equally many links, wherever rows begin, so a row of a million links is shared like a
// million rows of one. A group sums the rows that begin in it; of a row that began earlier it sums a piece, which is
// added when all are done, in order. The number of groups depends on the problem's size only, and each group runs from
// start to end on one thread: the number of threads cannot change a bit of the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "segments.h"

namespace edhnn {

struct Side {
    const Index* ptr;    // links [ptr[r], ptr[r + 1]) belong to owner r
    const Index* other;  // who is at the other end of a link
    const Index* link;   // the number of a link; null: its place in this order
    Index count;         // owners

    Index num_links() const { return count > 0 ? ptr[count] : 0; }
    Index id(Index place) const { return link != nullptr ? link[place] : place; }
};

// The links of one group: the end of a row that began earlier, then the rows that begin here.
struct Share {
    Index begin, head_end, end, first, last;

    Share(const Side& side, Index group, Index groups) {
        const Index links = side.num_links();
        begin = links * group / groups, end = links * (group + 1) / groups;
        const Index* stop = side.ptr + side.count;
        first = group == 0 ? 0 : std::lower_bound(side.ptr, stop, begin) - side.ptr;
        last = group + 1 == groups ? side.count : std::lower_bound(side.ptr, stop, end) - side.ptr;
        head_end = side.count > 0 ? std::min(end, side.ptr[first]) : begin;
    }
    bool has_head() const { return head_end > begin; }
};

// Numbers per row of a table that is scattered into: the channels, two moments, and what fills the last cache line.
template <typename T>
constexpr Index table_width(Index channels) {
    const Index line = 64 / static_cast<Index>(sizeof(T));
    return (channels + 2 + line - 1) / line * line;
}

constexpr Index kWorthAGroup = 1 << 16;  // links times channels
constexpr Index kMostGroups = 256;

inline Index groups_for(Index links, Index channels) {
    const Index worth = std::min(kMostGroups, links * std::max<Index>(channels, 1) / kWorthAGroup);
    return std::max<Index>(1, std::min(links, worth));
}

// Run work(group, thread) for every group, each once.
template <typename Work>
void in_parallel(Index groups, Index threads, const Work& work) {
#ifdef _OPENMP
    const int wanted = static_cast<int>(std::max<Index>(1, std::min(threads, groups)));
#pragma omp parallel for schedule(dynamic, 1) num_threads(wanted) if (wanted > 1)
    for (Index group = 0; group < groups; ++group) work(group, omp_get_thread_num());
#else
    (void)threads;
    for (Index group = 0; group < groups; ++group) work(group, 0);
#endif
}

// Scratch memory of the calling thread, kept between calls: fresh pages cost several times what reused ones do.
// Parts are counted first (a dry run of the same code) and then handed out, each on its own cache lines.
class Workspace {
   public:
    template <typename T>
    T* take(Index count) {
        const std::size_t start = used_;
        used_ += (static_cast<std::size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
        return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + start);
    }
    bool reserve() {
        Kept& kept = block();
        if (kept.size < used_) {
            kept.memory.reset();
            kept.size = 0;
            kept.memory.reset(new (std::nothrow) char[used_ + kLine]);
            if (kept.memory == nullptr) return false;
            kept.size = used_;
        }
        const auto address = reinterpret_cast<std::uintptr_t>(kept.memory.get());
        base_ = kept.memory.get() + (kLine - address % kLine) % kLine;
        used_ = 0;
        return true;
    }
    ~Workspace() {
        if (block().size > kKept) block() = Kept{};
    }

   private:
    struct Kept {
        std::unique_ptr<char[]> memory;
        std::size_t size = 0;
    };
    static Kept& block() {
        static thread_local Kept kept;
        return kept;
    }
    static constexpr std::size_t kLine = 64, kKept = std::size_t{1} << 28;
    char* base_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace edhnn
