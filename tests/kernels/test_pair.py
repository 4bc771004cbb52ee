"""pair_sum: both implementations, on every instruction set, against plain loops; gradients, threads, refusals."""

import pytest
import torch
from hypothesis import given, settings

from edhnn import DataError, UsageError
from edhnn.kernels import Moments, pair_sum
from tests.kernels import network_references as references
from tests.kernels.implementations import both_dtypes, both_implementations, needs_native, run
from tests.kernels.network_cases import (
    PROBLEMS,
    build,
    call_pair,
    close,
    compare,
    pair_arguments,
    pair_options,
    random_links,
)

ALL_ON = dict(bias=True, moments=True, activation="relu", norm="both", dropout=0.25, weight=True, mean=True, shift=0.0)


@both_dtypes
@both_implementations
@settings(max_examples=60)
@given(PROBLEMS, pair_options())
def test_it_is_the_loop_over_links(implementation, dtype, problem, options):
    links, channels, draw = build(problem, dtype)
    tensors = pair_arguments(links, channels, draw, options)
    if options["shift"] and dtype == torch.float32:
        tensors["a"] = tensors["a"] - 25.0  # a mean of 5: 30 alone costs float32 half its digits, on any backend
    compare(
        implementation,
        lambda leaves: call_pair(pair_sum, leaves, links, options),
        lambda leaves: call_pair(references.pair_sum, leaves, links, options),
        tensors,
        dtype,
    )


@pytest.mark.usefixtures("instruction_set")
@both_dtypes
@pytest.mark.parametrize("shape", [(300, 20, 4000), (20, 300, 4000), (700, 900, 3000)], ids=str)
@pytest.mark.parametrize("channels", [5, 64, 100])
def test_large_problems_agree_with_torch(dtype, shape, channels):
    links, draw = random_links(*shape, dtype)
    tensors = pair_arguments(links, channels, draw, ALL_ON)
    compare(
        "native",
        lambda leaves: call_pair(pair_sum, leaves, links, ALL_ON),
        lambda leaves: run("torch", lambda: call_pair(pair_sum, leaves, links, ALL_ON)),
        tensors,
        dtype,
    )


@pytest.mark.usefixtures("instruction_set")
@both_dtypes
def test_few_rows_and_a_large_table_of_columns(dtype):
    """Forward, too, goes column by column there: 12 MB of columns, 40 rows."""
    links, draw = random_links(40, 30000, 50000, dtype)
    tensors = pair_arguments(links, 100, draw, ALL_ON)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run("native", lambda: call_pair(pair_sum, tensors, links, ALL_ON)))
    assert torch.equal(*found)
    exact = {name: tensor.double() for name, tensor in tensors.items()}
    close(found[0], run("torch", lambda: call_pair(pair_sum, exact, links, ALL_ON)), dtype)


@needs_native
@pytest.mark.parametrize("shape", [(300, 20, 9000), (20, 300, 9000), (2000, 3000, 9000), (1, 1, 1)], ids=str)
def test_the_number_of_threads_changes_no_bit(shape):
    links, draw = random_links(*shape, torch.float32)
    tensors = {name: t.requires_grad_() for name, t in pair_arguments(links, 100, draw, ALL_ON).items()}
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        out = run("native", lambda: call_pair(pair_sum, tensors, links, ALL_ON))
        found.append([out, *torch.autograd.grad(out.square().sum(), list(tensors.values()))])
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


@both_implementations
@pytest.mark.parametrize("norm", ["none", "both"])
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_gradcheck(implementation, norm, activation):
    links, draw = random_links(4, 3, 9, torch.float64)
    options = ALL_ON | dict(norm=norm, activation=activation)
    tensors = pair_arguments(links, 3, draw, options)

    def function(*leaves):
        return call_pair(pair_sum, dict(zip(tensors, leaves, strict=True)), links, options)

    leaves = [tensor.requires_grad_() for tensor in tensors.values()]
    assert run(implementation, torch.autograd.gradcheck, function, leaves)


@needs_native
def test_second_derivatives_are_torch_s():
    links, draw = random_links(4, 3, 9, torch.float64)
    options = ALL_ON | dict(activation="identity")
    tensors = {name: t.requires_grad_() for name, t in pair_arguments(links, 3, draw, options).items()}

    def twice():
        out = call_pair(pair_sum, tensors, links, options)
        (first,) = torch.autograd.grad(out.square().sum(), tensors["a"], create_graph=True)
        return torch.autograd.grad(first.square().sum(), tensors["b"])[0]

    assert bool(run("torch", twice).isfinite().all())
    with pytest.raises(
        NotImplementedError, match="pair_sum cannot be differentiated natively. Set EDHNN_KERNELS=torch"
    ):
        run("native", twice)


