"""Run a kernel by either implementation."""

import pytest
import torch

from edhnn import kernels

needs_native = pytest.mark.skipif(not kernels.native_available(), reason="the native kernels are not built")
both_implementations = pytest.mark.parametrize("implementation", ["torch", pytest.param("native", marks=needs_native)])
both_dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def run(implementation, function, *arguments):
    """Call a kernel with one implementation forced."""
    before = kernels.choose(implementation)
    try:
        return function(*arguments)
    finally:
        kernels.choose(before)


def calls(values, edge_ptr, step, weight, cut_weight):
    """Every kernel with every option, by name: functions without arguments."""
    yield "sort", lambda: kernels.segment_sort(values, edge_ptr)
    yield "pav", lambda: kernels.segment_pav(values, edge_ptr)
    yield "weighted pav", lambda: kernels.segment_pav(values, edge_ptr, weight)
    convex = sides(edge_ptr, cut_weight)
    for power in (1, 2):
        yield f"tv {power}", lambda p=power: kernels.prox_total_variation(values, edge_ptr, step, p)
        yield f"weighted tv {power}", lambda p=power: kernels.prox_total_variation(values, edge_ptr, step, p, weight)
        yield f"cardinality {power}", lambda p=power: kernels.prox_cardinality(values, edge_ptr, step, p, cut_weight)
        yield (
            f"weighted cardinality {power}",
            lambda p=power: kernels.prox_cardinality(values, edge_ptr, step, p, convex, weight),
        )


def sides(edge_ptr, cut_weight):
    """1 for the upper half of the ranks and -1 for the lower: convex, exact in every dtype, NaN where a weight is."""
    size = edge_ptr.diff()
    rank = torch.arange(len(cut_weight)) - edge_ptr[:-1].repeat_interleave(size)
    return (size.repeat_interleave(size) - 1 - 2 * rank).sign() + 0 * cut_weight
