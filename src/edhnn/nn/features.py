r"""First layers on dense or sparse features: a linear layer, a perceptron, and a projection whose bias comes later.

A bag of words stays sparse: dropout acts on its stored entries (a dropped zero is a zero) and $x W^\top$ is a weighted
sum of columns of $W$, with the transpose kept for the gradient.

LayerNorm of a sparse row is not sparse, but the first layer behind it is a sparse product. With $\gamma, \beta$
the norm's scale and shift and $\bar W$ the matrix $W \mathrm{diag}(\gamma)$ less the mean of each of its rows,

$$ W\, \mathrm{LN}(x) + b = r\, \bar W x + W \beta + b, \qquad r^{-2} = \mathrm{Var}(x) + \epsilon. $$

Convolutions add their bias after the propagation, $\Theta (x W^\top) + b$, and draw their weights in three ways. The
propagation is linear, so it runs on the narrower of $x$ and $x W^\top$.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import DataError
from edhnn.kernels import Links
from edhnn.nn.cache import cached_per_tensor
from edhnn.nn.mlp import MLP, Dropout, make_linear
from edhnn.seeding import SeedStream


class FeatureLayer(nn.Module):
    r"""$W\, \mathrm{Drop}(x_v) + b$ for dense or sparse CSR features.

    Args:
        in_features: Columns of the features.
        out_features: Width of the output.
        dropout: Rate on the entries of the features.
        seeds: Where dropout masks come from.
        generator: Where the initial weights come from.
    """

    def __init__(
        self, in_features: int, out_features: int, *, dropout: float, seeds: SeedStream, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.linear = make_linear(in_features, out_features, generator)
        self.dropout = Dropout(dropout, seeds)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        check_features(x, self.linear.in_features)
        if x.layout == torch.sparse_csr:
            values = x.values().to(self.linear.weight)
            if self.dropout.active_rate:
                values = self.dropout(values)
            return kernels.add_bias(kernels.gather_sum(self.linear.weight.t(), links_of(x), values), self.linear.bias)
        out: Tensor = self.linear(self.dropout(x.to(self.linear.weight)))
        return out


def check_features(x: Tensor, columns: int) -> None:
    """Check that features are a dense or CSR table of so many columns."""
    if x.dim() != 2 or x.shape[1] != columns:
        raise DataError(f"Features must have shape [N, {columns}]. Got {list(x.shape)}.")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"Features must be dense or sparse CSR. Got {x.layout}.", remedy="Use x.to_sparse_csr().")


def dense_features(x: Tensor, like: Tensor) -> Float[Tensor, "N F"]:
    """Return features as a dense table of the weights' type, for models that fill in the zeros anyway."""
    check_features(x, x.shape[-1])
    return (x if x.layout == torch.strided else x.to_dense()).to(like)


def links_of(x: Tensor) -> Links:
    """Return the links of a sparse feature matrix, found once per matrix."""
    return cached_per_tensor(x, "links", lambda: kernels.sparse_links(x))


def append_columns(x: Tensor, columns: Float[Tensor, "N B"]) -> Tensor:
    """Append dense columns to dense or sparse CSR features.

    Sparse features stay sparse: every entry of the columns is stored, zeros too, so that the links of the result are
    found once for all columns of a width.
    """
    if x.layout != torch.sparse_csr:
        return torch.cat([x, columns.to(x)], dim=1)
    width = columns.shape[1]

    def make() -> tuple[Tensor, Tensor]:
        rows, row_ptr = x.shape[0], x.crow_indices()
        into = row_ptr[1:, None] + width * torch.arange(rows, device=x.device)[:, None]
        into = (into + torch.arange(width, device=x.device)).reshape(-1)
        old = torch.ones(len(x.values()) + rows * width, dtype=torch.bool, device=x.device)
        old[into] = False
        column = torch.empty(len(old), dtype=torch.int64, device=x.device)
        column[old] = x.col_indices().long()
        column[into] = (x.shape[1] + torch.arange(width, device=x.device)).repeat(rows)
        pointers = row_ptr.long() + width * torch.arange(rows + 1, device=x.device)
        values = torch.zeros(len(old), dtype=x.dtype, device=x.device)
        values[old] = x.values()
        return _csr(pointers, column, values, (rows, x.shape[1] + width)), into

    pattern, into = cached_per_tensor(x, ("appended", width), make)
    values = pattern.values().index_copy(0, into, columns.to(x.dtype).reshape(-1))
    wide = _csr(pattern.crow_indices(), pattern.col_indices(), values, tuple(pattern.shape))
    cached_per_tensor(wide, "links", lambda: links_of(pattern))
    return wide


