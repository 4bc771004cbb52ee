"""The textbook version of ED-HNN: Algorithm 1 with a row per incidence, from PyTorch's modules.

Every message is a row: the perceptron rho runs on all incidences, `index_select` gathers values and `index_add` sums
them, features are dense, dropout is `torch.nn.Dropout`. It is built from one of our models and shares its parameters,
so that the outputs of the two can be compared in evaluation.
"""

import torch
from torch import Tensor, nn

from edhnn import EDHNN, Hypergraph
from edhnn.nn.mlp import MLP


def pytorch_layer(layer: nn.Module) -> nn.Module:
    """Return PyTorch's layer with the parameters of ours."""
    if isinstance(layer, nn.Linear):
        twin: nn.Module = nn.Linear(layer.in_features, layer.out_features, device="meta")
    elif isinstance(layer, nn.LayerNorm):
        twin = nn.LayerNorm(layer.normalized_shape, eps=layer.eps, device="meta")
    else:
        return layer
    twin.weight, twin.bias = layer.weight, layer.bias
    return twin


def plain(mlp: nn.Module) -> nn.Module:
    """Return our perceptron as a sequence of PyTorch modules that share its parameters."""
    if not isinstance(mlp, MLP):
        return mlp
    parts: list[nn.Module] = [] if mlp.input_norm is None else [pytorch_layer(mlp.input_norm)]
    for linear, norm in zip(mlp.linears[:-1], mlp.norms, strict=True):
        parts += [pytorch_layer(linear), nn.ReLU(), pytorch_layer(norm), nn.Dropout(mlp.dropout.rate)]
    return nn.Sequential(*parts, pytorch_layer(mlp.last))


class Textbook(nn.Module):
    """Algorithm 1 with the released update, built from one of our models."""

    def __init__(self, model: EDHNN) -> None:
        super().__init__()
        operator, config = model.operators[0], model.config
        self.mean, self.restart, self.iterations = config.aggregate == "mean", config.restart, config.num_iterations
        self.encoder = nn.Sequential(nn.Dropout(config.input_dropout), pytorch_layer(model.encoder.linear), nn.ReLU())
        self.phi, self.rho = plain(operator.phi), plain(operator.rho)
        self.update, self.classifier = plain(model.updates[0].mlp), plain(model.classifier)
        self.dropout = nn.Dropout(config.dropout)

    def aggregate(self, rows: Tensor, index: Tensor, count: int) -> Tensor:
        total = rows.new_zeros(count, rows.shape[1]).index_add(0, index, rows)
        if not self.mean:
            return total
        size = torch.bincount(index, minlength=count).clamp(min=1)
        return total / size[:, None]

    def operate(self, h: Tensor, hypergraph: Hypergraph) -> Tensor:
        node, edge = hypergraph.node_index, hypergraph.edge_index
        m_e = self.aggregate(self.phi(h).index_select(0, node), edge, hypergraph.num_edges)
        m_ev = self.rho(torch.cat([h.index_select(0, node), m_e.index_select(0, edge)], dim=1))
        return self.aggregate(m_ev, node, hypergraph.num_nodes)

    def forward(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        x_v = h = self.encoder(x)
        for _ in range(self.iterations):
            h = self.dropout(h)
            s = self.operate(h, hypergraph)
            h = self.update((1 - self.restart) * s + self.restart * x_v).relu()
        return self.classifier(self.dropout(h))
