r"""Step 4 of Algorithm 1: the update of a node's state from its state, its messages and its features."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph

DegreeFeature = Literal["log", "count", "none"]


def log_count(count: Tensor, like: Tensor) -> Float[Tensor, "R 1"]:
    r"""Return $\ln \max(n, 1)$ as a column: an isolated node and an empty hyperedge count as one."""
    return count.clamp(min=1).to(like).log()[:, None]


class RestartUpdate(nn.Module):
    r"""$\hat\varphi((1 - \alpha) s_v + \alpha x_v)$, as the released code has it.

    Args:
        mlp: $\hat\varphi$.
        restart: $\alpha$.
    """

    def __init__(self, mlp: nn.Module, restart: float) -> None:
        super().__init__()
        if not 0 <= restart <= 1:
            raise UsageError(f"The restart must lie in 0..1. Got {restart}.")
        self.mlp, self.restart = mlp, restart

    def forward(
        self, h: Float[Tensor, "N D"], s: Float[Tensor, "N D"], x: Float[Tensor, "N D"], hypergraph: Hypergraph
    ) -> Float[Tensor, "N D"]:
        """Return the next state; ``h`` and the degrees are not used."""
        del h, hypergraph
        out: Tensor = self.mlp(s if self.restart == 0 else torch.lerp(s, x, self.restart))
        return out


class ConcatUpdate(nn.Module):
    r"""$\hat\varphi([h_v ; s_v ; x_v ; d_v])$. Paper: Algorithm 1, step 4.

    Args:
        mlp: $\hat\varphi$, on three states and (unless ``degree`` is ``none``) one more column.
        degree: The last column: ``log`` for $\ln \max(d_v, 1)$, ``count`` for $d_v$, ``none`` for no column.
    """

    def __init__(self, mlp: nn.Module, degree: DegreeFeature = "log") -> None:
        super().__init__()
        if degree not in get_args(DegreeFeature):
            raise unknown_name("degree", degree, get_args(DegreeFeature))
        self.mlp, self.degree = mlp, degree

    def forward(
        self, h: Float[Tensor, "N D"], s: Float[Tensor, "N D"], x: Float[Tensor, "N D"], hypergraph: Hypergraph
    ) -> Float[Tensor, "N D"]:
        """Return the next state."""
        parts = [h, s, x]
        if self.degree == "log":
            parts.append(log_count(hypergraph.degree, h))
        elif self.degree == "count":
            parts.append(hypergraph.degree.to(h)[:, None])
        out: Tensor = self.mlp(torch.cat(parts, dim=1))
        return out
