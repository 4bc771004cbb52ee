"""row_activation and hash_dropout: both implementations against plain loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError, UsageError
from edhnn.kernels import hash_dropout, row_activation, row_moments
from tests.kernels import network_references as references
from tests.kernels.implementations import both_dtypes, both_implementations, needs_native, run
from tests.kernels.network_cases import compare


def generated(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@both_dtypes
@both_implementations
@settings(max_examples=60)
@given(
    st.integers(0, 5),
    st.sampled_from([1, 3, 8, 17, 33, 70]),
    st.sampled_from(["relu", "identity"]),
    st.sampled_from(["none", "weight", "both"]),
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 2**64 - 1),
)
def test_it_is_the_loop_over_rows(implementation, dtype, rows, channels, activation, norm, dropout, seed):
    tensors = {"x": generated(0, rows, channels)}
    if norm != "none":
        tensors["norm_weight"] = generated(1, channels)
    if norm == "both":
        tensors["norm_bias"] = generated(2, channels)
    options = dict(activation=activation, dropout=dropout, seed=seed, norm_eps=0.05)
    compare(
        implementation,
        lambda leaves: row_activation(**leaves, **options),
        lambda leaves: references.row_activation(**leaves, **options),
        {name: tensor.to(dtype) for name, tensor in tensors.items()},
        dtype,
    )


@pytest.mark.usefixtures("instruction_set")
@both_dtypes
def test_large_tables_agree_with_torch(dtype):
    tensors = {"x": generated(0, 3000, 70), "norm_weight": generated(1, 70), "norm_bias": generated(2, 70)}
    compare(
        "native",
        lambda leaves: row_activation(**leaves, dropout=0.5, seed=1),
        lambda leaves: run("torch", lambda: row_activation(**leaves, dropout=0.5, seed=1)),
        {name: tensor.to(dtype) for name, tensor in tensors.items()},
        dtype,
    )


@both_implementations
def test_gradcheck(implementation):
    leaves = [generated(0, 3, 4), generated(1, 4), generated(2, 4)]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    run(
        implementation,
        torch.autograd.gradcheck,
        lambda x, w, b: row_activation(x, norm_weight=w, norm_bias=b, dropout=0.3, seed=1),
        leaves,
    )


@needs_native
def test_the_number_of_threads_changes_no_bit():
    leaves = [generated(0, 3000, 100).float(), generated(1, 100).float(), generated(2, 100).float()]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        out = run(
            "native", lambda: row_activation(leaves[0], norm_weight=leaves[1], norm_bias=leaves[2], dropout=0.5, seed=1)
        )
        found.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


@both_implementations
@pytest.mark.parametrize("shape", [(5, 40), (1000,), (1,), (256,), (0,), (0, 3), (3, 0)], ids=str)
def test_dropout_and_its_gradient_have_one_mask(implementation, shape):
    x = generated(3, *shape).requires_grad_()
    out = run(implementation, hash_dropout, x, 0.25, 11)
    out.backward(torch.ones_like(out))
    torch.testing.assert_close(out.detach(), x.detach() * x.grad, rtol=0, atol=0)
    assert set(x.grad.unique().tolist()) <= {0.0, 1 / 0.75}


@needs_native
@pytest.mark.parametrize("shape", [(50, 70), (1000,)], ids=str)
def test_both_implementations_draw_one_mask(shape):
    x = torch.ones(shape)
    for seed in (0, 1, -1, 2**63, 2**64 - 1):
        found = [run(name, hash_dropout, x, 0.4, seed) for name in ("torch", "native")]
        assert torch.equal(*found)


def test_what_does_not_fit_is_refused(without_shape_checks):
    with pytest.raises(DataError, match="'norm_bias' must be real numbers of shape \\[4\\]"):
        row_activation(torch.ones(3, 4), norm_weight=torch.ones(4), norm_bias=torch.ones(3))
    with pytest.raises(UsageError, match="dropout rate"):
        hash_dropout(torch.ones(3), 1.0, 0)


def loop_moments(x):
    mean = [sum(row) / len(row) for row in x]
    return torch.stack(mean), torch.stack([((row - m) ** 2).sum() for row, m in zip(x, mean, strict=True)])


@both_dtypes
@both_implementations
@settings(max_examples=30)
@given(st.integers(1, 5), st.sampled_from([1, 3, 8, 17, 33, 70]), st.integers(0, 99))
def test_moments_are_those_of_the_rows(implementation, dtype, rows, channels, seed):
    def joined(moments):
        return torch.stack([moments[0], moments[1]], dim=1)

    compare(
        implementation,
        lambda leaves: joined(row_moments(**leaves)),
        lambda leaves: joined(loop_moments(**leaves)),
        {"x": generated(seed, rows, channels).to(dtype)},
        dtype,
    )


@both_implementations
def test_moments_gradcheck(implementation):
    x = generated(3, 4, 9).requires_grad_()
    assert run(implementation, lambda: torch.autograd.gradcheck(row_moments, (x,)))


@needs_native
def test_moments_of_many_rows_do_not_depend_on_threads():
    x = generated(4, 5000, 65).float()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run("native", lambda: row_moments(x)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
