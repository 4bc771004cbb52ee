r"""A perceptron on every link, summed at the rows, without a row per link.

$$ \mathrm{out}_r = \sum_{(r,s)} w_{rs}\, \mathrm{MLP}([x_r ; y_s]). $$

The first layer splits, $W [x ; y] = W_1 x + W_2 y$: two products, on rows and on columns. LayerNorm on the pair splits
too. With $\gamma, \beta$ its scale and shift, $\bar W$ the matrix $W \mathrm{diag}(\gamma)$ less the mean of each of
its rows, and $C = C_x + C_y$,

$$ W\, \mathrm{LN}([x ; y]) + b = r\, (\bar W_1 x + \bar W_2 y) + W \beta + b, \qquad
   r^{-2} = q_x + q_y + \tfrac{C_x C_y}{C^2} (\mu_x - \mu_y)^2 + \epsilon, \quad
   q_x = \tfrac1C \sum_c (x_c - \mu_x)^2. $$

The last layer is linear and moves behind the sum. What is left for each link is elementwise, one fused kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.kernels import Links, Moments
from edhnn.nn.aggregate import divided
from edhnn.nn.mlp import MLP


class SplitLayer(NamedTuple):
    r"""The first layer of a perceptron on pairs, split: $\bar W_1$, $\bar W_2$ and the shift, the norm taken in."""

    row: Float[Tensor, "H D"]
    column: Float[Tensor, "H D2"]
    bias: Float[Tensor, " H"]


def split_first(mlp: MLP, row_width: int, *, row_first: bool = True) -> SplitLayer:
    """Split the first layer; iterations that share the perceptron share this too.

    Args:
        mlp: The perceptron; its norm is ``layer`` or ``none``.
        row_width: Columns of the rows' part.
        row_first: Whether the rows' part comes first in its input.

    Returns:
        The parts.
    """
    matrix: Tensor = mlp.first.weight
    bias: Tensor = mlp.first.bias
    norm = mlp.input_norm
    if norm is not None:
        assert isinstance(norm, nn.LayerNorm)
        bias = matrix @ norm.bias + bias
        scaled = matrix * norm.weight
        matrix = scaled - scaled.mean(dim=1, keepdim=True)
    widths = [row_width, matrix.shape[1] - row_width]
    first, second = torch.split(matrix, widths if row_first else widths[::-1], dim=1)
    return SplitLayer(*((first, second) if row_first else (second, first)), bias)


def sum_over_links(
    mlp: MLP,
    layer: SplitLayer,
    row: Float[Tensor, "R D"],
    column: Float[Tensor, "S D2"],
    links: Links,
    total: Float[Tensor, "R 1"],
    *,
    weight: Float[Tensor, " I"] | None = None,
    column_product: Callable[[Tensor], Tensor] | None = None,
    mean: bool = False,
) -> Float[Tensor, "R D3"]:
    r"""$\sum_{(r,s)} w_{rs}\, \mathrm{MLP}([x_r ; y_s])$ for every row.

    Args:
        mlp: The perceptron, of any depth; its norm is ``layer`` or ``none``.
        layer: Its first layer, from `split_first`.
        row: $x$.
        column: $y$.
        links: Which rows and columns are joined.
        total: $\sum_s w_{rs}$ of each row.
        weight: $w$, by link; ``None`` for 1.
        column_product: Gives $y W^\top$ for a matrix $W$, where the caller knows a cheaper way to it.
        mean: Divide each sum by its total.

    Returns:
        The sums.
    """
    product = column_product or (lambda matrix: F.linear(column, matrix))
    a, b, bias = F.linear(row, layer.row), product(layer.column), layer.bias
    moments, depth = _pair_moments(mlp, row, column), len(mlp.linears)
    if depth == 1 and moments is None:
        summed = kernels.gather_sum(b, links, weight)
    elif depth == 1:
        summed = kernels.pair_sum(a, b, links, bias=bias, moments=moments, activation="identity", weight=weight)
    elif depth == 2:
        options = mlp.row_options(mlp.norms[0])
        summed = kernels.pair_sum(a, b, links, bias=bias, moments=moments, weight=weight, **options)  # type: ignore[arg-type]
    else:
        summed = _deep(mlp, a, b, bias, moments, links, weight)
    if mean:
        summed, total = divided(summed, total), (total > 0).to(total)
    if depth > 1:
        return torch.addr(F.linear(summed, mlp.last.weight), total[:, 0], mlp.last.bias)
    return summed + total * (a + bias) if moments is None else summed


def _pair_moments(mlp: MLP, row: Tensor, column: Tensor) -> Moments | None:
    """What the input norm needs to know of each end."""
    if mlp.input_norm is None:
        return None
    assert isinstance(mlp.input_norm, nn.LayerNorm)
    width = row.shape[1] + column.shape[1]
    kappa = row.shape[1] * column.shape[1] / width**2
    return Moments(*_moments(row, width), *_moments(column, width), kappa=kappa, eps=mlp.input_norm.eps)


def _moments(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    mean, spread = kernels.row_moments(x)
    return spread / width, mean


def _deep(
    mlp: MLP, a: Tensor, b: Tensor, bias: Tensor, moments: Moments | None, links: Links, weight: Tensor | None
) -> Tensor:
    """Three layers or more need products on every link: the hidden layers row by row, links in their own order."""
    row, column = _ends(links)
    z = a.index_select(0, row) + b.index_select(0, column)
    if moments is not None:
        apart = moments.mu_row.index_select(0, row) - moments.mu_column.index_select(0, column)
        spread = moments.q_row.index_select(0, row) + moments.q_column.index_select(0, column)
        z = z * (spread + moments.kappa * apart**2 + moments.eps).rsqrt()[:, None]
    s = mlp.hidden_from(1, mlp.activate(z + bias, mlp.norms[0]))
    if weight is not None:
        s = s * weight[:, None]
    return s.new_zeros(len(a), s.shape[1]).index_add(0, row, s)


def _ends(links: Links) -> tuple[Tensor, Tensor]:
    """The row and the column of each link, by number: one of a hypergraph's two orders is in the order of numbers."""
    if links.row_link is None:
        return links.row_index, links.row_column
    assert links.column_link is None
    return links.column_row, links.transposed().row_index
