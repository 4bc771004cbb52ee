// The native kernels on random and degenerate segments, for `make sanitize`: buffers have exactly the size they need, so
// that the sanitizers see every step outside them, and the answers must satisfy what defines them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "../../src/edhnn/kernels/native/kernels.cpp"
#include "../../src/edhnn/kernels/native/network.cpp"
#include "../../src/edhnn/kernels/native/network_avx2.cpp"
#include "../../src/edhnn/kernels/native/network_avx512.cpp"
#include "../../src/edhnn/kernels/native/network_portable.cpp"
#include "network_checks.h"

namespace {

template <typename T>
struct Calls;
template <>
struct Calls<float> {
    static constexpr auto sort = edhnn_segment_sort_f32;
    static constexpr auto pav = edhnn_segment_pav_f32;
    static constexpr auto tv = edhnn_prox_total_variation_f32;
    static constexpr auto cardinality = edhnn_prox_cardinality_f32;
};
template <>
struct Calls<double> {
    static constexpr auto sort = edhnn_segment_sort_f64;
    static constexpr auto pav = edhnn_segment_pav_f64;
    static constexpr auto tv = edhnn_prox_total_variation_f64;
    static constexpr auto cardinality = edhnn_prox_cardinality_f64;
};

struct Case {
    std::vector<Index> edge_ptr{0};
    Index columns = 0;
    std::vector<double> step, weight, weights, y;

