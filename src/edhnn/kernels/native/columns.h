// `column_sum` and `add_bias`: sums over rows in an order of our own, and vectors added to rows. `fold_norm`: a LayerNorm
// taken into the linear layer behind it. One of the files compiled once per instruction set.

constexpr Index kFewRows = 128;  // rows summed in the type of the table; their sums are added up in double precision

template <bool WEIGHTED, bool TAIL, typename T>
EDHNN_INLINE void sum_rows(const Columns<T>& the, Index from, Index to, Index c, int n, double* sums) {
    using S = Simd<T>;
    auto total = S::zero();
    for (Index r = from; r < to; ++r) {
        const auto x = at<TAIL>(the.x + r * the.channels + c, n);
        total = WEIGHTED ? S::fma(S::set(the.weight[r]), x, total) : S::add(total, x);
    }
    T lanes[S::W];
    S::store(lanes, total);
    for (int i = 0; i < n; ++i) sums[c + i] += lanes[i];
}

template <typename T, bool WEIGHTED>
struct ColumnSum {
    const Columns<T>& the;
    Index stretch;
    double* sums;

    void operator()(Index group, int) const {
        using S = Simd<T>;
        const Index channels = the.channels, full = channels / S::W * S::W, end = std::min(the.rows, (group + 1) * stretch);
        const int rest = static_cast<int>(channels - full);
        double* mine = sums + group * channels;
        std::fill(mine, mine + channels, 0.0);
        for (Index r = group * stretch; r < end; r += kFewRows) {
            const Index to = std::min(end, r + kFewRows);
            for (Index c = 0; c < full; c += S::W) sum_rows<WEIGHTED, false>(the, r, to, c, S::W, mine);
            if (rest > 0) sum_rows<WEIGHTED, true>(the, r, to, full, rest, mine);
        }
    }
};

template <typename T>
Status column_sum(const Columns<T>& the) {
    const Index channels = the.channels, wanted = groups_for(the.rows, channels);
    const Index stretch = std::max<Index>(1, (the.rows + wanted - 1) / wanted), groups = (the.rows + stretch - 1) / stretch;
    Workspace space;
    space.take<double>(groups * channels);
    if (!space.reserve()) return kOutOfMemory;
    double* sums = space.take<double>(groups * channels);
    if (the.weight != nullptr) in_parallel(groups, the.threads, ColumnSum<T, true>{the, stretch, sums});
    else in_parallel(groups, the.threads, ColumnSum<T, false>{the, stretch, sums});
    for (Index c = 0; c < channels; ++c) {
        double total = 0;
        for (Index group = 0; group < groups; ++group) total += sums[group * channels + c];
        the.out[c] = static_cast<T>(total);
    }
    return kDone;
}

template <typename T>
struct AddBias {
    const Columns<T>& the;
    Index stretch;

    void operator()(Index group, int) const {
        using S = Simd<T>;
        const Index channels = the.channels, full = channels / S::W * S::W;
        const int rest = static_cast<int>(channels - full);
        for (Index r = group * stretch; r < std::min(the.rows, (group + 1) * stretch); ++r) {
            const T* x = the.x + r * channels;
            T* out = the.out + r * channels;
            const auto weight = S::set(the.weight != nullptr ? the.weight[r] : T(1));
            for (Index c = 0; c < full; c += S::W) S::store(out + c, S::fma(weight, S::load(the.bias + c), S::load(x + c)));
            if (rest > 0) S::store(out + full, S::fma(weight, S::load(the.bias + full, rest), S::load(x + full, rest)), rest);
        }
    }
};

template <typename T>
Status add_bias(const Columns<T>& the) {
    const Index wanted = groups_for(the.rows, the.channels);
    const Index stretch = std::max<Index>(1, (the.rows + wanted - 1) / wanted);
    in_parallel((the.rows + stretch - 1) / stretch, the.threads, AddBias<T>{the, stretch});
    return kDone;
}

