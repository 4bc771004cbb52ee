// The network kernels for `make sanitize`: random links, every option, buffers of exactly the size they need. Sums must
// satisfy what links them: a gather and its transpose are adjoint, and threads change nothing.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using edhnn::Index;
using Random = std::mt19937_64;

void demand(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::exit(1);
}

template <typename T>
struct NetworkCalls;
template <>
struct NetworkCalls<float> {
    static constexpr auto pair_forward = edhnn_pair_forward_f32, pair_backward = edhnn_pair_backward_f32;
    static constexpr auto gather = edhnn_gather_f32, gather_weight = edhnn_gather_weight_f32;
    static constexpr auto rows_forward = edhnn_rows_forward_f32, rows_backward = edhnn_rows_backward_f32;
    static constexpr auto moments_forward = edhnn_moments_forward_f32, moments_backward = edhnn_moments_backward_f32;
    static constexpr auto column_sum = edhnn_column_sum_f32, add_bias = edhnn_add_bias_f32;
    static constexpr auto fold_forward = edhnn_fold_forward_f32, fold_backward = edhnn_fold_backward_f32;
    static constexpr auto softmax = edhnn_segment_softmax_f32;
    static constexpr auto softmax_backward = edhnn_segment_softmax_backward_f32;
    static constexpr auto argmax = edhnn_segment_argmax_f32;
};
template <>
struct NetworkCalls<double> {
    static constexpr auto pair_forward = edhnn_pair_forward_f64, pair_backward = edhnn_pair_backward_f64;
    static constexpr auto gather = edhnn_gather_f64, gather_weight = edhnn_gather_weight_f64;
    static constexpr auto rows_forward = edhnn_rows_forward_f64, rows_backward = edhnn_rows_backward_f64;
    static constexpr auto moments_forward = edhnn_moments_forward_f64, moments_backward = edhnn_moments_backward_f64;
    static constexpr auto column_sum = edhnn_column_sum_f64, add_bias = edhnn_add_bias_f64;
    static constexpr auto fold_forward = edhnn_fold_forward_f64, fold_backward = edhnn_fold_backward_f64;
    static constexpr auto softmax = edhnn_segment_softmax_f64;
    static constexpr auto softmax_backward = edhnn_segment_softmax_backward_f64;
    static constexpr auto argmax = edhnn_segment_argmax_f64;
};

// Links in both orders; link k of the row order has number k.
struct RandomLinks {
    Index rows, columns;
    std::vector<Index> row_ptr, row_column, column_ptr, column_row, column_link;

    RandomLinks(Random& random, Index rows, Index columns, Index count) : rows(rows), columns(columns) {
        std::vector<std::vector<Index>> of_row(rows), of_column(columns);
        for (Index i = 0; i < count && rows > 0 && columns > 0; ++i) of_row[random() % rows].push_back(random() % columns);
        row_ptr.push_back(0), column_ptr.push_back(0);
        std::vector<Index> owner;
        for (Index r = 0; r < rows; ++r) {
            for (const Index s : of_row[r]) of_column[s].push_back(static_cast<Index>(row_column.size())), row_column.push_back(s), owner.push_back(r);
            row_ptr.push_back(static_cast<Index>(row_column.size()));
        }
        for (Index s = 0; s < columns; ++s) {
            for (const Index k : of_column[s]) column_link.push_back(k), column_row.push_back(owner[k]);
            column_ptr.push_back(static_cast<Index>(column_row.size()));
        }
    }
    Index links() const { return static_cast<Index>(row_column.size()); }
};

template <typename T>
std::vector<T> normal(Random& random, Index size, bool positive = false) {
    std::normal_distribution<double> draw;
    std::vector<T> found(size);
    for (T& x : found) x = static_cast<T>(positive ? std::fabs(draw(random)) + 0.1 : draw(random));
    return found;
}

template <typename T>
double dot(const std::vector<T>& x, const std::vector<T>& y) {
    double total = 0;
    for (std::size_t i = 0; i < x.size(); ++i) total += static_cast<double>(x[i]) * y[i];
    return total;
}

template <typename T>
bool near(double x, double y, double scale) {
    return std::fabs(x - y) <= (sizeof(T) == 4 ? 1e-3 : 1e-10) * (1.0 + scale);
}

