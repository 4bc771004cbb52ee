"""row_activation and hash_dropout: both implementations against plain loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError, UsageError
from edhnn.kernels import (
    add_bias,
    column_sum,
    fold_norm,
    hash_dropout,
    linear,
    row_activation,
    row_moments,
    scale_columns,
)
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


SHAPES = pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (300, 33), (3000, 64)], ids=str)


@both_dtypes
@both_implementations
@SHAPES
@pytest.mark.parametrize("weighted", [False, True])
def test_column_sums(implementation, dtype, shape, weighted):
    tensors = {"x": generated(0, *shape).to(dtype)} | ({"weight": generated(1, shape[0]).to(dtype)} if weighted else {})

    def loops(leaves):
        return (leaves["x"] * (leaves["weight"][:, None] if weighted else 1)).sum(dim=0)

    compare(implementation, lambda leaves: column_sum(**leaves), loops, tensors, dtype)


@both_dtypes
@both_implementations
@SHAPES
@pytest.mark.parametrize("weighted", [False, True])
def test_a_bias_is_added_as_often_as_asked(implementation, dtype, shape, weighted):
    tensors = {"x": generated(0, *shape), "bias": generated(1, shape[1])}
    tensors |= {"weight": generated(2, shape[0])} if weighted else {}

    def loops(leaves):
        return leaves["x"] + (leaves["weight"][:, None] if weighted else 1) * leaves["bias"]

    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    compare(implementation, lambda leaves: add_bias(**leaves), loops, tensors, dtype)


@both_dtypes
@both_implementations
@pytest.mark.parametrize("first", [0, 3, 7])
def test_a_norm_is_taken_into_the_layer_behind_it(implementation, dtype, first):
    tensors = {"weight": generated(0, 5, 7), "bias": generated(1, 5)}
    tensors |= {"norm_weight": generated(2, 7), "norm_bias": generated(3, 7)}

    def loops(leaves):
        scaled = leaves["weight"] * leaves["norm_weight"]
        centred = scaled - scaled.mean(dim=1, keepdim=True)
        return torch.cat([centred, (leaves["weight"] @ leaves["norm_bias"] + leaves["bias"])[:, None]], dim=1)

    def joined(leaves):
        one, two, shift = fold_norm(**leaves, first=first)
        assert one.shape == (5, first)
        return torch.cat([one, two, shift[:, None]], dim=1)

    compare(implementation, joined, loops, {name: tensor.to(dtype) for name, tensor in tensors.items()}, dtype)


def test_folding_is_the_norm_and_the_layer():
    x, norm, layer = generated(0, 4, 6), torch.nn.LayerNorm(6).double(), torch.nn.Linear(6, 3).double()
    with torch.no_grad():
        norm.weight.uniform_(), norm.bias.uniform_()
    one, two, shift = fold_norm(layer.weight, layer.bias, norm.weight, norm.bias, 2)
    spread = (x.var(dim=1, unbiased=False, keepdim=True) + norm.eps).rsqrt()
    torch.testing.assert_close(spread * (x @ torch.cat([one, two], dim=1).t()) + shift, layer(norm(x)))


@both_implementations
@pytest.mark.parametrize("times", [False, True])
def test_linear_layers_and_scaled_columns_are_torch_s(implementation, times):
    leaves = [generated(k, *shape).requires_grad_() for k, shape in enumerate([(50, 7), (5, 7), (5,), (50,)])]
    x, weight, bias, count = leaves
    factor = generated(4, 7).requires_grad_()
    grad = generated(5, 50, 5)
    wanted = torch.nn.functional.linear(x * factor, weight) + (count[:, None] if times else 1) * bias
    given = [*leaves[: 4 if times else 3], factor]

    def work():
        found = linear(scale_columns(x, factor), weight, bias, count if times else None)
        return [found, *torch.autograd.grad(found, given, grad)]

    for mine, theirs in zip(
        run(implementation, work), [wanted, *torch.autograd.grad(wanted, given, grad)], strict=True
    ):
        torch.testing.assert_close(mine, theirs)


@both_implementations
def test_sums_over_rows_can_be_differentiated_twice(implementation):
    shapes = [(4, 3), (2, 3), (2,), (3,), (4,)]
    x, weight, bias, factor, count = (generated(k, *shape).requires_grad_() for k, shape in enumerate(shapes))
    assert run(implementation, lambda: torch.autograd.gradgradcheck(linear, (x, weight, bias)))
    assert run(implementation, lambda: torch.autograd.gradgradcheck(scale_columns, (x, factor)))
    assert run(implementation, lambda: torch.autograd.gradgradcheck(column_sum, (x, count)))


@needs_native
@pytest.mark.usefixtures("instruction_set")
def test_the_number_of_threads_changes_no_bit_of_a_sum_over_rows():
    x, weight = generated(0, 5000, 65).float(), generated(1, 5000).float()
    matrix, vector = generated(2, 700, 333).float(), generated(3, 700).float()
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        leaves = [tensor.clone().requires_grad_() for tensor in (matrix, vector, matrix[0], matrix[1])]
        folded = fold_norm(*leaves, 100)
        gradients = torch.autograd.grad(sum(part.square().sum() for part in folded), leaves)
        found.append([column_sum(x), column_sum(x, weight), add_bias(x, x[0], weight), *folded, *gradients])
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_shapes_beside_rows_are_refused():
    x = torch.ones(4, 3)
    with pytest.raises(DataError, match="'weight' must be real numbers of shape .4."):
        column_sum(x, torch.ones(3))
    with pytest.raises(DataError, match="'bias' must be real numbers of shape .3."):
        add_bias(x, torch.ones(4))
    with pytest.raises(DataError, match=r"'first' must lie in 0..3. Got 4"):
        fold_norm(x, torch.ones(4), torch.ones(3), torch.ones(3), 4)
