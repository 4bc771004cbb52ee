"""Inputs at the edge: NaN and infinity stay in their segment, emptiness, layouts, dtypes, threads, refusals."""

import pytest
import torch

from edhnn import DataError, UsageError, kernels
from tests.kernels.implementations import both_dtypes, both_implementations, calls, needs_native, run
from tests.kernels.strategies import random_case

SIZES = [3, 1, 0, 5, 2, 60]


@both_implementations
@both_dtypes
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_spoils_its_own_segment_only(implementation, dtype, wrong):
    values, edge_ptr, *others = random_case(0, SIZES, 4, dtype)
    spoiled = values.clone()
    spoiled[6, 2] = wrong  # a row of the fourth hyperedge
    mine = torch.zeros_like(values, dtype=torch.bool)
    mine[4:9, 2] = True
    for (name, clean), (_, dirty) in zip(
        calls(values, edge_ptr, *others), calls(spoiled, edge_ptr, *others), strict=True
    ):
        expected, found = run(implementation, clean), run(implementation, dirty)
        assert torch.equal(found[~mine], expected[~mine]), name
        if name != "sort":
            assert found[mine].isnan().all(), name


@both_implementations
@pytest.mark.parametrize("which", [2, 3, 4])
def test_companions_that_are_nan_spoil_their_own_hyperedge_only(implementation, which):
    case = list(random_case(0, SIZES, 4))
    spoiled = [part.clone() for part in case]
    spoiled[which][3 if which == 2 else 6] = torch.nan  # the step of the fourth hyperedge, or one of its rows
    for (name, clean), (_, dirty) in zip(calls(*case), calls(*spoiled), strict=True):
        expected, found = run(implementation, clean), run(implementation, dirty)
        uses = {2: ("tv", "cardinality"), 3: ("weighted",), 4: ("cardinality",)}[which]
        if name != "sort" and any(word in name for word in uses):
            assert found[4:9].isnan().all(), name
            found[4:9] = expected[4:9]
        assert torch.equal(found, expected), name


@both_implementations
@both_dtypes
def test_sort_puts_nan_first_and_infinity_where_it_belongs(implementation, dtype):
    nan, inf = float("nan"), float("inf")
    values = torch.tensor([1.0, nan, -inf, inf, nan, 1.0] * 10, dtype=dtype).unsqueeze(1).repeat(1, 5)
    for edge_ptr in (torch.tensor([0, 6, 60]), torch.tensor([0, 60])):
        found = run(implementation, kernels.segment_sort, values, edge_ptr)
        expected = torch.cat(
            [
                start + values[start:stop].sort(dim=0, descending=True, stable=True).indices
                for start, stop in zip(edge_ptr[:-1].tolist(), edge_ptr[1:].tolist(), strict=True)
            ]
        )
        assert torch.equal(found, expected)


@both_implementations
@both_dtypes
@pytest.mark.parametrize(("sizes", "columns"), [([], 3), ([], 0), ([0, 0], 2), ([3, 2], 0), ([1], 1), ([1, 1, 0], 2)])
def test_emptiness_and_single_members(implementation, dtype, sizes, columns):
    case = random_case(0, sizes, columns, dtype)
    for name, call in calls(*case):
        found = run(implementation, call)
        assert found.shape == case[0].shape, name
        if name != "sort" and "cardinality" not in name:
            assert torch.equal(found, case[0]), name


@both_implementations
def test_equal_values_and_zero_steps_change_nothing(implementation):
    values, edge_ptr, step, weight, cut_weight = random_case(0, SIZES, 4)
    zero = torch.zeros_like(step)
    for name, call in calls(values, edge_ptr, zero, weight, cut_weight):
        if "tv" in name or "cardinality" in name:
            assert torch.equal(run(implementation, call), values), name
    equal = torch.full_like(values, 0.1)
    for name, call in calls(equal, edge_ptr, step, weight, torch.zeros_like(cut_weight)):
        if name != "sort":
            torch.testing.assert_close(run(implementation, call), equal, rtol=1e-14, atol=0, msg=name)