def test_it_is_an_mlp_on_the_concatenation():
    """LayerNorm, Linear, ReLU, LayerNorm on [x_r; x_s], summed: what the kernel is for."""
    links, draw = random_links(6, 5, 20, torch.float64)
    x, m, scale, shift = draw(6, 4), draw(5, 3), draw(7), draw(7)
    linear, norm = torch.nn.Linear(7, 8).double(), torch.nn.LayerNorm(8).double()
    both = torch.cat([x[links.row_index], m[links.row_column]], 1)
    hidden = norm(torch.relu(linear(torch.nn.functional.layer_norm(both, (7,), scale, shift, 1e-5))))
    wanted = torch.zeros(6, 8, dtype=torch.float64).index_add(0, links.row_index, hidden)

    folded = linear.weight * scale  # LayerNorm's scale; then W (h - mean) = (W - its row mean) h, split in two
    folded = folded - folded.mean(1, keepdim=True)
    # the mean over both halves is not the mean of either: centre each half by its own and count the distance in kappa
    q, mu = [(t - t.mean(1, keepdim=True)).square().sum(1) / 7 for t in (x, m)], [t.mean(1) for t in (x, m)]
    moments = Moments(q[0], mu[0], q[1], mu[1], kappa=4 * 3 / 49, eps=1e-5)
    found = pair_sum(
        x @ folded[:, :4].T,
        m @ folded[:, 4:].T,
        links,
        bias=linear.bias + linear.weight @ shift,
        moments=moments,
        norm_weight=norm.weight,
        norm_bias=norm.bias,
    )
    close(found, wanted, torch.float64)


@both_implementations
def test_masks_belong_to_links_not_to_orders(implementation):
    """Node side and hyperedge side see the same mask for the same link."""
    links, draw = random_links(5, 4, 12, torch.float64)
    a, b = draw(5, 40), draw(4, 40)
    options = dict(dropout=0.5, seed=3, activation="identity")
    by_row = run(implementation, lambda: pair_sum(a, b, links, **options))
    by_column = run(implementation, lambda: pair_sum(b, a, links.transposed(), **options))
    torch.testing.assert_close(by_row.sum(0), by_column.sum(0))


@both_implementations
def test_other_activations_are_served(implementation):
    links, draw = random_links(5, 4, 12, torch.float64)
    a, b = draw(5, 3), draw(4, 3)
    for name, function in (("gelu", torch.nn.functional.gelu), ("tanh", torch.tanh)):
        wanted = torch.zeros(5, 3, dtype=torch.float64).index_add(
            0, links.row_index, function(a[links.row_index] + b[links.row_column])
        )
        close(run(implementation, lambda n=name: pair_sum(a, b, links, activation=n)), wanted, torch.float64)


def test_half_precision_is_served_by_torch():
    links, draw = random_links(5, 4, 12, torch.bfloat16)
    assert pair_sum(draw(5, 3), draw(4, 3), links).dtype == torch.bfloat16


def test_what_does_not_fit_is_refused(without_shape_checks):
    links, draw = random_links(5, 4, 12, torch.float64)
    a, b = draw(5, 3), draw(4, 3)
    with pytest.raises(DataError, match="'a' must be a table of real numbers with 5 rows. Got .*\\[4, 3\\]"):
        pair_sum(b, b, links)
    with pytest.raises(DataError, match="'b' must be real numbers of shape \\[4, 3\\]"):
        pair_sum(a, draw(4, 2), links)
    with pytest.raises(DataError, match="'bias' must be real numbers of shape \\[3\\]"):
        pair_sum(a, b, links, bias=draw(1))
    with pytest.raises(DataError, match="'norm_weight' must be of the type of 'values', torch.float64"):
        pair_sum(a, b, links, norm_weight=draw(3).float())
    with pytest.raises(DataError, match="'b' must be of the type of 'values'"):
        pair_sum(a, b.float(), links)
    with pytest.raises(UsageError, match="'rleu'.*Did you mean 'relu'"):
        pair_sum(a, b, links, activation="rleu")
    for rate in (-0.1, 1.0, 0.9999999, float("nan")):
        with pytest.raises(UsageError, match="dropout rate must be 0 or more and less than 1"):
            pair_sum(a, b, links, dropout=rate)


@both_implementations
def test_not_a_number_spoils_its_own_links_only(implementation):
    links, draw = random_links(6, 5, 14, torch.float64)
    a, b = draw(6, 8), draw(5, 8)
    clean = run(implementation, lambda: pair_sum(a, b, links, norm_weight=torch.ones(8, dtype=torch.float64)))
    b[2, 3] = float("nan")
    found = run(implementation, lambda: pair_sum(a, b, links, norm_weight=torch.ones(8, dtype=torch.float64)))
    touched = torch.zeros(6, dtype=torch.bool)
    touched[links.row_index[links.row_column == 2]] = True
    assert bool(found[touched].isnan().all())
    assert torch.equal(found[~touched], clean[~touched])
