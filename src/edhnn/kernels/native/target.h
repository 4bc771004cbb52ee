// The kernels of one instruction set, inside its namespace. Included once by each of the three network_*.cpp, after
// everything from the standard library, so that only what is below is compiled for that instruction set.

#include "message.h"
#include "pair_forward.h"
#include "pair_backward.h"
#include "pair_columns.h"
#include "pair_call.h"
#include "gather.h"
#include "rows.h"
#include "moments.h"
#include "columns.h"

template <typename T>
Kernels<T> kernels() {
    return {pair_forward<T>, pair_backward<T>, gather<T>, gather_weight<T>, rows_forward<T>, rows_backward<T>,
            moments_forward<T>, moments_backward<T>, column_sum<T>, add_bias<T>, fold_forward<T>, fold_backward<T>};
}
