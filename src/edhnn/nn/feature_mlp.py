r"""A perceptron on features, dense or sparse as they are, with its LayerNorm on the input.

LayerNorm of a sparse row is not sparse, but what the first layer makes of it is a sparse product. With $\gamma, \beta$
the norm's scale and shift and $\bar W$ the matrix $W \mathrm{diag}(\gamma)$ less the mean of each of its rows,

$$ W\, \mathrm{LN}(x) + b = r\, \bar W x + W \beta + b, \qquad r^{-2} = \mathrm{Var}(x) + \epsilon. $$
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.nn.features import check_features, dense_features, links_of
from edhnn.nn.mlp import MLP, Dropout


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
        """The first linear layer of sparse rows, the norm before it taken in."""
        weight, bias, norm = self.mlp.first.weight, self.mlp.first.bias, self.mlp.input_norm
        links, values = links_of(x), self.dropout(x.values().to(weight))
        if norm is None:
            return kernels.gather_sum(weight.t(), links, values) + bias
        assert isinstance(norm, nn.LayerNorm)
        scaled = weight * norm.weight
        centred = scaled - scaled.mean(dim=1, keepdim=True)
        scale = (_row_variance(values, links.row_index, x.shape) + norm.eps).rsqrt()
        return kernels.gather_sum(centred.t(), links, values) * scale[:, None] + (weight @ norm.bias + bias)


def _row_variance(values: Tensor, row: Tensor, shape: torch.Size) -> Tensor:
    """The variance of each sparse row, zeros counted; from distances to the mean, so that nothing cancels."""
    nothing = values.new_zeros(shape[0])
    mean = nothing.index_add(0, row, values) / shape[1]
    zeros = shape[1] - torch.bincount(row, minlength=shape[0])
    stored = nothing.index_add(0, row, (values - mean.index_select(0, row)) ** 2)
    return (stored + zeros * mean**2) / shape[1]