template <typename T>
void check_pair(Random& random, const RandomLinks& links, Index channels) {
    const unsigned options = static_cast<unsigned>(random());
    const auto a = normal<T>(random, links.rows * channels), b = normal<T>(random, links.columns * channels);
    const auto bias = normal<T>(random, channels), gamma = normal<T>(random, channels), delta = normal<T>(random, channels);
    const auto q_row = normal<T>(random, links.rows, true), mu_row = normal<T>(random, links.rows);
    const auto q_column = normal<T>(random, links.columns, true), mu_column = normal<T>(random, links.columns);
    const auto weight = normal<T>(random, links.links()), grad = normal<T>(random, links.rows * channels);
    std::vector<std::vector<T>> found[2];
    for (const int threads : {1, 3}) {
        std::vector<T> out(a.size()), da(a.size()), db(b.size()), d_bias(channels), d_gamma(channels), d_delta(channels);
        std::vector<T> dq_row(links.rows), dmu_row(links.rows), dq_column(links.columns), dmu_column(links.columns);
        std::vector<T> d_weight(links.links());
        edhnn::Pair<T> pair{};
        pair.row_ptr = links.row_ptr.data(), pair.row_column = links.row_column.data();
        pair.column_ptr = links.column_ptr.data(), pair.column_row = links.column_row.data();
        pair.column_link = links.column_link.data();
        pair.rows = links.rows, pair.columns = links.columns, pair.channels = channels, pair.threads = threads;
        pair.a = a.data(), pair.b = b.data(), pair.eps = 0.1, pair.kappa = 0.25, pair.norm_eps = 0.01;
        pair.relu = options & 1, pair.mean = options >> 6 & 1, pair.dropout = {options, options & 2 ? 30000 : 0};
        pair.grad = grad.data(), pair.out = out.data(), pair.grad_a = da.data(), pair.grad_b = db.data();
        if (options & 4) pair.bias = bias.data(), pair.grad_bias = d_bias.data();
        if (options & 8) {
            pair.norm_weight = gamma.data(), pair.norm_bias = delta.data();
            pair.grad_norm_weight = d_gamma.data(), pair.grad_norm_bias = d_delta.data();
        }
        if (options & 16) {
            pair.q_row = q_row.data(), pair.mu_row = mu_row.data();
            pair.q_column = q_column.data(), pair.mu_column = mu_column.data();
            pair.grad_q_row = dq_row.data(), pair.grad_mu_row = dmu_row.data();
            pair.grad_q_column = dq_column.data(), pair.grad_mu_column = dmu_column.data();
        }
        if (options & 32) pair.weight = weight.data(), pair.grad_weight = d_weight.data();
        demand(NetworkCalls<T>::pair_forward(&pair) == 0 && NetworkCalls<T>::pair_backward(&pair) == 0, "the call ends");
        if (options & 32 && channels > 0)  // the sum is linear in the weights
            demand(near<T>(dot(d_weight, weight), dot(out, grad), std::sqrt(dot(out, out) * dot(grad, grad))),
                   "pair: weights and messages are adjoint");
        if (!(options & 16)) {  // without moments a and b see the same gradient
            for (Index c = 0; c < channels; ++c) {
                double rows = 0, columns = 0, scale = 0;
                for (Index r = 0; r < links.rows; ++r) rows += da[r * channels + c], scale += std::fabs(da[r * channels + c]);
                for (Index s = 0; s < links.columns; ++s) columns += db[s * channels + c];
                demand(near<T>(rows, columns, scale), "pair: both sides get the same gradient");
            }
        }
        found[threads == 1 ? 0 : 1] = {out, da, db, d_bias, d_gamma, d_delta, dq_row, dmu_row, dq_column, dmu_column, d_weight};
    }
    demand(found[0] == found[1], "the number of threads changes nothing");
}

template <typename T>
void check_gather(Random& random, const RandomLinks& links, Index channels) {
    const auto x = normal<T>(random, links.columns * channels), y = normal<T>(random, links.rows * channels);
    const auto weight = normal<T>(random, links.links());
    std::vector<T> out(y.size()), back(x.size()), d_weight(links.links());
    const bool mean = random() % 2;
    edhnn::Gather<T> forth{}, and_back{};
    forth.ptr = links.row_ptr.data(), forth.other = links.row_column.data();
    forth.rows = links.rows, forth.sources = links.columns, forth.channels = channels, forth.threads = 2;
    forth.own_mean = mean, forth.x = x.data(), forth.weight = weight.data(), forth.out = out.data();
    forth.grad = y.data(), forth.weight_out = d_weight.data();
    and_back.ptr = links.column_ptr.data(), and_back.other = links.column_row.data();
    and_back.link = links.column_link.data(), and_back.source_ptr = mean ? links.row_ptr.data() : nullptr;
    and_back.rows = links.columns, and_back.sources = links.rows, and_back.channels = channels, and_back.threads = 2;
    and_back.x = y.data(), and_back.weight = weight.data(), and_back.out = back.data();
    demand(NetworkCalls<T>::gather(&forth) == 0 && NetworkCalls<T>::gather(&and_back) == 0, "the call ends");
    demand(NetworkCalls<T>::gather_weight(&forth) == 0, "the call ends");
    const double scale = std::sqrt(dot(out, out) * dot(y, y));
    demand(near<T>(dot(out, y), dot(x, back), scale), "gather: the transpose is adjoint");
    demand(near<T>(dot(out, y), dot(d_weight, weight), scale), "gather: linear in the weights");
}

