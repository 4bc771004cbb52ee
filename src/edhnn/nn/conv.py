r"""ED-HNN as a layer with PyG's signature: ``layer(x, hyperedge_index, hyperedge_weight, hyperedge_attr)``.

It needs no PyG. It stands in a `torch_geometric.nn.Sequential` beside PyG's own layers, with our kernels inside.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.nn.aggregation import Aggregate
from edhnn.nn.cache import hypergraph_of_pairs
from edhnn.nn.features import check_features
from edhnn.nn.mlp import MLP, NormName
from edhnn.nn.operators import EquivariantOperator
from edhnn.nn.precision import AutocastModule
from edhnn.nn.update import log_count
from edhnn.seeding import SeedStream, derive_seed


class EDConv(AutocastModule):
    r"""One iteration of ED-HNN on PyG's tensors. Paper: Algorithm 1, steps 1 to 4.

    $$ s_v = \sum_{e \ni v} \hat\rho\Big(\Big[x_v ; \sum_{u \in e} \hat\phi(x_u) ; x_e\Big]\Big), \qquad
       x'_v = \hat\varphi([x_v ; s_v ; \ln d_v]). $$

    Args:
        in_channels: Columns of ``x``.
        out_channels: Columns of the output.
        hidden_channels: Width of the messages and inside the perceptrons; by default ``out_channels``.
        edge_dim: Columns of ``hyperedge_attr``, an input of $\hat\rho$; 0 for none.
        aggregate: ``mean``, as in the released code, or ``sum``, as printed.
        norm: Norm in the perceptrons and on their inputs: ``layer``, ``batch`` or ``none``.
        dropout: Rate in the perceptrons.
        seed: Seed of the initial weights and the dropout masks. By default it is drawn from PyTorch's generator, as
            PyG's layers draw their weights, so that `torch.manual_seed` determines both.

    Example:
        >>> import torch
        >>> from edhnn.nn import EDConv
        >>> layer = EDConv(4, 8, seed=0)
        >>> layer(torch.ones(3, 4), torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int | None = None,
        edge_dim: int = 0,
        aggregate: Aggregate = "mean",
        norm: NormName = "layer",
        dropout: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        hidden = out_channels if hidden_channels is None else hidden_channels
        widths: dict[str, object] = {"in": in_channels, "out": out_channels, "hidden": hidden}
        for name, width in widths.items():
            if not isinstance(width, int) or width < 1:
                raise UsageError(f"'{name}_channels' must be an int of at least 1. Got {width!r}.")
        self.in_channels, self.out_channels, self.hidden_channels = in_channels, out_channels, hidden
        self.edge_dim, self.aggregate, self.norm, self.rate = edge_dim, aggregate, norm, dropout
        self.seeds = SeedStream()
        self.operator, self.update = self._parts(_drawn_seed() if seed is None else seed)

    def _parts(self, seed: int) -> tuple[EquivariantOperator, MLP]:
        """Make the perceptrons, and restart the seeds of the masks."""
        self.seeds.restart(derive_seed(seed, "dropout"))
        generator = torch.Generator().manual_seed(derive_seed(seed, "weights"))
        wide = self.hidden_channels

        def perceptron(inputs: int, outputs: int, layers: int) -> MLP:
            return MLP(
                inputs,
                wide,
                outputs,
                layers,
                norm=self.norm,
                dropout=self.rate,
                seeds=self.seeds,
                generator=generator,
            )

        phi = perceptron(self.in_channels, wide, 2)
        rho = perceptron(self.in_channels + wide + self.edge_dim, wide, 2)
        update = perceptron(self.in_channels + wide + 1, self.out_channels, 2)
        return EquivariantOperator(phi, rho, aggregate=self.aggregate), update

    def reset_parameters(self) -> None:
        """Draw the weights again, with a seed from PyTorch's generator."""
        operator, update = self._parts(_drawn_seed())
        self.operator.load_state_dict(operator.state_dict())
        self.update.load_state_dict(update.state_dict())

    def forward(
        self,
        x: Float[Tensor, "N F"],
        hyperedge_index: Tensor | Hypergraph,
        hyperedge_weight: Float[Tensor, " E"] | None = None,
        hyperedge_attr: Float[Tensor, "E A"] | None = None,
        num_edges: int | None = None,
    ) -> Float[Tensor, "N D"]:
        """Return the next states of the nodes.

        Args:
            x: States of the nodes.
            hyperedge_index: Pairs ``[2, I]`` of nodes and hyperedges, or a `Hypergraph`. The hypergraph of pairs is
                made once per tensor and kept while the tensor lives.
            hyperedge_weight: A weight per hyperedge, not negative. It gets no gradient.
            hyperedge_attr: Features of the hyperedges, required if ``edge_dim`` is not 0.
            num_edges: Number of hyperedges, by default the number of weights or rows of ``hyperedge_attr``, else one
                more than the largest index.
        """
        check_features(x, self.in_channels)
        if x.layout != torch.strided:
            raise DataError("States of an EDConv must be dense.", remedy="Use x.to_dense().")
        if hyperedge_weight is not None and hyperedge_weight.requires_grad:
            raise UsageError("EDConv gives 'hyperedge_weight' no gradient. Use hyperedge_weight.detach().")
        if isinstance(hyperedge_index, Hypergraph):
            hypergraph = _checked(hyperedge_index, x, hyperedge_weight)
        else:
            if num_edges is None and hyperedge_weight is not None:
                num_edges = len(hyperedge_weight)
            elif num_edges is None and hyperedge_attr is not None:
                num_edges = len(hyperedge_attr)
            hypergraph = hypergraph_of_pairs(hyperedge_index, len(x), num_edges, hyperedge_weight)
        given = None if hyperedge_attr is None else list(hyperedge_attr.shape)
        if given != ([hypergraph.num_edges, self.edge_dim] if self.edge_dim else None):
            place = f"of shape [{hypergraph.num_edges}, {self.edge_dim}]" if self.edge_dim else "absent"
            raise UsageError(f"'hyperedge_attr' must be {place} (edge_dim={self.edge_dim}). Got {given}.")
        h = x.to(self.update.last.weight)
        s = self.operator.sum_to_nodes(h, hypergraph, hyperedge_attr)
        out: Tensor = self.update(torch.cat([h, s, log_count(hypergraph.degree, h)], dim=1))
        return out

    def extra_repr(self) -> str:
        """Return the widths."""
        return f"{self.in_channels}, {self.out_channels}, edge_dim={self.edge_dim}, aggregate={self.aggregate!r}"


def _drawn_seed() -> int:
    return int(torch.randint(2**62, ()))


def _checked(hypergraph: Hypergraph, x: Tensor, weight: Tensor | None) -> Hypergraph:
    """Check a hypergraph that takes the place of pairs."""
    if weight is not None:
        raise UsageError(
            "A Hypergraph has its own weights. Make it with 'edge_weight', and leave 'hyperedge_weight' out."
        )
    if hypergraph.num_nodes != len(x):
        raise DataError(f"'x' must have a row per node, {hypergraph.num_nodes}. Got {len(x)} rows.")
    return hypergraph