    Index edges() const { return static_cast<Index>(edge_ptr.size()) - 1; }
    Index rows() const { return edge_ptr.back(); }
};

double draw_value(Random& random, int kind) {
    std::normal_distribution<double> normal;
    switch (kind) {
        case 0: return normal(random);
        case 1: return std::round(normal(random));  // ties
        case 2: return 1.5;                         // all equal
        case 3: return (random() % 2 ? 1.0 : -1.0) * 1e30;
        case 4: return normal(random) * 1e-30;
        default: return random() % 3 ? normal(random) : 0.0;
    }
}

template <typename T>
std::vector<T> table(Random& random, const Case& the) {
    std::vector<T> values(the.rows() * the.columns);
    for (Index edge = 0; edge < the.edges(); ++edge) {
        const int kind = static_cast<int>(random() % 6);
        for (Index i = the.edge_ptr[edge] * the.columns; i < the.edge_ptr[edge + 1] * the.columns; ++i)
            values[i] = static_cast<T>(draw_value(random, kind));
    }
    return values;
}

Case draw_case(Random& random, Index largest, Index max_edges, Index max_columns) {
    Case the;
    const Index edges = static_cast<Index>(random() % (max_edges + 1));
    for (Index edge = 0; edge < edges; ++edge)
        the.edge_ptr.push_back(the.rows() + static_cast<Index>(random() % (largest + 1)));
    the.columns = static_cast<Index>(random() % (max_columns + 1));
    const double steps[] = {0.0, 1e-30, 0.1, 1.0, 50.0, 1e30};
    std::uniform_real_distribution<double> positive(0.01, 3.0);
    for (Index edge = 0; edge < edges; ++edge) the.step.push_back(steps[random() % 6]);
    for (Index i = 0; i < the.rows(); ++i) the.weight.push_back(positive(random));
    for (Index i = 0; i < the.rows() * the.columns; ++i) the.weights.push_back(positive(random));
    for (Index i = 0; i < the.rows(); ++i) the.y.push_back(draw_value(random, static_cast<int>(random() % 2)));
    return the;
}

// sum w (a - high)_+ = sum w (low - a)_+ = t, t = step or 2 step (high - low), unless the answer is constant
template <typename T>
void check_clip(const Case& the, const std::vector<T>& a, const std::vector<T>& z, const double* weight, int power) {
    for (Index edge = 0; edge < the.edges(); ++edge)
        for (Index c = 0; c < the.columns; ++c) {
            double high = -INFINITY, low = INFINITY, scale = 0.0, top = 0.0, bottom = 0.0, mass = 0.0;
            for (Index i = the.edge_ptr[edge]; i < the.edge_ptr[edge + 1]; ++i) {
                const double x = z[i * the.columns + c], given = a[i * the.columns + c];
                const double w = weight == nullptr ? 1.0 : weight[i];
                high = std::max(high, x), low = std::min(low, x), scale = std::max(scale, std::fabs(given));
                mass += w;
                top += w * std::max(0.0, given - x);
                bottom += w * std::max(0.0, x - given);
            }
            const double slack = (sizeof(T) == 4 ? 1e-5 : 1e-12) * scale * mass;
            demand(std::fabs(top - bottom) <= slack, "total variation: both sides move by the same mass");
            const double t = power == 1 ? the.step[edge] : 2.0 * the.step[edge] * (high - low);
            const double shown = slack * (1.0 + (power == 2 ? the.step[edge] : 0.0));  // high - low is rounded
            if (high > low) demand(std::fabs(top - t) <= shown, "total variation: the budget is spent");
        }
}

template <typename T>
void check(Random& random, const Case& the) {
    using Call = Calls<T>;
    const std::vector<T> a = table<T>(random, the);
    const Index edges = the.edges(), columns = the.columns;
    const Index* ptr = the.edge_ptr.data();

    std::vector<Index> order(a.size());
    demand(Call::sort(a.data(), ptr, edges, columns, 2, order.data()) == 0, "sort ends");
    for (Index edge = 0; edge < edges; ++edge)
        for (Index c = 0; c < columns; ++c)
            for (Index i = ptr[edge]; i < ptr[edge + 1]; ++i) {
                const Index here = order[i * columns + c];
                demand(here >= ptr[edge] && here < ptr[edge + 1], "sort stays inside its segment");
                if (i == ptr[edge]) continue;
                const Index before = order[(i - 1) * columns + c];
                const T x = a[before * columns + c], y = a[here * columns + c];
                demand(x > y || (x == y && before < here), "sort descends and is stable");
            }

    std::vector<T> found(a.size()), again(a.size());
    const auto same_for_any_threads = [&](auto call) {
        demand(call(2, found.data()) == 0 && call(1, again.data()) == 0, "the call ends");
        demand(found == again, "the number of threads changes nothing");
        for (const T x : found) demand(std::isfinite(x), "finite in, finite out");
    };
    for (int form = 0; form < 3; ++form) {
        const double* weight = form == 0 ? nullptr : form == 1 ? the.weight.data() : the.weights.data();
        const Index row = form == 0 ? 0 : form == 1 ? 1 : columns, column = form == 2 ? 1 : 0;
        same_for_any_threads([&](int threads, T* out) {
            return Call::pav(a.data(), ptr, edges, columns, threads, weight, row, column, out);
        });
        for (Index edge = 0; edge < edges; ++edge)
            for (Index i = ptr[edge] * columns; i < (ptr[edge + 1] - 1) * columns; ++i)
                demand(found[i] >= found[i + columns], "pooled values do not rise");
    }
    for (int power = 1; power <= 2; ++power) {
        for (const double* weight : {static_cast<const double*>(nullptr), the.weight.data()}) {
            same_for_any_threads([&](int threads, T* out) {
                return Call::tv(a.data(), ptr, edges, columns, threads, the.step.data(), weight, power, out);
            });
            check_clip(the, a, found, weight, power);
        }
        same_for_any_threads([&](int threads, T* out) {
            return Call::cardinality(a.data(), ptr, edges, columns, threads, the.step.data(), the.y.data(), power, out);
        });
    }
}

// NaN and infinity spoil their own column of their own segment, and nothing is read or written elsewhere.
template <typename T>
void check_spoiled(Random& random, const Case& the) {
    using Call = Calls<T>;
    if (the.rows() == 0 || the.columns == 0) return;
    std::vector<T> a = table<T>(random, the), clean(a.size()), found(a.size());
    const Index row = static_cast<Index>(random() % the.rows()), column = static_cast<Index>(random() % the.columns);
    Index edge = 0;
    while (the.edge_ptr[edge + 1] <= row) ++edge;
    const auto prox = [&](T* out) {
        return Call::cardinality(a.data(), the.edge_ptr.data(), the.edges(), the.columns, 2, the.step.data(),
                                 the.y.data(), 2, out);
    };
    prox(clean.data());
    a[row * the.columns + column] = random() % 2 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
    prox(found.data());
    for (Index i = 0; i < the.rows(); ++i)
        for (Index c = 0; c < the.columns; ++c) {
            const bool mine = c == column && i >= the.edge_ptr[edge] && i < the.edge_ptr[edge + 1];
            const T x = found[i * the.columns + c];
            demand(mine ? std::isnan(x) : x == clean[i * the.columns + c], "only the spoiled segment is NaN");
        }
    std::vector<Index> order(a.size());
    Call::sort(a.data(), the.edge_ptr.data(), the.edges(), the.columns, 2, order.data());
    std::vector<bool> seen(a.size());
    for (Index i = 0; i < the.rows(); ++i)
        for (Index c = 0; c < the.columns; ++c) seen[order[i * the.columns + c] * the.columns + c] = true;
    for (const bool was : seen) demand(was, "sort is a permutation, NaN or not");
}

}  // namespace

int main() {
    Random random(0);
    int cases = 0;
    const Index shapes[][3] = {{3, 40, 3}, {12, 60, 20}, {60, 30, 40}, {3000, 4, 17}, {1, 500, 33}};
    for (const auto& shape : shapes)
        for (int repeat = 0; repeat < 30; ++repeat, ++cases) {
            const Case the = draw_case(random, shape[0], shape[1], shape[2]);
            check<float>(random, the);
            check<double>(random, the);
            check_spoiled<float>(random, the);
            check_spoiled<double>(random, the);
        }
    for (int set = 0; set <= edhnn::best_level(); ++set) {
        edhnn_instruction_set(set);
        for (int repeat = 0; repeat < 40; ++repeat, ++cases) check_network<float>(random), check_network<double>(random);
    }
    std::printf("%d cases: every access inside its buffer, every answer as defined.\n", cases);
    return 0;
}
