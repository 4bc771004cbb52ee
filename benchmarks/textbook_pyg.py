"""The textbook version of ED-HNN with torch_geometric's `MessagePassing`, in a module that only PyG users import."""

import torch
from textbook import Textbook
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from edhnn import EDHNN, Hypergraph


class MessagePassed(Textbook):
    """The textbook version with torch_geometric's `MessagePassing`, as its users would write it."""

    def __init__(self, model: EDHNN) -> None:
        super().__init__(model)
        aggregation = "mean" if self.mean else "sum"
        self.to_edges, self.to_nodes = ToEdges(aggregation), ToNodes(self.rho, aggregation)

    def operate(self, h: Tensor, hypergraph: Hypergraph) -> Tensor:
        index = torch.stack([hypergraph.node_index, hypergraph.edge_index])
        nodes, edges = hypergraph.num_nodes, hypergraph.num_edges
        m_e = self.to_edges(self.phi(h), index, (nodes, edges))
        return self.to_nodes(m_e, h, index.flip(0), (edges, nodes))


class ToEdges(MessagePassing):
    def forward(self, h: Tensor, index: Tensor, size: tuple[int, int]) -> Tensor:
        out: Tensor = self.propagate(index, x=(h, None), size=size)
        return out

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


class ToNodes(MessagePassing):
    def __init__(self, rho: nn.Module, aggregation: str) -> None:
        super().__init__(aggregation)
        self.rho = rho

    def forward(self, m_e: Tensor, h: Tensor, index: Tensor, size: tuple[int, int]) -> Tensor:
        out: Tensor = self.propagate(index, x=(m_e, h), size=size)
        return out

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        out: Tensor = self.rho(torch.cat([x_i, x_j], dim=1))
        return out
