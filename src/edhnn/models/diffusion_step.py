r"""A one-layer model that learns a diffusion step from pairs of states.

$$ \hat h_v = (1 - \alpha) \sum_{e \ni v} \hat\rho([h_v ; m_e]) + \alpha h_v,
   \quad m_e = \sum_{u \in e} \hat\phi(h_u). $$

It has no encoder, no classifier and no input norm. Paper: Section 4.4, Appendix F.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.configuration import Configuration, Depth, Fraction, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.transforms import disjoint_copies
from edhnn.nn.aggregation import Aggregate
from edhnn.nn.cache import cached_per_hypergraph
from edhnn.nn.mlp import MLP, NormName
from edhnn.nn.operators import EquivariantOperator, InvariantOperator
from edhnn.seeding import SeedStream, derive_seed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionRegressionConfig(Configuration):
    r"""Options of the one-layer model.

    Attributes:
        hidden: Width of the hidden states of hyperedges and of the perceptrons.
        phi_layers: Layers of $\hat\phi$.
        rho_layers: Layers of $\hat\rho$.
        aggregate: ``sum`` or ``mean``.
        restart: $\alpha$.
        norm: Norm inside the perceptrons.
        equivariant: Whether $h_v$ is an input of $\hat\rho$; otherwise the layer is invariant.
    """

    hidden: Width = 64
    phi_layers: Depth = 2
    rho_layers: Depth = 2
    aggregate: Aggregate = "sum"
    restart: Fraction = 0.5
    norm: NormName = "layer"
    equivariant: bool = True


class DiffusionRegression(nn.Module):
    """A learned diffusion step. Paper: Section 4.4, Appendix F.5.

    Args:
        config: Its options.
        width: Columns of the states.
        seed: Seed of the initial weights.
    """

    def __init__(self, config: DiffusionRegressionConfig | None = None, *, width: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.config = config = config or DiffusionRegressionConfig()
        seeds, generator = SeedStream(seed), torch.Generator().manual_seed(derive_seed(seed, "weights"))
        mlp = partial(MLP, norm=config.norm, input_norm=False, seeds=seeds, generator=generator)
        phi = mlp(width, config.hidden, config.hidden, config.phi_layers)
        if config.equivariant:
            rho = mlp(width + config.hidden, config.hidden, width, config.rho_layers)
            self.operator: nn.Module = EquivariantOperator(phi, rho, aggregate=config.aggregate)
        else:
            rho = mlp(config.hidden, config.hidden, width, config.rho_layers)
            self.operator = InvariantOperator(phi, rho, aggregate=config.aggregate)

    def forward(self, h: Float[Tensor, "B N D"], hypergraph: Hypergraph) -> Float[Tensor, "B N D"]:
        """Return the next states of a batch of states on one hypergraph."""
        flat = h.flatten(0, 1)
        s = self.operator.sum_to_nodes(flat, copies_of(hypergraph, len(h)))  # type: ignore[operator]
        return torch.lerp(s, flat, self.config.restart).view(h.shape)


def copies_of(hypergraph: Hypergraph, count: int) -> Hypergraph:
    """Return ``count`` disjoint copies of the hypergraph as one; cached on the hypergraph."""
    return cached_per_hypergraph(hypergraph, ("copies", count), lambda: disjoint_copies(hypergraph, count))
