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

import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.kernels import Links, Moments
from edhnn.nn.aggregation import Weighing
from edhnn.nn.mlp import MLP


class SplitLayer(NamedTuple):
    r"""The first layer of a perceptron on pairs, split: $\bar W_1$, $\bar W_2$ and the shift, the norm taken in."""

    row: Float[Tensor, "H D"]
    column: Float[Tensor, "H D2"]
    bias: Float[Tensor, " H"]


def split_first_layer(mlp: MLP, row_width: int, *, row_first: bool = True) -> SplitLayer:
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
    split = row_width if row_first else matrix.shape[1] - row_width
    if norm is None:
        first, second = matrix[:, :split], matrix[:, split:]
    else:
        assert isinstance(norm, nn.LayerNorm)
        first, second, bias = kernels.fold_norm(matrix, bias, norm.weight, norm.bias, split)
    return SplitLayer(*((first, second) if row_first else (second, first)), bias)


def pairwise_mlp_sum(
    mlp: MLP,
    layer: SplitLayer,
    row: Float[Tensor, "R D"],
    column: Float[Tensor, "S D2"],
    links: Links,
    weighing: Weighing,
    *,
    column_product: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "R D3"]:
    r"""Return $\sum_{(r,s)} w_{rs}\, \mathrm{MLP}([x_r ; y_s])$ for every row.

    Args:
        mlp: The perceptron, of any depth; its norm is ``layer`` or ``none``.
        layer: Its first layer, from `split_first_layer`.
        row: $x$.
        column: $y$.
        links: Which rows and columns are joined.
        weighing: $w$, by link, and its sums.
        column_product: Gives $y W^\top$ for a matrix $W$, where the caller has a cheaper way to it.

    Returns:
        The sums.
    """
    weight, mean, total = weighing
    norm, depth = mlp.input_norm, len(mlp.linears)
    assert norm is None or isinstance(norm, nn.LayerNorm)
    eps = None if norm is None else norm.eps
    if depth == 2:
        return kernels.pair_perceptron_sum(
            row,
            column,
            links,
            layer,
            mlp.after_linear(mlp.norms[0]),
            (mlp.last.weight, mlp.last.bias),
            norm_eps=eps,
            weight=weight,
            mean=mean,
            total=total,
            column_product=column_product,
        )
    product = column_product or (lambda matrix: F.linear(column, matrix))
    a, b, bias = F.linear(row, layer.row), product(layer.column), layer.bias
    moments = None if eps is None else kernels.pair_moments(row, column, eps)
    if depth > 2:
        summed = _deep(mlp, a, b, bias, moments, links, weight, mean)
        return kernels.linear(summed, mlp.last.weight, mlp.last.bias, total)
    if moments is not None:
        return kernels.pair_sum(
            a, b, links, bias=bias, moments=moments, activation="identity", weight=weight, mean=mean
        )
    summed = kernels.gather_sum(b, links, weight, mean=mean)
    return kernels.add_bias(summed + (a if total is None else total[:, None] * a), bias, total)


def _deep(
    mlp: MLP,
    a: Tensor,
    b: Tensor,
    bias: Tensor,
    moments: Moments | None,
    links: Links,
    weight: Tensor | None,
    mean: bool,
) -> Tensor:
    """Sum a perceptron of three layers or more, which needs products on every link."""
    row, column = _ends(links)
    z = a.index_select(0, row) + b.index_select(0, column)
    if moments is not None:
        apart = moments.mu_row.index_select(0, row) - moments.mu_column.index_select(0, column)
        spread = moments.q_row.index_select(0, row) + moments.q_column.index_select(0, column)
        z = z * (spread + moments.kappa * apart**2 + moments.eps).rsqrt()[:, None]
    s = mlp.hidden_from(1, mlp.activate(kernels.add_bias(z, bias), mlp.norms[0]))
    if weight is not None:
        s = s * weight[:, None]
    summed = s.new_zeros(len(a), s.shape[1]).index_add(0, row, s)
    return summed / links.row_ptr.diff().clamp(min=1).to(s)[:, None] if mean else summed


def _ends(links: Links) -> tuple[Tensor, Tensor]:
    """Return the row and the column of each link, by number: one of the two orders is by number."""
    if links.row_link is None:
        return links.row_index, links.row_column
    assert links.column_link is None
    return links.column_row, links.transposed().row_index
