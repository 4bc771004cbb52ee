r"""Node potentials $f(h_v; x_v)$, which penalise the distance of a node's state from its observed value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from edhnn.errors import DataError

_MAX_STEPS = 200


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SquaredDistance:
    r"""$f(h; x) = \mu_v (h - x)^2$.

    Paper: Definition 3, the node potential of hypergraph PageRank (with $\mu = 1$).

    Args:
        weight: $\mu_v$, a positive number per node; ``None`` for 1.

    Raises:
        DataError: if the weights are not a column, or one is not positive and finite.
    """

    weight: Float[Tensor, "N 1"] | None = None

    def __post_init__(self) -> None:
        weight = self.weight
        if weight is None:
            return
        if weight.dim() != 2 or weight.shape[1] != 1:
            raise DataError(f"The node weights must have the shape [N, 1]. Got {list(weight.shape)}.")
        invalid = (~(weight.isfinite() & (weight > 0))).nonzero()
        if len(invalid):
            node = int(invalid[0, 0])
            raise DataError(f"Every weight must be positive and finite. Got {float(weight[node])} at node {node}.")

    def value(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $\mu (h - x)^2$."""
        return self._weight(h) * (h - x) ** 2

    def grad(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $2 \mu (h - x)$."""
        return 2 * self._weight(h) * (h - x)

    def prox(
        self, a: Float[Tensor, "N D"], x: Float[Tensor, "N D"], step_size: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N D"]:
        r"""Return $(a + 2 \eta \mu x) / (1 + 2 \eta \mu)$; $x$ for an infinite step."""
        pull = 2 * step_size * self._weight(a)
        share = torch.where(torch.isinf(pull), 1.0, pull / (1 + pull))
        return a + share * (x - a)

    def conjugate(self, r: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $r x + r^2 / (4 \mu)$."""
        return r * x + r**2 / (4 * self._weight(r))

    def _weight(self, like: Tensor) -> Tensor:
        if self.weight is None:
            return like.new_ones(())
        _check_length("weights", len(self.weight), like)
        return self.weight.to(like)


def _check_length(name: str, length: int, like: Tensor) -> None:
    if length != len(like):
        raise DataError(f"There must be as many {name} as nodes, {len(like)}. Got {length}.")


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixedLabels:
    r"""The indicator of $h_v = x_v$ on the labelled nodes; 0 elsewhere.

    Args:
        known: Whether each node is fixed.

    Raises:
        DataError: if ``known`` is not a vector of booleans.
    """

    known: Bool[Tensor, " N"]

    def __post_init__(self) -> None:
        if self.known.dtype != torch.bool or self.known.dim() != 1:
            shape = list(self.known.shape)
            raise DataError(f"'known' must be a vector of booleans. Got {self.known.dtype} of shape {shape}.")

    def value(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Return infinity where a fixed node has moved, 0 elsewhere."""
        return torch.where(self._fixed(h) & (h != x), torch.inf, 0.0).to(h)

    def grad(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Return 0, the gradient on the domain."""
        del x
        return torch.zeros_like(h)

    def prox(
        self, a: Float[Tensor, "N D"], x: Float[Tensor, "N D"], step_size: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N D"]:
        """Return the fixed value where known, ``a`` elsewhere."""
        del step_size
        return torch.where(self._fixed(a), x, a)

    def conjugate(self, r: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $r x$ where known; elsewhere 0 if $r = 0$, else infinity."""
        return torch.where(self._fixed(r), r * x, torch.where(r == 0, 0.0, torch.inf).to(r))

    def _fixed(self, like: Tensor) -> Tensor:
        _check_length("entries of 'known'", len(self.known), like)
        return self.known.to(like.device)[:, None]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    r"""$f(h; x) = \log(1 + e^{-x h})$ for labels $x = \pm 1$; 0 where $x = 0$ (unknown)."""

    def value(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $\log(1 + e^{-x h})$."""
        return torch.where(x != 0, torch.nn.functional.softplus(-x * h), 0.0)

    def grad(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $-x\, \sigma(-x h)$."""
        return -x * torch.sigmoid(-x * h)

    def prox(
        self, a: Float[Tensor, "N D"], x: Float[Tensor, "N D"], step_size: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N D"]:
        r"""Find the root of $z - a - \eta x \sigma(-x z)$ in $[a, a + \eta x]$ by Newton's method and bisection.

        The bracket is halved where Newton's step leaves it or is longer than half of the step before the last: far from
        the root the sigmoid is flat, and Newton's method alone oscillates between the ends.

        An infinite step has its minimum at infinity for a known node; it is taken as $10^{12}$, where $f < 10^{-10}$.
        """
        step_size = step_size.clamp(max=1e12)
        low, high = torch.minimum(a, a + step_size * x), torch.maximum(a, a + step_size * x)
        z = (low + high) / 2
        moved = before = high - low
        for _ in range(_MAX_STEPS):
            excess = z - a - step_size * x * torch.sigmoid(-x * z)
            low, high = torch.where(excess < 0, z, low), torch.where(excess < 0, high, z)
            slope = 1 + step_size * torch.sigmoid(x * z) * torch.sigmoid(-x * z) * x**2
            newton = z - excess / slope
            accept = (newton >= low) & (newton <= high) & (2 * excess.abs() <= (before * slope).abs())
            after = torch.where(accept, newton, (low + high) / 2)
            before, moved = moved, after - z
            if bool((after == z).all()):
                break
            z = after
        return z

    def conjugate(self, r: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $s \log s + (1 - s) \log(1 - s)$ for $s = -r x$ in $[0, 1]$, infinity outside.

        For unknown nodes return 0 at $r = 0$, infinity elsewhere.
        """
        s = -r * x
        entropy = torch.special.xlogy(s, s) + torch.special.xlogy(1 - s, 1 - s)
        inside = (s >= 0) & (s <= 1)
        known = torch.where(inside, entropy, torch.inf)
        return torch.where(x != 0, known, torch.where(r == 0, 0.0, torch.inf).to(r))
