"""Segments for the kernel tests: plain lists drawn, tensors built in the test body."""

import torch
from hypothesis import strategies as st

TIED = st.integers(-4, 4).map(lambda n: n / 2)
ORDINARY = st.floats(-10, 10, width=32)
EXTREME = st.sampled_from([1e30, -1e30, 1e-30, -1e-30, 0.0, -0.0, 1.0, 3.0])
VALUES = [TIED, ORDINARY, EXTREME, st.just(0.3)]
STEPS = st.sampled_from([0.0, 1e-30, 0.01, 0.3, 1.0, 7.0, 1e6, 1e30])
WEIGHTS = st.sampled_from([0.001, 0.25, 1.0, 3.0, 1000.0])
CUT_WEIGHTS = st.integers(-8, 8).map(lambda n: n / 8)  # sums of eighths are exact


@st.composite
def segments(draw, largest=6):
    """(sizes, columns, values, steps, weights, cut weights), sizes 0 and 1, no column and no hyperedge included."""
    sizes = draw(st.lists(st.integers(0, largest), max_size=4))
    columns = draw(st.integers(0, 3))
    rows = sum(sizes)
    value = draw(st.sampled_from(VALUES))
    values = draw(st.lists(value, min_size=rows * columns, max_size=rows * columns))
    steps = draw(st.lists(STEPS, min_size=len(sizes), max_size=len(sizes)))
    weights = draw(st.lists(WEIGHTS, min_size=rows, max_size=rows))
    if draw(st.booleans()):
        cut_weights = [y for size in sizes for y in paper_cut_weights(size)]
    else:
        cut_weights = draw(st.lists(CUT_WEIGHTS, min_size=rows, max_size=rows))
    return sizes, columns, values, steps, weights, cut_weights


def paper_cut_weights(size):
    """The paper's y: 1/half for the first half, -1/half for the last, 0 in the middle of an odd size."""
    half = size // 2
    return [1 / half] * half + [0.0] * (size - 2 * half) + [-1 / half] * half if half else [0.0] * size


def tensors(drawn, dtype=torch.float64):
    """The drawn lists as the kernels take them: values, edge_ptr, step, weight, cut_weight."""
    sizes, columns, values, steps, weights, cut_weights = drawn
    edge_ptr = torch.tensor([0, *sizes]).cumsum(0)
    table = torch.tensor(values, dtype=dtype).reshape(sum(sizes), columns)
    return table, edge_ptr, *(torch.tensor(part, dtype=dtype) for part in (steps, weights, cut_weights))


def random_case(seed, sizes, columns, dtype=torch.float64, ties=False):
    """Ordinary numbers of any size: values, edge_ptr, step, weight, cut_weight."""
    generator = torch.Generator().manual_seed(seed)
    edge_ptr = torch.tensor([0, *sizes]).cumsum(0)
    rows = int(edge_ptr[-1])
    values = 3 * torch.randn(rows, columns, generator=generator, dtype=dtype)
    step = torch.exp(2 * torch.randn(len(sizes), generator=generator, dtype=dtype))
    weight = 0.1 + torch.rand(rows, generator=generator, dtype=dtype)
    cut_weight = torch.randn(rows, generator=generator, dtype=dtype)
    return values.round() if ties else values, edge_ptr, step, weight, cut_weight
