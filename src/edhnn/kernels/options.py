"""The options of the fused kernels as values, so that they travel together through both implementations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor

NATIVE_ACTIVATIONS = ("relu", "identity")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class PairOptions:
    """Everything `pair_sum` takes besides its two tables and the links; tensors may be ``None``."""

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

    TENSORS: ClassVar = ("bias", "q_row", "mu_row", "q_column", "mu_column", "norm_weight", "norm_bias", "weight")

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors among the options, in the order of ``TENSORS``."""
        return tuple(getattr(self, name) for name in self.TENSORS)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All options, in the order of the fields."""
        return tuple(vars(self).values())


@dataclass(frozen=True)
class RowOptions:
    """Everything `row_activation` takes besides its table."""

    norm_weight: Tensor | None = None
    norm_bias: Tensor | None = None
    norm_eps: float = 1e-5
    threshold: int = 0
    seed: int = 0
    activation: str = "relu"
