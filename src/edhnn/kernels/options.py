"""What a fused kernel is asked to do, as a tuple whose fields are, in order, those of the operator's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

from jaxtyping import Float
from torch import Tensor

NATIVE_ACTIVATIONS = ("relu", "identity")


@final
@dataclass(frozen=True, slots=True)
class Moments:
    r"""What LayerNorm on a concatenated input $[x_r; x_s]$ needs to know about each half.

    With widths $C_r$ and $C_s$: $\mu$ the mean of a half, $q = \sum_c (x_c - \mu)^2 / (C_r + C_s)$, and
    $\kappa = C_r C_s / (C_r + C_s)^2$, the variance of the whole is $q_r + q_s + \kappa (\mu_r - \mu_s)^2$, exactly.

    Args:
        q_row: Centred second moment of each row's half.
        mu_row: Mean of each row's half.
        q_column: Centred second moment of each column's half.
        mu_column: Mean of each column's half.
        kappa: What the distance of the means counts.
        eps: Added to the variance.
    """

    q_row: Float[Tensor, " R"]
    mu_row: Float[Tensor, " R"]
    q_column: Float[Tensor, " S"]
    mu_column: Float[Tensor, " S"]
    kappa: float = 0.25
    eps: float = 1e-5


class PairOptions(NamedTuple):
    """Everything `pair_sum` takes besides its two tables and the links: eight tensors, then numbers."""

    bias: Tensor | None = None
    q_row: Tensor | None = None
    mu_row: Tensor | None = None
    q_column: Tensor | None = None
    mu_column: Tensor | None = None
    norm_weight: Tensor | None = None
    norm_bias: Tensor | None = None
    weight: Tensor | None = None
    kappa: float = 0.0
    eps: float = 0.0
    norm_eps: float = 1e-5
    threshold: int = 0
    seed: int = 0
    activation: str = "relu"
    mean: bool = False

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors among the options."""
        return self[:PAIR_TENSORS]  # type: ignore[return-value]


PAIR_TENSORS = 8
"""How many of a pair's options are tensors: the first ones."""


class RowOptions(NamedTuple):
    """Everything `row_activation` takes besides its table."""

    norm_weight: Tensor | None = None
    norm_bias: Tensor | None = None
    norm_eps: float = 1e-5
    threshold: int = 0
    seed: int = 0
    activation: str = "relu"
