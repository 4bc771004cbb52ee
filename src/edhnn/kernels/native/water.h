// The proximal operator of total variation: clip to two water levels.
//
//     argmin_z  step (max z - min z)^p + 1/2 sum_v w_v (z_v - a_v)^2,   p = 1, 2
//
// z is a clipped to [low, high] with sum w (a - high)_+ = sum w (low - a)_+ = t, where t = step for p = 1 and
// t = 2 step (high - low) for p = 2; where the levels meet, z is the weighted mean.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "segments.h"

namespace edhnn {

// step / (1/2 + step x), without overflow for any finite step
inline double saturate(double step, double x) {
    return step <= 1.0 ? step / (0.5 + step * x) : 1.0 / (0.5 / step + x);
}

struct Band {
    double low, high;
};

// Both levels move together as the budget t grows from 0. While the values up to s[top] are under water,
//     high(t) = s[top] - (t - upper) / above,   above = their weight, upper = the budget that brought them down to s[top],
// and likewise from below. The sweep passes breakpoints (budgets at which a level reaches the next value) for as long as
// the t wanted lies beyond: for p = 2 as long as high - low > t / (2 step) there. Then t is on a known linear piece.
// Sums are of non-negative terms, so nothing cancels, and there is no division before the end.
template <bool kWeighted>
Band clip_band(const double* s, const double* w, Index size, double step, int power) {
    const auto weight = [w](Index i) { return kWeighted ? w[i] : 1.0; };
    const double slope = 0.5 / step;
    Index top = 0, bottom = size - 1;
    double above = weight(top), below = weight(bottom), upper = 0.0, lower = 0.0;
    while (top + 1 < bottom) {
        const double next_upper = upper + above * (s[top] - s[top + 1]);
        const double next_lower = lower + below * (s[bottom - 1] - s[bottom]);
        if (next_upper <= next_lower) {
            const double t = next_upper;
            if (power == 1 ? step <= t : !((s[top + 1] - s[bottom]) * below - (t - lower) > t * below * slope)) break;
            upper = t;
            above += weight(++top);
        } else {
            const double t = next_lower;
            if (power == 1 ? step <= t : !((s[top] - s[bottom - 1]) * above - (t - upper) > t * above * slope)) break;
            lower = t;
            below += weight(--bottom);
        }
    }
    const double gap = (s[top] - s[bottom]) + upper / above + lower / below;
    const double t = power == 1 ? step : gap * saturate(step, 1.0 / above + 1.0 / below);
    const double high = s[top] - (t - upper) / above, low = s[bottom] + (t - lower) / below;
    if (low < high || top + 1 < bottom) return {low, high};
    const double mean = (s[bottom] - lower / below) + gap * (above / (above + below));
    return {mean, mean};
}

struct TotalVariationProx {
    struct Input {
        const double* step;
        const double* weight;  // null: ones
        int power;
    };
    using Entry = double;
    Input input;
    std::vector<double> sorted, weight;

    TotalVariationProx(const Input& given, Index largest)
        : input(given), sorted(largest), weight(given.weight == nullptr ? 0 : largest) {}

    void solve(const Column& column, double* found) {
        const Index size = column.size;
        const double step = input.step[column.edge];
        const double* w = input.weight == nullptr ? nullptr : input.weight + column.begin;
        if (!all_finite(column.given, size) || !all_finite(&step, 1) || (w != nullptr && !all_finite(w, size))) {
            std::fill(found, found + size, std::numeric_limits<double>::quiet_NaN());
            return;
        }
        if (size == 1) {
            found[0] = column.given[0];
            return;
        }
        for (Index i = 0; i < size; ++i) sorted[column.rank[i]] = column.given[i];
        if (w != nullptr)
            for (Index i = 0; i < size; ++i) weight[column.rank[i]] = w[i];
        const Band band = w == nullptr ? clip_band<false>(sorted.data(), nullptr, size, step, input.power)
                                       : clip_band<true>(sorted.data(), weight.data(), size, step, input.power);
        for (Index i = 0; i < size; ++i) found[i] = std::min(std::max(column.given[i], band.low), band.high);
    }
};

}  // namespace edhnn