def _csr(row_ptr: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():  # torch warns once per process that its CSR layout is beta
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(row_ptr, column, values, size=shape, check_invariants=False)


class FeatureMLP(nn.Module):
    """A perceptron on the rows of dense or sparse CSR features, with dropout before it.

    Args:
        mlp: The perceptron.
        dropout: On the features.
    """

    def __init__(self, mlp: MLP, dropout: Dropout) -> None:
        super().__init__()
        self.mlp, self.dropout = mlp, dropout

    def forward(self, x: Tensor) -> Float[Tensor, "N D"]:
        """Apply the perceptron to each row."""
        mlp = self.mlp
        check_features(x, mlp.in_features)
        if x.layout != torch.sparse_csr or isinstance(mlp.input_norm, nn.BatchNorm1d):
            whole: Tensor = mlp(self.dropout(dense_features(x, mlp.first.weight)))
            return whole
        z = self._first(x)
        if len(mlp.linears) == 1:
            return z
        out: Tensor = mlp.last(mlp.hidden_from(1, mlp.activate(z, mlp.norms[0])))
        return out

    def _first(self, x: Tensor) -> Tensor:
        """Apply the first linear layer, with the norm before it, to sparse rows."""
        weight, bias, norm = self.mlp.first.weight, self.mlp.first.bias, self.mlp.input_norm
        links, values = links_of(x), self.dropout(x.values().to(weight))
        if norm is None:
            return kernels.add_bias(kernels.gather_sum(weight.t(), links, values), bias)
        assert isinstance(norm, nn.LayerNorm)
        centred, _, shift = kernels.fold_norm(weight, bias, norm.weight, norm.bias, weight.shape[1])
        scale = (_row_variance(values, links.row_index, x.shape) + norm.eps).rsqrt()
        return kernels.add_bias(kernels.gather_sum(centred.t(), links, values) * scale[:, None], shift)


def _row_variance(values: Tensor, row: Tensor, shape: torch.Size) -> Tensor:
    """Return the variance of each sparse row, zeros counted; from distances to the mean, so that nothing cancels."""
    nothing = values.new_zeros(shape[0])
    mean = nothing.index_add(0, row, values) / shape[1]
    zeros = shape[1] - torch.bincount(row, minlength=shape[0])
    stored = nothing.index_add(0, row, (values - mean.index_select(0, row)) ** 2)
    return (stored + zeros * mean**2) / shape[1]


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
        """Apply the map with its bias."""
        return self.shift(self.project(x))

    def project(self, x: Tensor) -> Float[Tensor, "R D"]:
        """Apply the map without its bias."""
        return feature_product(x, self.weight, self.dropout)

    def shift(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """Add the bias."""
        return x if self.bias is None else kernels.add_bias(x, self.bias)

    def propagated(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Float[Tensor, "R D"]:
        r"""Return $\Theta (x W^\top) + b$ for a linear map $\Theta$ of columns."""
        if x.layout == torch.strided and self.in_features < self.out_features:
            dropped = x.to(self.weight) if self.dropout is None else self.dropout(x.to(self.weight))
            return self.shift(feature_product(propagate(dropped), self.weight))
        return self.shift(propagate(self.project(x)))


def feature_product(x: Tensor, weight: Float[Tensor, "D F"], dropout: Dropout | None = None) -> Float[Tensor, "R D"]:
    r"""Return $\mathrm{Drop}(x)\, W^\top$ for dense or sparse CSR rows; a dropped zero is a zero."""
    check_features(x, weight.shape[1])
    if x.layout == torch.sparse_csr:
        values = x.values().to(weight)
        return kernels.gather_sum(weight.t(), links_of(x), values if dropout is None else dropout(values))
    x = x.to(weight)
    return nn.functional.linear(x if dropout is None else dropout(x), weight)


def layer_widths(in_features: int, hidden: int, out_features: int, layers: int) -> list[int]:
    """Return the widths between so many layers, both ends included."""
    return [in_features, *[hidden] * (layers - 1), out_features]
