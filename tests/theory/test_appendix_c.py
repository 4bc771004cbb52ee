"""Appendix C: an ED-HNN iteration with the exact gradient as its operator is a gradient descent step."""

import pytest
import torch

from edhnn import CliqueExpansion, DiffusionProblem, DivergenceToMean, GradientDescent, Hypergraph, TotalVariation
from edhnn.models.registry import make_model
from edhnn.nn.operators import sum_to_nodes

WIDTH, STEP, STRENGTH = 3, 0.05, 0.7


@pytest.mark.parametrize("edge_weight", [None, [2.0, 3.0, 0.5, 0.0, 1.5]], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "potential",
    [CliqueExpansion(), DivergenceToMean(power=3.0), TotalVariation(power=2)],
    ids=lambda p: type(p).__name__,
)
def test_edhnn_with_the_exact_gradient_is_gradient_descent(potential, edge_weight):
    hyperedges = [[0, 1, 2, 3], [2, 3, 4], [5], [0, 4, 5], [1, 5]]
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=7, edge_weight=edge_weight)
    x = torch.randn(7, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = make_model(
        "ed-hnn", in_features=WIDTH, num_classes=WIDTH, hidden=WIDTH, encoder=False, num_iterations=4,
        update="concat", update_layers=1, degree="none", norm="none", activation="identity", classifier_layers=1,
        dropout=0.0, input_dropout=0.0, edge_features=0,
    ).double()  # fmt: skip
    model.operators[0] = Wrapped(potential.grad)
    unit = torch.eye(WIDTH, dtype=torch.float64)
    with torch.no_grad():  # h - step * (2 (h - x) + strength * s)
        model.updates[0].mlp.last.weight.copy_(
            torch.cat([(1 - 2 * STEP) * unit, -STEP * STRENGTH * unit, 2 * STEP * unit], 1)
        )
        model.updates[0].mlp.last.bias.zero_()
        model.classifier.last.weight.copy_(unit)
        model.classifier.last.bias.zero_()
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=potential, strength=STRENGTH)
    solver = GradientDescent(rule="fixed", step_size=STEP)
    state = solver.init(problem)
    for _ in range(4):
        state = solver.step(problem, state)
    torch.testing.assert_close(model(x, hypergraph), state.h, rtol=1e-12, atol=1e-12)


class Wrapped(torch.nn.Module):
    """A potential's gradient as the operator of a network."""

    def __init__(self, grad):
        super().__init__()
        self.grad = grad

    def forward(self, z_ev, hypergraph):
        return self.grad(z_ev, hypergraph)


def test_sum_to_nodes_accepts_any_hyperedge_operator():
    hypergraph = Hypergraph.from_hyperedges([[0, 1], [1, 2]])
    h = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    expected = torch.tensor([[-4.0], [4.0 - 12.0], [12.0]], dtype=torch.float64)
    assert torch.equal(sum_to_nodes(CliqueExpansion().grad, h, hypergraph), expected)
