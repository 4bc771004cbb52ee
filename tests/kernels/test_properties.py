"""What holds at every size: both implementations agree, TV is a special cardinality, translations, order, Lipschitz."""

import pytest
import torch

from edhnn import kernels
from edhnn.kernels.torch_backend import cardinality
from tests.kernels.implementations import both_implementations, calls, needs_native, run
from tests.kernels.strategies import paper_cut_weights, random_case

SIZES = {
    "tiny": [2, 3, 0, 1, 2, 5] * 10,
    "counted and sorted": [63, 64, 65, 4, 5, 24, 25, 7, 0],  # both sides of the native kernels' thresholds
    "large": [700, 2, 300],
}


@needs_native
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("columns", [1, pytest.param(8, marks=pytest.mark.slow), 37])  # 37: full vectors and a rest
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.usefixtures("without_shape_checks")  # thousands of small calls
def test_native_equals_torch(sizes, columns, ties):
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        case = random_case(columns, sizes, columns, dtype, ties)
        for name, call in calls(*case):
            native, twin = run("native", call), run("torch", call)
            torch.testing.assert_close(native, twin, rtol=tolerance, atol=20 * tolerance, msg=lambda m, n=name: n + m)


@both_implementations
@pytest.mark.parametrize("power", [1, 2])
def test_total_variation_is_the_cardinality_with_one_above_and_one_below(implementation, power):
    sizes = [2, 3, 9, 60, 150]
    values, edge_ptr, step, *_ = random_case(0, sizes, 5)
    cut_weight = torch.cat([torch.tensor([1.0] + [0.0] * (k - 2) + [-1.0], dtype=torch.float64) for k in sizes])
    clipped = run(implementation, kernels.prox_total_variation, values, edge_ptr, step, power)
    pooled = run(implementation, kernels.prox_cardinality, values, edge_ptr, step, power, cut_weight)
    torch.testing.assert_close(clipped, pooled, rtol=1e-12, atol=1e-12)


@both_implementations
@pytest.mark.parametrize("power", [1, 2])
def test_convex_proxes_keep_mean_and_order_and_do_not_expand(implementation, power):
    sizes = [2, 3, 4, 9, 30]
    a, edge_ptr, step, *_ = random_case(1, sizes, 6)
    b = random_case(2, sizes, 6)[0]
    cut_weight = torch.tensor([y for size in sizes for y in paper_cut_weights(size)], dtype=torch.float64)
    proxes = {
        "tv": lambda x: run(implementation, kernels.prox_total_variation, x, edge_ptr, step, power),
        "lec": lambda x: run(implementation, kernels.prox_cardinality, x, edge_ptr, step, power, cut_weight),
    }
    for prox in proxes.values():
        found, shifted, other = prox(a), prox(a + 7), prox(b)
        torch.testing.assert_close(shifted, found + 7, rtol=1e-12, atol=1e-12)
        for start, stop in zip(edge_ptr[:-1].tolist(), edge_ptr[1:].tolist(), strict=True):
            mine, given = found[start:stop], a[start:stop]
            torch.testing.assert_close(mine.mean(0), given.mean(0), rtol=1e-12, atol=1e-12)
            rank = given.argsort(0, descending=True)
            assert (mine.gather(0, rank).diff(dim=0) <= 1e-12).all()
            apart = (given - b[start:stop]).norm(dim=0)
            assert ((mine - other[start:stop]).norm(dim=0) <= apart * (1 + 1e-12)).all()


@both_implementations
def test_permuting_the_rows_of_a_hyperedge_permutes_the_answer(implementation):
    values, edge_ptr, step, weight, cut_weight = random_case(3, [6, 1, 11], 4)
    shuffle = torch.cat(
        [
            start + torch.randperm(stop - start, generator=torch.Generator().manual_seed(start))
            for start, stop in zip(edge_ptr[:-1].tolist(), edge_ptr[1:].tolist(), strict=True)
        ]
    )
    for power in (1, 2):
        for function, given, moved in (
            (kernels.prox_total_variation, weight, weight[shuffle]),
            (kernels.prox_cardinality, cut_weight, cut_weight),  # by rank, so it stays
        ):
            found = run(implementation, function, values, edge_ptr, step, power, given)
            permuted = run(implementation, function, values[shuffle], edge_ptr, step, power, moved)
            torch.testing.assert_close(permuted, found[shuffle], rtol=1e-12, atol=1e-12)


@both_implementations
def test_the_paper_s_potential_vanishes_for_a_huge_step(implementation):
    sizes = [2, 3, 6, 7, 50, 51]
    values, edge_ptr, *_ = random_case(4, sizes, 3)
    cut_weight = torch.tensor([y for size in sizes for y in paper_cut_weights(size)], dtype=torch.float64)
    means = torch.cat([part.mean(0).expand_as(part) for part in values.split(sizes)])
    for huge in (1e20, 1e30, 1e300):
        step = torch.full((len(sizes),), huge, dtype=torch.float64)
        for power in (1, 2):
            for function, given in ((kernels.prox_total_variation, None), (kernels.prox_cardinality, cut_weight)):
                found = run(implementation, function, values, edge_ptr, step, power, given)
                torch.testing.assert_close(found, means, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("huge", "most"), [(1e-3, 10), (1.0, 10), (1e6, 10), (1e30, 40)])
def test_newton_ends_in_a_few_steps_for_any_cut_weights(monkeypatch, huge, most):
    values, edge_ptr, step, _, cut_weight = random_case(5, [3] * 100 + [8] * 100 + [40] * 20, 1)
    falling = cut_weight.gather(0, kernels.segment_sort(cut_weight.unsqueeze(1), edge_ptr).squeeze(1))
    pool, counted = cardinality.pool, []
    monkeypatch.setattr(cardinality, "pool", lambda *given: counted.append(1) or pool(*given))
    for y in (cut_weight, falling):
        counted.clear()
        run("torch", kernels.prox_cardinality, values, edge_ptr, torch.full_like(step, huge), 2, y)
        assert len(counted) <= 4 * most  # four groups of similar size at most, each with its own steps
