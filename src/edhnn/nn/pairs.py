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

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.kernels import Links, Moments
from edhnn.nn.aggregate import divided
from edhnn.nn.mlp import MLP


def sum_over_links(
    mlp: MLP,
    row: Float[Tensor, "R D"],
    column: Float[Tensor, "S D2"],
    links: Links,
    total: Float[Tensor, "R 1"],
    *,
    row_first: bool = True,
    weight: Float[Tensor, " I"] | None = None,
    column_product: Callable[[Tensor], Tensor] | None = None,
    mean: bool = False,
) -> Float[Tensor, "R D3"]:
    r"""$\sum_{(r,s)} w_{rs}\, \mathrm{MLP}([x_r ; y_s])$ for every row.

    Args:
        mlp: The perceptron, of any depth; its norm is ``layer`` or ``none``.
        row: $x$.
        column: $y$.
        links: Which rows and columns are joined.
        total: $\sum_s w_{rs}$ of each row.
        row_first: Whether the perceptron's input is $[x ; y]$ or $[y ; x]$.
        weight: $w$, by link; ``None`` for 1.
        column_product: Gives $y W^\top$ for a matrix $W$, where the caller knows a cheaper way to it.
        mean: Divide each sum by its total.

    Returns:
        The sums.
    """
    product = column_product or (lambda matrix: F.linear(column, matrix))
    matrix, bias, moments = _first_layer(mlp, row, column)
    widths = [row.shape[1], column.shape[1]]
    first, second = torch.split(matrix, widths if row_first else widths[::-1], dim=1)
    own, other = (first, second) if row_first else (second, first)
    a, b = F.linear(row, own), product(other)
    depth = len(mlp.linears)
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
        return F.linear(summed, mlp.last.weight) + total * mlp.last.bias
    return summed + total * (a + bias) if moments is None else summed


def _first_layer(mlp: MLP, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor, Moments | None]:
    """The first layer's matrix and shift with the input norm taken in, and what the norm needs to know of each end."""
    matrix, bias, norm = mlp.first.weight, mlp.first.bias, mlp.input_norm
    if norm is None:
        return matrix, bias, None
    assert isinstance(norm, nn.LayerNorm)
    scaled = matrix * norm.weight
    centred = scaled - scaled.mean(dim=1, keepdim=True)
    width = row.shape[1] + column.shape[1]
    row_q, row_mean = _moments(row, width)
    column_q, column_mean = _moments(column, width)
    kappa = row.shape[1] * column.shape[1] / width**2
    moments = Moments(row_q, row_mean, column_q, column_mean, kappa=kappa, eps=norm.eps)
    return centred, matrix @ norm.bias + bias, moments


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
