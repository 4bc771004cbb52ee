// The proximal operator of a cardinality-based potential: sort, pool, undo the sort.
//
//     argmin_z  step <y, sort_descending(z)>^p + 1/2 |z - a|^2,   p = 1, 2, any y
//
// In sorted order s of a the answer is z(tau) = PAV(s - tau y) with tau = step for p = 1 and, for p = 2, the root of
// phi(tau) = <y, z(tau)> - tau / (2 step), a decreasing piecewise linear function.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pav.h"
#include "segments.h"
#include "water.h"

namespace edhnn {

// A pooled stretch of s - tau y: sum of s, of y and of |y|. Where the sum of y is nothing but rounding it is zero.
struct TiltedBlock {
    double value, sum, tilt, tilt_size;
    Index size;

    double mean_tilt() const {
        const double n = static_cast<double>(size);
        const double noise = n * std::numeric_limits<double>::epsilon() * tilt_size;
        return std::fabs(tilt) <= noise ? 0.0 : tilt / n;
    }
};

struct CardinalityProx {
    struct Input {
        const double* step;
        const double* cut_weight;
        int power;
    };
    using Entry = double;
    Input input;
    std::vector<double> sorted, tilt;
    std::vector<TiltedBlock> blocks;

    CardinalityProx(const Input& given, Index largest)
        : input(given), sorted(largest), tilt(largest), blocks(largest) {}

    static double value_of(const TiltedBlock& block, double tau) {
        return block.sum / static_cast<double>(block.size) - tau * block.mean_tilt();
    }

    static TiltedBlock merge(const TiltedBlock& left, const TiltedBlock& right, double tau) {
        TiltedBlock both{0.0, left.sum + right.sum, left.tilt + right.tilt, left.tilt_size + right.tilt_size,
                         left.size + right.size};
        both.value = value_of(both, tau);
        return both;
    }

    // The blocks of PAV(s - tau y), from single places ...
    Index pool(Index size, double tau) {
        const auto single = [&](Index i) {
            return TiltedBlock{sorted[i] - tau * tilt[i], sorted[i], tilt[i], std::fabs(tilt[i]), 1};
        };
        return pool_adjacent_violators(size, blocks.data(), single,
                                       [tau](const auto& left, const auto& right) { return merge(left, right, tau); });
    }

    // ... or from the blocks of a smaller tau: for non-increasing y they only ever grow together.
    Index pool_on(Index count, double tau) {
        const auto again = [&](Index i) {
            TiltedBlock block = blocks[i];
            block.value = value_of(block, tau);
            return block;
        };
        return pool_adjacent_violators(count, blocks.data(), again,
                                       [tau](const auto& left, const auto& right) { return merge(left, right, tau); });
    }

    // With the blocks held fixed, <y, z(tau)> = A - tau B; this is where A - tau B = tau / (2 step).
    double root_of_piece(Index count, double step) const {
        double a = 0.0, b = 0.0;
        for (Index i = 0; i < count; ++i) {
            const double mean_tilt = blocks[i].mean_tilt();
            a += mean_tilt * blocks[i].sum;
            b += mean_tilt * mean_tilt * static_cast<double>(blocks[i].size);
        }
        return a * saturate(step, b);
    }

    // Semismooth Newton on phi, each step exact on its piece; it ends when a step stays on its piece. Left and right of
    // the root are kept. A step that leaves them is first taken to just inside the end it passed, for rounding alone may
    // have carried it over, and the next time to their middle, so that no cycle can last.
    // Leaves the final blocks; returns their number.
    Index newton(Index size, double step) {
        Index count = pool(size, 0.0);
        double next = root_of_piece(count, step);
        if (next < 0.0) {  // <y, s> < 0: mirror y, the potential is even in it
            for (Index i = 0; i < size; ++i) tilt[i] = -tilt[i];
            next = -next;
            count = pool(size, 0.0);
        }
        double steepest = std::fabs(tilt[0]);
        bool grows = true;
        for (Index i = 1; i < size; ++i) {
            steepest = std::max(steepest, std::fabs(tilt[i]));
            grows = grows && tilt[i] <= tilt[i - 1];
        }
        const double visible = std::numeric_limits<double>::epsilon() *
                               std::max(std::fabs(sorted[0]), std::fabs(sorted[size - 1]));
        double tau = 0.0, left = 0.0, right = std::numeric_limits<double>::infinity();
        bool halve = false;
        while (next != tau) {
            (next > tau ? left : right) = tau;
            if (!(next > left && next < right)) {
                const double nudge = 4.0 * std::numeric_limits<double>::epsilon() * right;
                next = halve || right - left <= nudge ? left + 0.5 * (right - left)
                       : next <= left                 ? left + nudge
                                                      : right - nudge;
                halve = !halve;
            }
            if (next == left || next == right || (right - left) * steepest <= visible) break;
            count = grows && next > tau ? pool_on(count, next) : pool(size, next);
            tau = next;
            next = root_of_piece(count, step);
        }
        return count;
    }

    void solve(const Column& column, double* found) {
        const Index size = column.size;
        const double step = input.step[column.edge];
        const double* y = input.cut_weight + column.begin;
        if (!all_finite(column.given, size) || !all_finite(&step, 1) || !all_finite(y, size)) {
            std::fill(found, found + size, std::numeric_limits<double>::quiet_NaN());
            return;
        }
        for (Index i = 0; i < size; ++i) sorted[column.rank[i]] = column.given[i];
        std::copy(y, y + size, tilt.begin());
        const Index count = input.power == 1 ? pool(size, step) : newton(size, step);
        double* pooled = sorted.data();
        for (Index b = 0; b < count; ++b) pooled = std::fill_n(pooled, blocks[b].size, blocks[b].value);
        for (Index i = 0; i < size; ++i) found[i] = sorted[column.rank[i]];
    }
};

}  // namespace edhnn