template <typename T>
void check_rows(Random& random, Index rows, Index channels) {
    const auto x = normal<T>(random, rows * channels), gamma = normal<T>(random, channels), grad = normal<T>(random, rows * channels);
    const auto delta = normal<T>(random, channels);
    std::vector<T> out(x.size()), dx(x.size()), d_gamma(channels), d_delta(channels);
    edhnn::Rows<T> problem{};
    problem.rows = rows, problem.channels = channels, problem.threads = 2, problem.relu = random() % 2;
    problem.norm_eps = 0.01, problem.dropout = {random(), random() % 2 ? 30000 : 0};
    problem.x = x.data(), problem.out = out.data(), problem.grad = grad.data(), problem.grad_x = dx.data();
    const bool norm = random() % 2;
    if (norm) {
        problem.norm_weight = gamma.data(), problem.norm_bias = delta.data();
        problem.grad_norm_weight = d_gamma.data(), problem.grad_norm_bias = d_delta.data();
    }
    demand(NetworkCalls<T>::rows_forward(&problem) == 0 && NetworkCalls<T>::rows_backward(&problem) == 0, "the call ends");
    const double scale = std::sqrt(dot(out, out) * dot(grad, grad));
    if (norm) demand(near<T>(dot(d_gamma, gamma) + dot(d_delta, delta), dot(out, grad), scale), "rows: linear in the norm");
    if (!norm) demand(near<T>(dot(dx, x), dot(out, grad), scale), "rows: homogeneous without a norm");
}

template <typename T>
void check_moments(Random& random, Index rows, Index channels) {
    const auto x = normal<T>(random, rows * channels), ones = std::vector<T>(rows, T(1));
    std::vector<T> mean(rows), spread(rows), dx(x.size());
    edhnn::Moments<T> problem{};
    problem.rows = rows, problem.channels = channels, problem.threads = 2, problem.width = 3, problem.x = x.data();
    problem.mean = mean.data(), problem.spread = spread.data(), problem.grad_x = dx.data();
    problem.grad_mean = ones.data(), problem.grad_spread = ones.data();
    demand(NetworkCalls<T>::moments_forward(&problem) == 0 && NetworkCalls<T>::moments_backward(&problem) == 0, "the call ends");
    if (channels == 0) return;  // a mean of nothing is not a number
    double total = 0, expected = 0, scale = 0;
    for (Index r = 0; r < rows; ++r) expected += mean[r] + 2 * spread[r], scale += std::abs(mean[r]) + 2 * spread[r];
    for (std::size_t i = 0; i < x.size(); ++i) total += dx[i] * x[i];
    demand(near<T>(total, expected, scale), "moments: homogeneous of degrees 1 and 2");
}

template <typename T>
void check_columns(Random& random, Index rows, Index channels) {
    const auto x = normal<T>(random, rows * channels), weight = normal<T>(random, rows), bias = normal<T>(random, channels);
    std::vector<T> sums(channels), shifted(x.size());
    edhnn::Columns<T> problem{};
    problem.rows = rows, problem.channels = channels, problem.threads = 2, problem.x = x.data(), problem.bias = bias.data();
    if (random() % 2) problem.weight = weight.data();
    problem.out = sums.data();
    demand(NetworkCalls<T>::column_sum(&problem) == 0, "the call ends");
    problem.out = shifted.data();
    demand(NetworkCalls<T>::add_bias(&problem) == 0, "the call ends");
    double expected = 0, found = 0, scale = 0;
    for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < channels; ++c) {
            const double w = problem.weight != nullptr ? weight[r] : 1.0, moved = shifted[r * channels + c] - x[r * channels + c];
            demand(near<T>(moved, w * bias[c], std::fabs(w * bias[c]) + std::fabs(x[r * channels + c])), "columns: a bias is added");
            expected += w * x[r * channels + c], scale += std::fabs(w * x[r * channels + c]);
        }
    for (const T sum : sums) found += sum;
    demand(near<T>(found, expected, scale), "columns: sums are sums");
}