@both_implementations
def test_layouts_and_dtypes_of_companions_do_not_matter(implementation):
    values, edge_ptr, step, weight, cut_weight = random_case(0, SIZES, 4)
    wide = torch.randn(values.shape[0], 2 * values.shape[1], dtype=torch.float64)
    wide[:, ::2] = values
    single = [part.float().double() for part in (step, weight, cut_weight)]
    other = (wide[:, ::2], edge_ptr.int(), *(part.float() for part in single))
    for (name, plain), (_, strided) in zip(calls(values, edge_ptr, *single), calls(*other), strict=True):
        assert torch.equal(run(implementation, plain), run(implementation, strided)), name
    turned = values.t().contiguous().t()
    assert torch.equal(
        run(implementation, kernels.segment_pav, turned, edge_ptr, turned.exp()),
        run(implementation, kernels.segment_pav, values, edge_ptr, values.exp()),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_answered_by_torch(dtype):
    case = [part.to(dtype) if part.is_floating_point() else part for part in random_case(0, SIZES, 4)]
    exact = [part.double() if part.is_floating_point() else part for part in case]
    for (name, half), (_, double) in zip(calls(*case), calls(*exact), strict=True):
        found, expected = half(), double()
        assert torch.equal(found, expected.to(found.dtype)), name


@pytest.mark.parametrize(
    ("implementation", "sizes", "columns"),
    [
        ("torch", [2, 7, 0, 30, 1, 5] * 20, 40),
        pytest.param("native", [2, 7, 0, 30, 1, 5] * 200, 16, marks=needs_native),
        pytest.param("native", [600, 3], 40, marks=needs_native),  # 24,000 entries: columns of a segment in two threads
    ],
)
@pytest.mark.usefixtures("without_shape_checks")  # thousands of small calls
def test_the_number_of_threads_changes_no_bit(implementation, sizes, columns):
    for dtype in (torch.float32, torch.float64):
        for name, call in calls(*random_case(0, sizes, columns, dtype)):
            torch.set_num_threads(1)
            alone = run(implementation, call)
            torch.set_num_threads(2)
            assert torch.equal(run(implementation, call), alone), name


def refusals():
    values, edge_ptr, step, weight, cut_weight = random_case(0, [2, 3], 2)
    tv, lec = kernels.prox_total_variation, kernels.prox_cardinality
    yield "table of real numbers", lambda: kernels.segment_sort(values[:, 0], edge_ptr)
    yield "table of real numbers", lambda: kernels.segment_sort(values.long(), edge_ptr)
    yield "vector of at least one integer", lambda: kernels.segment_sort(values, edge_ptr.double())
    yield "vector of at least one integer", lambda: kernels.segment_sort(values[:0], edge_ptr[:0])
    yield "from 0 to the number of rows, 5.* Got 0 to 2", lambda: kernels.segment_sort(values, edge_ptr[:2])
    yield "Got 2 to 5", lambda: kernels.segment_sort(values, edge_ptr[1:])
    yield "falling in between", lambda: kernels.segment_sort(values, torch.tensor([0, 4, 2, 5]))
    yield "'weight' must be real numbers of shape", lambda: kernels.segment_pav(values, edge_ptr, weight[1:])
    yield "'weight' must be positive. Got 0.0", lambda: kernels.segment_pav(values, edge_ptr, weight * 0)
    yield "'weight' must be positive. Got -", lambda: tv(values, edge_ptr, step, 1, -weight)
    yield "'step' must be real numbers of shape .2.", lambda: tv(values, edge_ptr, step[1:], 1)
    yield "'step' must be 0 or more. Got -1.0", lambda: tv(values, edge_ptr, step * 0 - 1, 1)
    yield "'cut_weight' must be real numbers", lambda: lec(values, edge_ptr, step, 1, cut_weight[1:])
    yield "'edge_ptr' must be on the device", lambda: kernels.segment_sort(values, edge_ptr.to("meta"))


@pytest.mark.parametrize("refusal", list(refusals()), ids=lambda refusal: refusal[0])
@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_are_refused_in_words(refusal):
    message, call = refusal
    with pytest.raises(DataError, match=message):
        call()


def test_other_powers_are_refused():
    values, edge_ptr, step, _, cut_weight = random_case(0, [2, 3], 2)
    with pytest.raises(UsageError, match="'power' parameter of prox_total_variation must be 1 or 2. Got 3 instead"):
        kernels.prox_total_variation(values, edge_ptr, step, 3)
    with pytest.raises(UsageError, match="'power' parameter of prox_cardinality must be 1 or 2. Got 0 instead"):
        kernels.prox_cardinality(values, edge_ptr, step, 0, cut_weight)


@needs_native
def test_inputs_are_left_alone():
    case = random_case(0, SIZES, 4)
    before = [part.clone() for part in case]
    for _, call in calls(*case):
        run("native", call)
    assert all(torch.equal(a, b) for a, b in zip(case, before, strict=True))
