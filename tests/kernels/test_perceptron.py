"""Perceptrons in one step of autograd: equal to the composition of the kernels, gradients included."""

from itertools import pairwise

import pytest
import torch

from edhnn import Hypergraph
from edhnn.errors import DataError
from edhnn.kernels import Hidden, node_links, pair_perceptron_sum, perceptron
from edhnn.kernels.autograd import SMALL_WORK, small_work
from edhnn.kernels.perceptron import _composed_pair, _composed_perceptron
from tests.kernels.implementations import needs_native

pytestmark = needs_native


def drawn(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def hidden_step(norm, dropout, width):
    weight = (drawn(width), drawn(width)) if norm else (None, None)
    return Hidden(*weight, dropout=dropout, seed=7)


def gradients(out, tensors):
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * weight).sum(), [tensor for tensor in tensors if tensor is not None])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("input_norm", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_perceptron_equals_its_composition(layers, norm, input_norm, dropout):
    x, widths = drawn(9, 4), [4, *[6] * (layers - 1), 3]
    linears = [(drawn(after, before), drawn(after)) for before, after in pairwise(widths)]
    hidden = [hidden_step(norm, dropout, 6) for _ in range(layers - 1)]
    given = Hidden(drawn(4), drawn(4)) if input_norm else None
    tensors = [x, *sum(linears, ()), *sum((step[:2] for step in hidden), ()), *(given[:2] if given else ())]
    fused = perceptron(x, linears, hidden, given)
    composed = _composed_perceptron(x, linears, hidden, given)
    assert fused.grad_fn.name().startswith("_Perceptron")
    assert torch.equal(fused, composed)
    for one, other in zip(gradients(fused, tensors), gradients(composed, tensors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("input_norm", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_pair_perceptron_equals_its_composition(norm, input_norm, weighted, mean):
    links = node_links(Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [3]], num_nodes=5))
    row, column, first = drawn(5, 4), drawn(3, 2), (drawn(6, 4), drawn(6, 2), drawn(6))
    hidden, last = hidden_step(norm, 0.3, 6), (drawn(3, 6), drawn(3))
    options = {
        "norm_eps": 1e-5 if input_norm else None,
        "weight": torch.linspace(1, 2, links.num_links, dtype=torch.float64) if weighted else None,
        "mean": mean,
        "total": torch.arange(5.0, dtype=torch.float64) if weighted else None,
    }
    tensors = [row, column, *first, *last, *hidden[:2]]
    fused = pair_perceptron_sum(row, column, links, first, hidden, last, **options)
    composed = _composed_pair(row, column, links, first, hidden, last, **options)
    assert fused.grad_fn.name().startswith("_PairPerceptron")
    assert torch.equal(fused, composed)
    for one, other in zip(gradients(fused, tensors), gradients(composed, tensors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_frozen_tensors_have_no_gradient():
    x, weight, bias = drawn(3, 2), drawn(2, 2).detach(), drawn(2)
    out = perceptron(x, [(weight, bias)], [])
    out.sum().backward()
    assert x.grad is not None and bias.grad is not None and weight.grad is None
    assert perceptron(x.detach(), [(weight, bias)], []).requires_grad


def test_second_derivatives_go_through_the_composition():
    x, linears = drawn(3, 2), [(drawn(2, 2), drawn(2))]
    assert torch.autograd.gradgradcheck(lambda x, weight, bias: perceptron(x, [(weight, bias)], []), (x, *linears[0]))
    steps = [Hidden(drawn(2), drawn(2))]
    out = perceptron(x, [linears[0], linears[0]], steps).square().sum()
    (grad,) = torch.autograd.grad(out, x, create_graph=True)
    with pytest.raises(NotImplementedError, match="row_activation cannot be differentiated natively"):
        grad.sum().backward()


def test_small_work_uses_one_thread_and_restores_the_number():
    torch.set_num_threads(2)
    with small_work(SMALL_WORK):
        assert torch.get_num_threads() == 1
    with small_work(SMALL_WORK + 1):
        assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), small_work(1):
        raise KeyError
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("without_shape_checks")
def test_shapes_that_do_not_fit_never_reach_native_code():
    linears, short = [(drawn(3, 4), drawn(3)), (drawn(2, 3), drawn(2))], drawn(1)
    with pytest.raises(DataError, match="norm_weight"):
        perceptron(drawn(5, 7), linears, [Hidden()], Hidden(drawn(4), drawn(4)))
    with pytest.raises(DataError, match="norm_weight"):
        perceptron(drawn(5, 4), linears, [Hidden(short, short)])
    links = node_links(Hypergraph.from_hyperedges([[0, 1]]))
    first, last = (drawn(6, 4), drawn(6, 2), drawn(6)), (drawn(3, 6), drawn(3))
    with pytest.raises(DataError, match="norm_weight"):
        pair_perceptron_sum(drawn(2, 4), drawn(1, 2), links, first, Hidden(short, short), last)
    with pytest.raises(DataError, match="weight"):
        pair_perceptron_sum(drawn(2, 4), drawn(1, 2), links, first, Hidden(), last, weight=short.detach())
