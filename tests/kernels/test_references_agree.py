"""Native, torch and the definitions agree: sizes, ties, weights, steps, powers, dtypes."""

import pytest
import torch
from hypothesis import given, settings

from edhnn import kernels
from tests.kernels import references
from tests.kernels.implementations import both_dtypes, both_implementations, run
from tests.kernels.strategies import segments, tensors

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
"""Relative to the largest number that enters a segment, as design.md promises."""


def assert_close(found, expected, edge_ptr, values, extra=None):
    """Entry by entry, relative to the largest magnitude of its segment and column (or `extra`, per hyperedge)."""
    assert found.shape == values.shape and found.dtype == values.dtype
    assert found.isfinite().all()
    for e, (start, stop) in enumerate(zip(edge_ptr[:-1].tolist(), edge_ptr[1:].tolist(), strict=True)):
        if start == stop or values.shape[1] == 0:
            continue
        scale = values[start:stop].double().abs().amax(0) + (0 if extra is None else extra[e])
        error = (found[start:stop].double() - expected[start:stop].double()).abs()
        assert (error <= TOLERANCE[values.dtype] * scale).all(), (e, found[start:stop], expected[start:stop])


@both_implementations
@both_dtypes
@settings(max_examples=40)
@given(segments())
def test_sort_is_stable_and_descending(implementation, dtype, drawn):
    values, edge_ptr, *_ = tensors(drawn, dtype)
    order = run(implementation, kernels.segment_sort, values, edge_ptr)
    expected = torch.empty_like(order)
    for start, stop in zip(edge_ptr[:-1].tolist(), edge_ptr[1:].tolist(), strict=True):
        for d in range(values.shape[1]):
            column = values[:, d].tolist()
            expected[start:stop, d] = torch.tensor(
                sorted(range(start, stop), key=lambda i: -column[i]), dtype=torch.int64
            )
    assert torch.equal(order, expected)


@both_implementations
@both_dtypes
@settings(max_examples=40)
@given(segments())
def test_pav_is_the_projection(implementation, dtype, drawn):
    values, edge_ptr, _, weight, _ = tensors(drawn, dtype)
    by_entry = weight.unsqueeze(1) * torch.arange(1, values.shape[1] + 1)
    for given_weight in (None, weight, by_entry.flip(0)):
        found = run(implementation, kernels.segment_pav, values, edge_ptr, given_weight)
        others = () if given_weight is None else (given_weight,)
        assert_close(found, references.over_segments(references.pav, values, edge_ptr, *others), edge_ptr, values)


@both_implementations
@both_dtypes
@pytest.mark.parametrize("power", [1, 2])
@settings(max_examples=40)
@given(segments())
def test_total_variation_prox_is_the_minimiser(implementation, dtype, power, drawn):
    values, edge_ptr, step, weight, _ = tensors(drawn, dtype)
    reference = references.total_variation(power)
    for given_weight in (None, weight):
        found = run(implementation, kernels.prox_total_variation, values, edge_ptr, step, power, given_weight)
        others = (references.PerEdge(step),) if given_weight is None else (references.PerEdge(step), given_weight)
        assert_close(found, references.over_segments(reference, values, edge_ptr, *others), edge_ptr, values)


@both_implementations
@both_dtypes
@pytest.mark.parametrize("power", [1, 2])
@settings(max_examples=40)
@given(segments(largest=5))
def test_cardinality_prox_is_the_sorted_projection(implementation, dtype, power, drawn):
    values, edge_ptr, step, _, cut_weight = tensors(drawn, dtype)
    found = run(implementation, kernels.prox_cardinality, values, edge_ptr, step, power, cut_weight)
    reference = references.cardinality(power)
    expected = references.over_segments(reference, values, edge_ptr, references.PerEdge(step), cut_weight)
    assert_close(found, expected, edge_ptr, values, extra=step.double() if power == 1 else None)


@pytest.mark.parametrize("power", [1, 2])
@settings(max_examples=25)
@given(segments(largest=4))
def test_the_reference_is_a_global_minimum_for_any_cut_weights(power, drawn):
    values, edge_ptr, step, _, cut_weight = tensors(drawn)

    def compare(a, eta, y):
        z = references.cardinality(power)(a, eta, y)
        if a:
            found = references.cardinality_objective(a, z, eta, power, y)
            assert found == references.cardinality_minimum(a, eta, power, y)
        return z

    references.over_segments(compare, values, edge_ptr, references.PerEdge(step), cut_weight)
