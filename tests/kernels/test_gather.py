"""gather_sum: both implementations against plain loops; means, weights, sparse products, derivatives of any order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError
from edhnn.kernels import gather_sum, sparse_links
from tests.kernels import network_references as references
from tests.kernels.implementations import both_dtypes, both_implementations, needs_native, run
from tests.kernels.network_cases import PROBLEMS, build, close, compare, random_links


@both_dtypes
@both_implementations
@settings(max_examples=60)
@given(PROBLEMS, st.booleans(), st.booleans())
def test_it_is_the_loop_over_links(implementation, dtype, problem, weighted, mean):
    links, channels, draw = build(problem, dtype)
    tensors = {"x": draw(links.num_columns, channels)} | ({"weight": draw(links.num_links)} if weighted else {})
    compare(
        implementation,
        lambda leaves: gather_sum(leaves["x"], links, leaves.get("weight"), mean=mean),
        lambda leaves: references.gather_sum(leaves["x"], links, leaves.get("weight"), mean=mean),
        tensors,
        dtype,
    )


@pytest.mark.usefixtures("instruction_set")
@both_dtypes
@pytest.mark.parametrize("shape", [(300, 20, 9000), (20, 300, 9000), (2000, 3000, 9000)], ids=str)
def test_large_problems_agree_with_torch(dtype, shape):
    links, draw = random_links(*shape, dtype)
    compare(
        "native",
        lambda leaves: gather_sum(leaves["x"], links, leaves["weight"], mean=True),
        lambda leaves: run("torch", lambda: gather_sum(leaves["x"], links, leaves["weight"], mean=True)),
        {"x": draw(shape[1], 37), "weight": draw(links.num_links)},
        dtype,
    )


@both_implementations
@pytest.mark.parametrize("mean", [False, True])
def test_derivatives_of_any_order(implementation, mean):
    links, draw = random_links(4, 3, 9, torch.float64)
    leaves = [draw(3, 2).requires_grad_(), draw(links.num_links).requires_grad_()]
    run(implementation, torch.autograd.gradcheck, lambda x, w: gather_sum(x, links, w, mean=mean), leaves)
    run(implementation, torch.autograd.gradgradcheck, lambda x, w: gather_sum(x, links, w, mean=mean), leaves)
    run(implementation, torch.autograd.gradgradcheck, lambda x: gather_sum(x, links, mean=mean).sin(), leaves[:1])


@needs_native
def test_the_number_of_threads_changes_no_bit():
    links, draw = random_links(30, 2000, 9000, torch.float32)
    x, weight = draw(2000, 100).requires_grad_(), draw(links.num_links).requires_grad_()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        out = run("native", gather_sum, x, links, weight)
        found.append([out, *torch.autograd.grad(out.square().sum(), [x, weight])])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


@both_implementations
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_product_with_a_sparse_matrix(implementation):
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(7, 5, generator=generator, dtype=torch.float64).clamp(min=0.5).sub(0.5)
    sparse, w = dense.to_sparse_csr(), torch.randn(5, 3, generator=generator, dtype=torch.float64).requires_grad_()
    values = sparse.values().clone().requires_grad_()
    found = run(implementation, gather_sum, w, sparse_links(sparse), values)
    close(found, dense @ w, torch.float64)
    grad_w, grad_values = torch.autograd.grad(found.sum(), [w, values])
    close(grad_w, dense.T @ torch.ones(7, 3, dtype=torch.float64), torch.float64)
    close(grad_values, w.detach().sum(1)[sparse.col_indices()], torch.float64)


def test_what_does_not_fit_is_refused(without_shape_checks):
    links, draw = random_links(5, 4, 12, torch.float64)
    with pytest.raises(DataError, match="'x' must be a table of real numbers with 4 rows"):
        gather_sum(draw(5, 3), links)
    with pytest.raises(DataError, match="'weight' must be real numbers of shape"):
        gather_sum(draw(4, 3), links, draw(3))
