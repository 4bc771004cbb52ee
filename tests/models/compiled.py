"""The checks of `test_compile`, run in a separate process without the shape checks of the tests."""

import sys

import torch
import torch._dynamo

from edhnn import Hypergraph, HypergraphModel, kernels, make_model
from edhnn.models.registry import MODELS

BREAKS = {
    "hypergcn": "its graph is made with NumPy",
    "hypernd": "the number of its steps depends on the features",
}
"""Models that torch.compile runs in several graphs, and why."""


class Net(torch.nn.Module):
    """A model on one hypergraph."""

    def __init__(self, name, **options):
        super().__init__()
        self.model = make_model(name, in_features=5, num_classes=3, **options)
        self.hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [], [4]], num_nodes=6)

    def forward(self, x):
        return self.model(x, self.hypergraph)


def gradients(net, call, features):
    net.zero_grad()
    for part in net.modules():
        if isinstance(part, HypergraphModel):
            part.seeds.restart(3)
    out = call(features)
    out.square().sum().backward()
    return [out.detach(), *(one.grad.clone() for one in net.parameters() if one.grad is not None)]


def main():
    features = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    net = Net("ed-hnn", hidden=8, classifier_hidden=8).eval()
    program = torch.export.export(net, (features,))
    operators = {str(node.target) for node in program.graph.nodes}
    expected_operators = {"edhnn.gather_sum.default", "edhnn.pair_sum.default", "edhnn.row_activation.default"}
    assert expected_operators <= operators or kernels.active() == "torch", operators
    assert torch.equal(program.module()(features), net(features))
    for name in ("ed-hnn", "ed-hnn-ii"):
        net = Net(name, hidden=8, classifier_hidden=8)
        expected = gradients(net, net, features)
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        for a, b in zip(gradients(net, compiled, features), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def every_model():
    features = torch.rand(6, 5, generator=torch.Generator().manual_seed(0))
    for name in sorted(MODELS):
        torch._dynamo.reset()
        net = Net(name)
        expected = gradients(net, net, features)  # makes the graphs of expansions, once
        compiled = torch.compile(net, backend="aot_eager", fullgraph=name not in BREAKS)
        for a, b in zip(gradients(net, compiled, features), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
        if name in BREAKS:
            torch._dynamo.reset()
            try:
                torch.compile(net, backend="aot_eager", fullgraph=True)(features)
            except Exception:  # of any kind: PyTorch has several
                continue
            raise AssertionError(f"{name} compiles without breaks now; remove it from BREAKS")


if __name__ == "__main__":
    every_model() if sys.argv[1:] == ["all"] else main()
