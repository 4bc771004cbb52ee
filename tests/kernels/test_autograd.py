"""The native kernels as torch operators: what autograd, torch.compile and torch.export ask of them; memory."""

import subprocess
import sys

import pytest
import torch

from edhnn import kernels
from edhnn.kernels import autograd, native_backend
from edhnn.kernels.options import PAIR_TENSORS, PairOptions, RowOptions
from tests.kernels.implementations import needs_native, run
from tests.kernels.network_cases import call_pair, close, pair_arguments, random_links
from tests.kernels.test_pair import ALL_ON

pytestmark = needs_native


def operator_calls():
    """Every operator with its options on, and with them off."""
    links, draw = random_links(5, 4, 12, torch.float32)
    a, b, g = draw(5, 3).requires_grad_(), draw(4, 3).requires_grad_(), draw(5, 3)
    tensors = pair_arguments(links, 3, draw, ALL_ON)
    given = {name: tensors[name].requires_grad_() for name in PairOptions._fields[:PAIR_TENSORS]}
    full = PairOptions(**given, kappa=0.25, eps=0.1, threshold=9000, seed=3)
    none = PairOptions()
    yield "pair", autograd.pair_sum, (a, b, *links.parts, *full)
    yield "bare pair", autograd.pair_sum, (a, b, *links.parts, *none)
    yield "pair backward", autograd.pair_sum_backward, (g, a.detach(), b.detach(), *links.parts, *none, False)
    weight = draw(links.num_links).requires_grad_()
    yield "gather", autograd.gather_sum, (b, *links.parts, weight, 1)
    yield "bare gather", autograd.gather_sum, (b, *links.parts, None, 0)
    yield "dot", autograd.link_dot, (b, a, *links.parts, 2)
    options = RowOptions(draw(3).requires_grad_(), draw(3).requires_grad_(), 1e-5, 9000, 3)
    yield "rows", autograd.row_activation, (a, *options)
    yield "bare rows", autograd.row_activation, (a, *RowOptions())
    yield "moments", autograd.row_moments, (a, 7)
    row_weight, bias = draw(5).requires_grad_(), draw(3).requires_grad_()
    yield "column sum", autograd.column_sum, (a, row_weight)
    yield "bare column sum", autograd.column_sum, (a, None)
    yield "bias", autograd.add_bias, (a, bias, row_weight)
    yield "bare bias", autograd.add_bias, (a, bias, None)
    yield "fold", autograd.fold_norm, (a, draw(5).requires_grad_(), bias, draw(3).requires_grad_(), 1)
    ptr = torch.tensor([0, 2, 2, 5])
    yield "softmax", autograd.segment_softmax, (a, ptr)


@pytest.mark.parametrize(("operator", "arguments"), [pytest.param(*c[1:], id=c[0]) for c in operator_calls()])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torch_s_own_checks(operator, arguments):
    torch.library.opcheck(operator.registered, arguments)


@pytest.mark.parametrize(("operator", "arguments"), [pytest.param(*c[1:], id=c[0]) for c in operator_calls()])
def test_without_the_library_an_exported_program_still_runs(operator, arguments, monkeypatch):
    if operator is autograd.pair_sum_backward:
        return  # programs are exported for inference
    plain = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    wanted = operator(*plain)
    monkeypatch.setattr(native_backend, "BUILT", False)
    found = operator.registered(*plain)
    for mine, theirs in zip(*((x if isinstance(x, list | tuple) else [x]) for x in (found, wanted)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torch_compile_sees_them():
    links, draw = random_links(5, 4, 12, torch.float32)
    arguments = pair_arguments(links, 3, draw, ALL_ON)
    options = PairOptions(
        **{n: arguments[n] for n in PairOptions._fields[:PAIR_TENSORS]}, kappa=0.25, eps=0.1, threshold=9000
    )

    def step(a, b):
        return autograd.pair_sum(a * 2, b, *links.parts, *options).square().sum()

    a, b = draw(5, 3).requires_grad_(), draw(4, 3).requires_grad_()
    wanted = torch.autograd.grad(step(a, b), [a, b])
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    for mine, theirs in zip(torch.autograd.grad(compiled(a, b), [a, b]), wanted, strict=True):
        close(mine, theirs.double(), torch.float32)


def test_every_instruction_set_gives_the_same_answer_to_rounding(instruction_set):
    links, draw = random_links(50, 40, 500, torch.float64)
    tensors = pair_arguments(links, 37, draw, ALL_ON)
    found = run("native", lambda: call_pair(kernels.pair_sum, tensors, links, ALL_ON))
    close(found, run("torch", lambda: call_pair(kernels.pair_sum, tensors, links, ALL_ON)), torch.float64)


MEMORY = """
import resource, torch
from edhnn import Hypergraph
from edhnn.kernels import Moments, node_links, pair_sum
torch.set_num_threads(2)
N, E, I, C = {sizes}
h = Hypergraph(torch.randint(N, (I,)), torch.randint(E, (I,)), N, E)
links = node_links(h)
assert links.num_links > 0.9 * I
def table(*shape): return torch.rand(shape).requires_grad_()
a, b, moments = table(N, C), table(E, C), Moments(table(N), table(N), table(E), table(E))
def step():
    out = pair_sum(a, b, links, bias=table(C), moments=moments, norm_weight=table(C), norm_bias=table(C), dropout=0.5)
    out.sum().backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, links.num_links * C * 4)
"""


@pytest.mark.parametrize("sizes", ["(2000, 3000, 400000, 256)", "(20000, 30000, 400000, 256)"], ids=["one", "two"])
def test_nothing_of_one_row_per_link_is_made(sizes):
    """One pass and two passes: forward and backward of 400 MB of messages in far less than that."""
    code = MEMORY.format(sizes=sizes)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    grown, messages = map(int, done.stdout.split())
    assert messages > 350e6
    assert grown < 0.45 * messages
