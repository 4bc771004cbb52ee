r"""Linear maps whose rows may be sparse features, and whose bias may come later.

Convolutions add their bias after the propagation, $\Theta (x W^\top) + b$, and draw their weights in three ways. The
propagation is linear: whichever of $x$ and $x W^\top$ is narrower travels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.nn.features import check_features, links_of
from edhnn.nn.mlp import Dropout

Init = Literal["linear", "glorot", "outputs"]


class Projection(nn.Module):
    r"""$x W^\top + b$ for dense or sparse CSR rows, with dropout on them.

    Args:
        in_features: Columns of the rows.
        out_features: Width of the output.
        init: ``linear``: weight and bias from $U(\pm 1/\sqrt{\text{in}})$; ``glorot``: weight from
            $U(\pm\sqrt{6/(\text{in} + \text{out})})$, bias 0; ``outputs``: both from $U(\pm 1/\sqrt{\text{out}})$.
        bias: Whether there is a bias.
        dropout: On the rows; ``None`` for none.
        generator: Where the initial weights come from.
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: Init = "glorot",
        bias: bool = True,
        dropout: Dropout | None = None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.dropout = in_features, out_features, dropout
        bound = {
            "linear": in_features**-0.5,
            "glorot": math.sqrt(6 / (in_features + out_features)),
            "outputs": out_features**-0.5,
        }[init]
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound, generator=generator))
        self.bias = None
        if bias:
            drawn = torch.zeros(out_features)
            self.bias = nn.Parameter(drawn if init == "glorot" else drawn.uniform_(-bound, bound, generator=generator))

    def forward(self, x: Tensor) -> Float[Tensor, "R D"]:
        """The map with its bias."""
        return self.shift(self.project(x))

    def project(self, x: Tensor) -> Float[Tensor, "R D"]:
        """The map without its bias."""
        return feature_product(x, self.weight, self.dropout)

    def shift(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """The bias alone."""
        return x if self.bias is None else x + self.bias

    def propagated(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Float[Tensor, "R D"]:
        r"""$\Theta (x W^\top) + b$ for a linear map $\Theta$ of columns."""
        if x.layout == torch.strided and self.in_features < self.out_features:
            dropped = x.to(self.weight) if self.dropout is None else self.dropout(x.to(self.weight))
            return self.shift(feature_product(propagate(dropped), self.weight))
        return self.shift(propagate(self.project(x)))


def feature_product(x: Tensor, weight: Float[Tensor, "D F"], dropout: Dropout | None = None) -> Float[Tensor, "R D"]:
    r"""$\mathrm{Drop}(x)\, W^\top$ for dense or sparse CSR rows; a dropped zero is a zero."""
    check_features(x, weight.shape[1])
    if x.layout == torch.sparse_csr:
        values = x.values().to(weight)
        return kernels.gather_sum(weight.t(), links_of(x), values if dropout is None else dropout(values))
    x = x.to(weight)
    return nn.functional.linear(x if dropout is None else dropout(x), weight)


def layer_widths(in_features: int, hidden: int, out_features: int, layers: int) -> list[int]:
    """The widths between so many layers, both ends included."""
    return [in_features, *[hidden] * (layers - 1), out_features]
