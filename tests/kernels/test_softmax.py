"""segment_softmax and segment_max: both implementations against torch on each hyperedge alone."""

import pytest
import torch
from hypothesis import given, settings

from edhnn.kernels import segment_max, segment_softmax
from tests.kernels.implementations import both_dtypes, both_implementations, needs_native, run
from tests.kernels.network_cases import close
from tests.kernels.strategies import random_case, segments, tensors


@both_dtypes
@both_implementations
@settings(max_examples=50)
@given(segments())
def test_each_hyperedge_alone(implementation, dtype, drawn):
    values, edge_ptr, *_ = tensors(drawn, dtype)
    values = values.clamp(-50, 50).requires_grad_()
    exact = values.detach().double().requires_grad_()
    parts = exact.tensor_split(edge_ptr[1:-1].tolist()) if len(edge_ptr) > 1 else ()
    soft = torch.cat([part.softmax(0) for part in parts]) if parts else exact * 1.0
    found = run(implementation, segment_softmax, values, edge_ptr)
    close(found, soft, dtype)
    if values.numel():
        weight = torch.linspace(-1, 1, values.numel(), dtype=dtype).reshape(values.shape)
        (mine,) = torch.autograd.grad(found, values, weight)
        (theirs,) = torch.autograd.grad(soft, exact, weight.double())
        close(mine, theirs, dtype)
        most = [part.max(0).values if len(part) else part.new_zeros(part.shape[1]) for part in parts]
        close(run(implementation, segment_max, values, edge_ptr), torch.stack(most), dtype)


@both_implementations
def test_the_first_of_equal_values_takes_the_gradient(implementation):
    values = torch.tensor([[1.0], [2.0], [2.0], [5.0]], requires_grad=True)
    out = run(implementation, segment_max, values, torch.tensor([0, 3, 3, 4]))
    assert out.flatten().tolist() == [2.0, 0.0, 5.0]
    out.sum().backward()
    assert values.grad.flatten().tolist() == [0.0, 1.0, 0.0, 1.0]


@both_implementations
def test_not_a_number_is_the_largest(implementation):
    values = torch.tensor([[1.0], [float("nan")], [2.0], [5.0]])
    out = run(implementation, segment_max, values, torch.tensor([0, 3, 4]))
    assert bool(out[0].isnan()) and float(out[1]) == 5.0


@both_implementations
def test_gradcheck(implementation):
    values, edge_ptr, *_ = random_case(0, [2, 0, 3, 1], 2)
    values.requires_grad_()
    assert run(implementation, torch.autograd.gradcheck, lambda x: segment_softmax(x, edge_ptr), [values])
    assert run(implementation, torch.autograd.gradcheck, lambda x: segment_max(x, edge_ptr), [values])


@needs_native
def test_the_number_of_threads_changes_no_bit():
    values, edge_ptr, *_ = random_case(0, [300, 0, 1, 9000, 7, 4000], 11)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        leaf = values.clone().requires_grad_()
        out = run("native", segment_softmax, leaf, edge_ptr)
        found.append((out, *torch.autograd.grad(out.square().sum(), leaf), run("native", segment_max, leaf, edge_ptr)))
    assert all(torch.equal(x, y) for x, y in zip(*found, strict=True))


@needs_native
def test_second_derivatives_are_torch_s():
    values, edge_ptr, *_ = random_case(0, [2, 3], 2)
    values.requires_grad_()

    def twice():
        (first,) = torch.autograd.grad(segment_softmax(values, edge_ptr).square().sum(), values, create_graph=True)
        return torch.autograd.grad(first.square().sum(), values)[0]

    assert bool(run("torch", twice).isfinite().all())
    with pytest.raises(NotImplementedError, match="EDHNN_KERNELS=torch"):
        run("native", twice)