template <typename T>
void check_fold(Random& random, Index rows, Index width) {
    const Index first = width > 0 ? static_cast<Index>(random() % (width + 1)) : 0, second = width - first;
    const auto weight = normal<T>(random, rows * width), bias = normal<T>(random, rows);
    const auto gamma = normal<T>(random, width), beta = normal<T>(random, width);
    const auto g_first = normal<T>(random, rows * first), g_second = normal<T>(random, rows * second), g_bias = normal<T>(random, rows);
    std::vector<T> one(rows * first), two(rows * second), shift(rows), d_weight(weight.size()), d_gamma(width), d_beta(width);
    edhnn::Fold<T> problem{};
    problem.rows = rows, problem.first = first, problem.second = second, problem.threads = 2;
    problem.weight = weight.data(), problem.bias = bias.data(), problem.gamma = gamma.data(), problem.beta = beta.data();
    problem.out_first = one.data(), problem.out_second = two.data(), problem.out_bias = shift.data();
    problem.grad_first = g_first.data(), problem.grad_second = g_second.data(), problem.grad_bias = g_bias.data();
    problem.grad_weight = d_weight.data(), problem.grad_gamma = d_gamma.data(), problem.grad_beta = d_beta.data();
    demand(NetworkCalls<T>::fold_forward(&problem) == 0 && NetworkCalls<T>::fold_backward(&problem) == 0, "the call ends");
    if (width == 0) return;
    const double parts = dot(one, g_first) + dot(two, g_second), whole = parts + dot(shift, g_bias) - dot(bias, g_bias);
    const double scale = std::sqrt((dot(one, one) + dot(two, two)) * (dot(g_first, g_first) + dot(g_second, g_second))) +
                         std::sqrt(dot(shift, shift) * dot(g_bias, g_bias)) + std::fabs(dot(bias, g_bias));
    demand(near<T>(dot(d_gamma, gamma), parts, scale), "fold: linear in the scale");
    demand(near<T>(dot(d_weight, weight), whole, scale), "fold: linear in the matrix");
}

template <typename T>
void check_softmax(Random& random, const RandomLinks& links, Index columns) {
    const auto x = normal<T>(random, links.links() * columns), grad = normal<T>(random, links.links() * columns);
    std::vector<T> soft(x.size()), back(x.size());
    std::vector<Index> most(links.rows * columns);
    const Index* ptr = links.row_ptr.data();
    demand(NetworkCalls<T>::softmax(x.data(), ptr, links.rows, columns, 2, soft.data()) == 0, "the call ends");
    demand(NetworkCalls<T>::softmax_backward(grad.data(), ptr, links.rows, columns, 2, soft.data(), back.data()) == 0, "the call ends");
    demand(NetworkCalls<T>::argmax(x.data(), ptr, links.rows, columns, 2, most.data()) == 0, "the call ends");
    for (Index r = 0; r < links.rows; ++r)
        for (Index c = 0; c < columns; ++c) {
            double total = 0, moved = 0;
            for (Index k = ptr[r]; k < ptr[r + 1]; ++k) {
                total += soft[k * columns + c], moved += back[k * columns + c];
                demand(x[most[r * columns + c] * columns + c] >= x[k * columns + c], "argmax: nothing is larger");
            }
            if (ptr[r] == ptr[r + 1]) demand(most[r * columns + c] == -1, "argmax: an empty hyperedge has none");
            else demand(near<T>(total, 1.0, 1.0) && near<T>(moved, 0.0, 1.0), "softmax: weights sum to 1");
        }
}

template <typename T>
void check_network(Random& random) {
    const Index shapes[][3] = {{5, 4, 12}, {3, 40, 60}, {40, 3, 60}, {200, 300, 900}, {1, 1, 700}, {30, 600, 5000}, {4, 3, 0}, {0, 0, 0}};
    const auto& shape = shapes[random() % 8];
    const Index channels[] = {0, 1, 3, 8, 16, 31, 33, 70, 129};
    const RandomLinks links(random, shape[0], shape[1], shape[2]);
    const Index width = channels[random() % 9];
    check_pair<T>(random, links, width);
    check_gather<T>(random, links, width);
    check_rows<T>(random, links.rows, width);
    check_moments<T>(random, links.rows, width);
    check_columns<T>(random, links.rows, width);
    check_fold<T>(random, links.rows, width);
    check_softmax<T>(random, links, width % 10);
}

}  // namespace
