// What the network kernels are asked to do: pointers and sizes, laid out as `native_backend.py` packs them. Every field is
// eight bytes wide, so both sides agree without padding. Null pointers are options left out.
#pragma once

#include "hash.h"
#include "links.h"

namespace edhnn {

struct Dropout {
    std::uint64_t seed;
    Index threshold;  // of 65536; 0: nothing is dropped

    double scale() const { return 65536.0 / static_cast<double>(65536 - threshold); }
};

// out_r = sum over links (r, s) of w dropout(norm(activation(rho (a_r + b_s) + bias)))
template <typename T>
struct Pair {
    const Index *row_ptr, *row_column, *row_link, *column_ptr, *column_row, *column_link;
    Index rows, columns, channels, threads;
    const T *a, *b, *bias, *q_row, *mu_row, *q_column, *mu_column, *norm_weight, *norm_bias, *weight;
    double kappa, eps, norm_eps;
    Dropout dropout;
    Index relu, mean;  // mean: divided by the number of r's links
    T* out;
    // backward only
    const T* grad;
    T *grad_a, *grad_b, *grad_bias, *grad_q_row, *grad_mu_row, *grad_q_column, *grad_mu_column;
    T *grad_norm_weight, *grad_norm_bias, *grad_weight;

    Side row_side() const { return {row_ptr, row_column, row_link, rows}; }
    Side column_side() const { return {column_ptr, column_row, column_link, columns}; }

    T share(Index row) const { return mean != 0 ? T(1) / static_cast<T>(row_ptr[row + 1] - row_ptr[row]) : T(1); }
    T rho(Index row, Index column) const {
        if (q_row == nullptr) return T(1);
        const T apart = mu_row[row] - mu_column[column];
        return T(1) / std::sqrt(q_row[row] + q_column[column] + static_cast<T>(kappa) * apart * apart + static_cast<T>(eps));
    }
};

// out_r = sum over links (r, s) of w x_s, divided by the number of r's links (own_mean) or of s's (source_ptr given)
template <typename T>
struct Gather {
    const Index *ptr, *other, *link, *source_ptr;
    Index rows, sources, channels, threads, own_mean;
    const T *x, *weight;
    T* out;
    const T* grad;  // of weight: weight_out_k = x_s . grad_r for link k
    T* weight_out;

    Side side() const { return {ptr, other, link, rows}; }
};

// out_r = dropout(norm(activation(x_r)))
template <typename T>
struct Rows {
    Index rows, channels, threads, relu;
    double norm_eps;
    Dropout dropout;
    const T *x, *norm_weight, *norm_bias;
    T* out;
    const T* grad;
    T *grad_x, *grad_norm_weight, *grad_norm_bias;
};

// mean_r = mean of x_r, spread_r = sum of (x_r - mean_r)^2 / width
template <typename T>
struct Moments {
    Index rows, channels, threads, width;
    const T* x;
    T *mean, *spread;
    const T *grad_mean, *grad_spread;
    T* grad_x;
};

// out_c = sum over r of w_r x_rc, or out_rc = x_rc + w_r bias_c
template <typename T>
struct Columns {
    Index rows, channels, threads;
    const T *x, *weight, *bias;
    T* out;
};

// A LayerNorm of scale gamma and shift beta taken into the linear layer behind it, whose matrix has two blocks of columns
template <typename T>
struct Fold {
    Index rows, first, second, threads;
    const T *weight, *bias, *gamma, *beta;
    T *out_first, *out_second, *out_bias;
    // backward only
    const T *grad_first, *grad_second, *grad_bias;
    T *grad_weight, *grad_gamma, *grad_beta;
};

// The kernels of one instruction set.
template <typename T>
struct Kernels {
    Status (*pair_forward)(const Pair<T>&);
    Status (*pair_backward)(const Pair<T>&);
    Status (*gather)(const Gather<T>&);
    Status (*gather_weight)(const Gather<T>&);
    Status (*rows_forward)(const Rows<T>&);
    Status (*rows_backward)(const Rows<T>&);
    Status (*moments_forward)(const Moments<T>&);
    Status (*moments_backward)(const Moments<T>&);
    Status (*column_sum)(const Columns<T>&);
    Status (*add_bias)(const Columns<T>&);
    Status (*fold_forward)(const Fold<T>&);
    Status (*fold_backward)(const Fold<T>&);
};

}  // namespace edhnn
