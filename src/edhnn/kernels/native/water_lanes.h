// Total variation for small segments without weights: all columns of a task side by side, one lane each.
//
// The same clip as in water.h, found without a branch that data could turn. A level is the largest of its lines,
//     high(t) = max_j mean(s_0 .. s_j) - t / (j + 1),
// and the root of a largest of falling lines is the largest of their roots, so for p = 2
//     t = max_{j, i} (mean of the j + 1 largest - mean of the i + 1 smallest) step / (1/2 + step (1/(j+1) + 1/(i+1))).
#pragma once

#include <algorithm>
#include <vector>

#include "order.h"
#include "segments.h"
#include "water.h"

namespace edhnn {

constexpr Index kPaired = 32;  // up to here trying every pair of lines beats sorting and sweeping

template <typename T>
class TotalVariationWorker {
    using Lanes = double[kBlock];
    TotalVariationProx::Input input;
    ColumnWorker<TotalVariationProx, T, true> columns;
    Lanes given[kPaired], sorted[kPaired], above[kPaired], below[kPaired];
    double inverse[kPaired], rate[kPaired][kPaired], rate_step = -1.0;
    Index rate_size = 0;

    void tabulate(double step, Index size) {
        if (step == rate_step && size <= rate_size) return;
        rate_step = step, rate_size = size;
        for (Index j = 0; j + 1 < size; ++j)
            for (Index i = 0; i + j + 1 < size; ++i) rate[j][i] = saturate(step, inverse[j] + inverse[i]);
    }

    void sort_lanes(Index size) {
        for (Index i = 0; i < size; ++i) {
            for (Index c = 0; c < kBlock; ++c) sorted[i][c] = given[i][c];
            for (Index j = i; j > 0; --j)
                for (Index c = 0; c < kBlock; ++c) {
                    const double a = sorted[j - 1][c], b = sorted[j][c];
                    sorted[j - 1][c] = std::max(a, b);
                    sorted[j][c] = std::min(a, b);
                }
        }
    }

    void average_lanes(Index size) {
        for (Index c = 0; c < kBlock; ++c) above[0][c] = sorted[0][c], below[0][c] = sorted[size - 1][c];
        for (Index j = 1; j < size; ++j)
            for (Index c = 0; c < kBlock; ++c) {
                above[j][c] = above[j - 1][c] + (sorted[j][c] - above[j - 1][c]) * inverse[j];
                below[j][c] = below[j - 1][c] + (sorted[size - 1 - j][c] - below[j - 1][c]) * inverse[j];
            }
    }

    void find_band(Index size, double step, double* low, double* high) {
        Lanes t;
        std::fill(t, t + kBlock, input.power == 1 ? step : 0.0);
        for (Index j = 0; input.power == 2 && j + 1 < size; ++j)
            for (Index i = 0; i + j + 1 < size; ++i)
                for (Index c = 0; c < kBlock; ++c) t[c] = std::max(t[c], (above[j][c] - below[i][c]) * rate[j][i]);
        for (Index c = 0; c < kBlock; ++c) high[c] = above[0][c] - t[c], low[c] = below[0][c] + t[c];
        for (Index j = 1; j < size; ++j)
            for (Index c = 0; c < kBlock; ++c) {
                high[c] = std::max(high[c], above[j][c] - t[c] * inverse[j]);
                low[c] = std::min(low[c], below[j][c] + t[c] * inverse[j]);
            }
        for (Index c = 0; c < kBlock; ++c) {
            const bool apart = low[c] < high[c];
            low[c] = apart ? low[c] : above[size - 1][c];
            high[c] = apart ? high[c] : above[size - 1][c];
        }
    }

   public:
    TotalVariationWorker(const TotalVariationProx::Input& given_input, Index largest, Index width)
        : input(given_input), columns(given_input, largest, width) {
        for (Index j = 0; j < kPaired; ++j) inverse[j] = 1.0 / static_cast<double>(j + 1);
    }

    void run(const Segments& segments, const T* values, Index edge, Index first, Index width, T* out) {
        const Index size = segments.size(edge), stride = segments.num_columns;
        const double step = input.step[edge];
        if (input.weight != nullptr || size > kPaired || width < kBlock / 4 || !all_finite(&step, 1)) {
            columns.run(segments, values, edge, first, width, out);
            return;
        }
        const Index corner = segments.begin(edge) * stride + first;
        Lanes low, high, spoiled{};
        for (Index i = 0; i < size; ++i) {
            const T* row = values + corner + i * stride;
            if (width == kBlock) std::copy(row, row + kBlock, given[i]);
            else std::fill(std::copy(row, row + width, given[i]), given[i] + kBlock, 0.0);
            for (Index c = 0; c < kBlock; ++c) spoiled[c] += 0.0 * given[i][c];  // NaN unless all are finite
        }
        tabulate(step, size);
        sort_lanes(size);
        average_lanes(size);
        find_band(size, step, low, high);
        for (Index i = 0; i < size; ++i) {
            Lanes clipped;
            for (Index c = 0; c < kBlock; ++c)
                clipped[c] = std::min(std::max(given[i][c], low[c]), high[c]) + spoiled[c];
            T* row = out + corner + i * stride;
            for (Index c = 0; c < width; ++c) row[c] = static_cast<T>(clipped[c]);
        }
    }
};

}  // namespace edhnn
