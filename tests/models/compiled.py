"""The checks of `test_compile`, run in a separate process without the shape checks of the tests."""

import torch

from edhnn import Hypergraph, kernels, make_model


class Net(torch.nn.Module):
    """A model on one hypergraph."""

    def __init__(self, name):
        super().__init__()
        self.model = make_model(name, in_features=5, num_classes=3, hidden=8, classifier_hidden=8)
        self.hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [], [4]], num_nodes=6)

    def forward(self, x):
        return self.model(x, self.hypergraph)


def gradients(net, call, features):
    net.zero_grad()
    net.model.seeds.restart(3)
    out = call(features)
    out.square().sum().backward()
    return [out.detach(), *(parameter.grad.clone() for parameter in net.parameters())]


def main():
    features = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    net = Net("ed-hnn").eval()
    program = torch.export.export(net, (features,))
    operators = {str(node.target) for node in program.graph.nodes}
    expected_operators = {"edhnn.gather_sum.default", "edhnn.pair_sum.default", "edhnn.row_activation.default"}
    assert expected_operators <= operators or kernels.active() == "torch", operators
    assert torch.equal(program.module()(features), net(features))
    for name in ("ed-hnn", "ed-hnn-ii"):
        net = Net(name)
        expected = gradients(net, net, features)
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        for a, b in zip(gradients(net, compiled, features), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    main()
