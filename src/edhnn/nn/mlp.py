r"""The multilayer perceptron of the paper, in its order: linear, ReLU, norm, dropout; the last layer is linear.

$$ \mathrm{MLP}(x) = W_n\, s_{n-1} + b_n, \qquad s_k = \mathrm{Drop}(\mathrm{Norm}(\mathrm{ReLU}(W_k s_{k-1} + b_k))),
   \qquad s_0 = \mathrm{Norm}(x). $$

With one layer it is an affine map of the (normalised) input.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules import module

from edhnn import kernels
from edhnn.errors import UsageError, unknown_name
from edhnn.seeding import SeedStream

NormName = Literal["layer", "batch", "none"]


def make_linear(in_features: int, out_features: int, generator: torch.Generator) -> nn.Linear:
    r"""Make a linear layer with weight and bias drawn from $U(-1/\sqrt{\text{in}}, 1/\sqrt{\text{in}})$."""
    linear = Linear(in_features, out_features, device="meta").to_empty(device="cpu")
    bound = 1 / math.sqrt(in_features) if in_features else 0.0
    with torch.no_grad():
        for parameter in (linear.weight, linear.bias):
            parameter.uniform_(-bound, bound, generator=generator)
    return linear


class Dropout(nn.Module):
    """Inverted dropout; it does nothing in evaluation.

    Args:
        rate: The share of entries that become 0.
        seeds: Source of the masks; by default a new stream of seed 0.
    """

    def __init__(self, rate: float, seeds: SeedStream | None = None) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise UsageError(f"A dropout rate must be at least 0 and less than 1. Got {rate}.")
        self.rate, self.seeds = rate, seeds or SeedStream()

    @property
    def active_rate(self) -> float:
        """The rate now: 0 in evaluation."""
        return self.rate if self.training else 0.0

    def seed(self) -> int:
        """Return the seed of the next mask; 0 where no mask is drawn."""
        return self.seeds() if self.active_rate else 0

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop entries of a table or a vector."""
        return kernels.hash_dropout(x, self.rate, self.seeds()) if self.active_rate else x

    def extra_repr(self) -> str:
        """Return the rate."""
        return f"rate={self.rate}"