// With w a row of the matrix, s = gamma w and C its length: s - mean(s), dealt out to the two halves, and b + <w, beta>.
template <typename T>
struct FoldForward {
    const Fold<T>& the;
    Index stretch;

    void operator()(Index group, int) const {
        const Index first = the.first, second = the.second, width = first + second;
        for (Index r = group * stretch; r < std::min(the.rows, (group + 1) * stretch); ++r) {
            const T* w = the.weight + r * width;
            double sum = 0, dot = 0;
            for (Index c = 0; c < width; ++c) {
                sum += static_cast<double>(w[c] * the.gamma[c]);
                if (the.beta != nullptr) dot += static_cast<double>(w[c]) * static_cast<double>(the.beta[c]);
            }
            const T mean = static_cast<T>(sum / static_cast<double>(width));
            for (Index c = 0; c < first; ++c) the.out_first[r * first + c] = w[c] * the.gamma[c] - mean;
            for (Index c = first; c < width; ++c) the.out_second[r * second + c - first] = w[c] * the.gamma[c] - mean;
            the.out_bias[r] = static_cast<T>(static_cast<double>(the.bias[r]) + dot);
        }
    }
};

template <typename T>
struct FoldBackward {
    const Fold<T>& the;
    Index stretch;
    double* sums;  // per group: of gamma, then of beta

    void operator()(Index group, int) const {
        const Index first = the.first, second = the.second, width = first + second;
        double *d_gamma = sums + group * 2 * width, *d_beta = d_gamma + width;
        std::fill(d_gamma, d_gamma + 2 * width, 0.0);
        for (Index r = group * stretch; r < std::min(the.rows, (group + 1) * stretch); ++r) {
            const T *w = the.weight + r * width, *one = the.grad_first + r * first, *two = the.grad_second + r * second;
            T* out = the.grad_weight + r * width;
            double sum = 0;
            for (Index c = 0; c < first; ++c) sum += static_cast<double>(one[c]);
            for (Index c = 0; c < second; ++c) sum += static_cast<double>(two[c]);
            const T mean = static_cast<T>(sum / static_cast<double>(width)), shift = the.grad_bias[r];
            for (Index c = 0; c < width; ++c) {
                const T d = (c < first ? one[c] : two[c - first]) - mean;
                d_gamma[c] += static_cast<double>(d * w[c]);
                out[c] = d * the.gamma[c];
                if (the.beta == nullptr) continue;
                d_beta[c] += static_cast<double>(shift * w[c]);
                out[c] += shift * the.beta[c];
            }
        }
    }
};

template <typename T>
Index fold_stretch(const Fold<T>& the) {
    const Index wanted = groups_for(the.rows, the.first + the.second);
    return std::max<Index>(1, (the.rows + wanted - 1) / wanted);
}

template <typename T>
Status fold_forward(const Fold<T>& the) {
    const Index stretch = fold_stretch(the);
    in_parallel((the.rows + stretch - 1) / stretch, the.threads, FoldForward<T>{the, stretch});
    return kDone;
}

template <typename T>
Status fold_backward(const Fold<T>& the) {
    const Index width = the.first + the.second, stretch = fold_stretch(the), groups = (the.rows + stretch - 1) / stretch;
    Workspace space;
    space.take<double>(groups * 2 * width);
    if (!space.reserve()) return kOutOfMemory;
    double* sums = space.take<double>(groups * 2 * width);
    in_parallel(groups, the.threads, FoldBackward<T>{the, stretch, sums});
    T* vectors[] = {the.grad_gamma, the.grad_beta};
    for (int which = 0; which < 2; ++which) {
        for (Index c = 0; c < width && vectors[which] != nullptr; ++c) {
            double total = 0;
            for (Index group = 0; group < groups; ++group) total += sums[(group * 2 + which) * width + c];
            vectors[which][c] = static_cast<T>(total);
        }
    }
    return kDone;
}
