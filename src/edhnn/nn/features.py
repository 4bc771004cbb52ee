r"""The first layer of a network: dropout and a linear map, on dense features or on sparse ones as they are.

A bag of words stays sparse: dropout acts on its stored entries (a dropped zero is a zero) and $x W^\top$ is a weighted
sum of columns of $W$, with the transpose kept for the gradient.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import DataError
from edhnn.kernels import Links
from edhnn.nn.mlp import Dropout, make_linear
from edhnn.nn.remembered import per_tensor
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
            return kernels.gather_sum(self.linear.weight.t(), links_of(x), values) + self.linear.bias
        out: Tensor = self.linear(self.dropout(x.to(self.linear.weight)))
        return out


def check_features(x: Tensor, columns: int) -> None:
    """Features must be a dense or CSR table of so many columns."""
    if x.dim() != 2 or x.shape[1] != columns:
        raise DataError(f"Features must have shape [N, {columns}]. Got {list(x.shape)}.")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"Features must be dense or sparse CSR. Got {x.layout}.", remedy="Use x.to_sparse_csr().")


def dense_features(x: Tensor, like: Tensor) -> Float[Tensor, "N F"]:
    """Features as a dense table of the type of the weights, for models that fill in the zeros anyway."""
    check_features(x, x.shape[-1])
    return (x if x.layout == torch.strided else x.to_dense()).to(like)


def links_of(x: Tensor) -> Links:
    """The links of a sparse feature matrix, found once per matrix."""
    return per_tensor(x, "links", lambda: kernels.sparse_links(x))