class Linear(nn.Linear):
    """PyTorch's linear layer of rows; its bias has a gradient that does not depend on the number of threads."""

    def forward(self, x: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape D2"]:
        """Apply the layer to each row."""
        return kernels.linear(x, self.weight, self.bias) if x.dim() == 2 else super().forward(x)


class PReLU(nn.PReLU):
    """PyTorch's ReLU with one learned slope, whose gradient does not depend on the number of threads."""

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Apply it to each entry."""
        if x.dim() != 2:
            return super().forward(x)
        return x.relu() + kernels.scale_columns(x.clamp(max=0), self.weight.expand(x.shape[1]))


class BatchNorm(nn.BatchNorm1d):
    """PyTorch's batch norm of rows, by our sums: nothing of it depends on the number of threads."""

    def forward(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """Normalise each column; in training by the rows given, which the running statistics follow."""
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        rows = len(x)
        if not self.training:
            mean, variance = self.running_mean.to(x), self.running_var.to(x)
        elif rows < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
        else:
            mean = kernels.column_sum(x) / rows
        centred = kernels.add_bias(x, -mean)
        if self.training:
            variance = kernels.column_sum(centred * centred) / rows
            with torch.no_grad():
                self.running_mean.lerp_(mean.to(self.running_mean), self.momentum)
                self.running_var.lerp_((variance * (rows / (rows - 1))).to(self.running_var), self.momentum)
                self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        scaled = kernels.scale_columns(centred, self.weight * (variance + self.eps).rsqrt())
        return kernels.add_bias(scaled, self.bias)


class LayerNorm(nn.LayerNorm):
    """PyTorch's layer norm of rows, by our kernels: its gradients do not depend on the number of threads."""

    def forward(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """Normalise each row."""
        return kernels.row_activation(
            x, activation="identity", norm_weight=self.weight, norm_bias=self.bias, norm_eps=self.eps
        )


class MLP(nn.Module):
    r"""A perceptron in the paper's order. Paper: Appendix F.3 (the maps $\hat\phi, \hat\rho, \hat\varphi$).

    Args:
        in_features: Width of the input.
        hidden: Width of the layers between.
        out_features: Width of the output.
        num_layers: Linear layers, at least 1.
        norm: ``layer``, ``batch`` or ``none``, after each ReLU.
        input_norm: Normalise the input too, by the same kind.
        dropout: Rate after each hidden layer.
        seeds: Source of the dropout masks; by default a new stream of seed 0.
        generator: Source of the initial weights; by default one of seed 0, so that two perceptrons of the same sizes
            start equal.

    Example:
        >>> import torch
        >>> from edhnn import MLP, EquivariantOperator, Hypergraph
        >>> operator = EquivariantOperator(phi=MLP(4, 8, 3, 2), rho=MLP(4 + 3, 8, 2, 2))
        >>> pairs = Hypergraph.from_hyperedges([[0, 1], [1, 2]])
        >>> operator.sum_to_nodes(torch.ones(3, 4), pairs).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        num_layers: int,
        *,
        norm: NormName = "layer",
        input_norm: bool = True,
        dropout: float = 0.0,
        seeds: SeedStream | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        if num_layers < 1:
            raise UsageError(f"An MLP must have at least 1 layer. Got {num_layers}.")
        if norm not in get_args(NormName):
            raise unknown_name("norm", norm, get_args(NormName))
        widths = [in_features, *[hidden] * (num_layers - 1), out_features]
        self.in_features, self.out_features, self.norm = in_features, out_features, norm
        self.input_norm = _make_norm(norm, in_features) if input_norm else None
        self.linears = nn.ModuleList(make_linear(wide, next_wide, generator) for wide, next_wide in pairwise(widths))
        self.norms = nn.ModuleList(_make_norm(norm, hidden) or nn.Identity() for _ in range(num_layers - 1))
        self.dropout = Dropout(dropout, seeds)

    @property
    def first(self) -> nn.Linear:
        """The first linear layer."""
        return self.linears[0]  # type: ignore[return-value]

    @property
    def last(self) -> nn.Linear:
        """The last linear layer."""
        return self.linears[-1]  # type: ignore[return-value]

    def forward(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D2"]:
        """Apply the perceptron to each row."""
        if self.norm == "batch" or x.dim() != 2 or not self._is_plain():
            out: Tensor = self.last(self.hidden(x))
            return out
        linears = [(linear.weight, linear.bias) for linear in self.linears]
        hidden = [self.after_linear(norm) for norm in self.norms]
        norm = self.input_norm
        given = None if norm is None else kernels.Hidden(norm.weight, norm.bias, norm.eps)  # type: ignore[arg-type]
        return kernels.perceptron(x, linears, hidden, given)  # type: ignore[arg-type]

    def _is_plain(self) -> bool:
        """Return whether no part was replaced and none has a hook, which would not be called in one step."""
        return not module._has_any_global_hook() and all(  # type: ignore[no-untyped-call]
            type(part) in (Linear, LayerNorm, nn.Identity)
            and not (part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)
            for part in (*self.linears, *self.norms, *(() if self.input_norm is None else (self.input_norm,)))
        )

    def hidden(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D2"]:
        """Apply all but the last linear layer."""
        if self.input_norm is not None:
            x = self.input_norm(x)
        return self.hidden_from(0, x)

    def hidden_from(self, layer: int, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D2"]:
        """Apply the hidden layers from index ``layer`` on; the input is already normalised."""
        for linear, norm in list(zip(self.linears, self.norms, strict=False))[layer:]:
            x = self.activate(linear(x), norm)
        return x

    def activate(self, z: Float[Tensor, "R D"], norm: nn.Module) -> Float[Tensor, "R D"]:
        """Apply ReLU, norm and dropout."""
        if isinstance(norm, nn.BatchNorm1d):
            return self.dropout(norm(z.relu()))  # type: ignore[no-any-return]
        return kernels.row_activation(z, **self.after_linear(norm)._asdict())

    def after_linear(self, norm: nn.Module) -> kernels.Hidden:
        """Return what follows a linear layer, for the kernels; takes a seed from the stream."""
        rate, seed = self.dropout.active_rate, self.dropout.seed()
        if isinstance(norm, nn.LayerNorm):
            return kernels.Hidden(norm.weight, norm.bias, norm.eps, rate, seed)
        return kernels.Hidden(dropout=rate, seed=seed)


def _make_norm(norm: NormName, width: int) -> nn.Module | None:
    return {"layer": LayerNorm, "batch": BatchNorm}[norm](width) if norm != "none" else None
