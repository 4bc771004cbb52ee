// Pool adjacent violators: the projection of a sequence onto the non-increasing cone in a weighted norm.
#pragma once

#include <limits>
#include <vector>

#include "segments.h"

namespace edhnn {

// Blocks are pooled from left to right while the one before is not above; ties are pooled too. `make(i)` is the block of
// place i, `merge(left, right)` the block of both; blocks carry `value`. Returns the number of blocks.
template <typename Block, typename Make, typename Merge>
Index pool_adjacent_violators(Index size, Block* blocks, Make make, Merge merge) {
    Index count = 0;
    for (Index i = 0; i < size; ++i) {
        Block block = make(i);
        while (count > 0 && blocks[count - 1].value <= block.value) block = merge(blocks[--count], block);
        blocks[count++] = block;
    }
    return count;
}

struct MeanBlock {
    double value, sum, weight;
    Index size;
};

inline MeanBlock merge_means(const MeanBlock& left, const MeanBlock& right) {
    const double sum = left.sum + right.sum, weight = left.weight + right.weight;
    return {sum / weight, sum, weight, left.size + right.size};
}

// argmin over z_1 >= ... >= z_k of sum_i w_i (z_i - s_i)^2
struct SegmentPav {
    struct Input {
        const double* weight;  // null: ones
        Index row_stride, column_stride;
    };
    using Entry = double;
    Input input;
    std::vector<MeanBlock> blocks;

    SegmentPav(const Input& given, Index largest) : input(given), blocks(largest) {}

    void solve(const Column& column, double* found) {
        const double* given = column.given;
        const double* weight = input.weight;
        if (weight != nullptr) weight += column.begin * input.row_stride + column.column * input.column_stride;
        double zero = 0.0;
        const Index count = pool_adjacent_violators(
            column.size, blocks.data(),
            [&](Index i) {
                const double w = weight == nullptr ? 1.0 : weight[i * input.row_stride];
                zero += 0.0 * w + 0.0 * given[i];
                return MeanBlock{given[i], w * given[i], w, 1};
            },
            merge_means);
        Index i = 0;
        for (Index b = 0; b < count; ++b) {
            const double value = zero == 0.0 ? blocks[b].value : std::numeric_limits<double>::quiet_NaN();
            for (Index n = 0; n < blocks[b].size; ++n) found[i++] = value;
        }
    }
};

}  // namespace edhnn
