"""Steps on rows: activation, norm and dropout in one pass; linear layers; sums over rows in an order of our own."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from edhnn.errors import DataError
from edhnn.kernels import autograd
from edhnn.kernels.backend import check_companion, check_name, check_table, use_native
from edhnn.kernels.dropout import VECTOR_WIDTH, signed_seed, threshold_of
from edhnn.kernels.options import NATIVE_ACTIVATIONS, RowOptions
from edhnn.kernels.torch_backend import network as torch_network


def row_activation(
    x: Float[Tensor, "R C"],
    *,
    activation: str = "relu",
    norm_weight: Float[Tensor, " C"] | None = None,
    norm_bias: Float[Tensor, " C"] | None = None,
    norm_eps: float = 1e-5,
    dropout: float = 0.0,
    seed: int = 0,
) -> Float[Tensor, "R C"]:
    r"""Return $D(\mathrm{LN}(\sigma(x_r)))$ on every row: what follows a linear layer in an MLP, in one pass.

    Args:
        x: Values on rows.
        activation: ``relu``, ``identity``, ``gelu`` or ``tanh``; the first two run natively.
        norm_weight: Scale of the LayerNorm; ``None``: there is no LayerNorm.
        norm_bias: Shift of the LayerNorm.
        norm_eps: Added to its variance.
        dropout: Probability that an entry is dropped; the others are scaled to keep the mean.
        seed: Seed of the mask, which also depends on row and channel.

    Returns:
        Values on rows.

    Raises:
        DataError: if shapes, types or devices do not fit.
        UsageError: if the activation is unknown or the dropout rate is not in [0, 1).

    Example:
        >>> import torch
        >>> from edhnn.kernels import row_activation
        >>> row_activation(torch.tensor([[-1.0, 2.0]])).tolist()
        [[0.0, 2.0]]
    """
    check_table("x", x, x.shape[0])
    check_name("activation", activation, torch_network.ACTIVATIONS)
    for name, tensor in (("norm_weight", norm_weight), ("norm_bias", norm_bias)):
        if tensor is not None:
            check_companion(name, tensor, x, tuple(x.shape[1:]), same_dtype=True)
    options = RowOptions(norm_weight, norm_bias, norm_eps, threshold_of(dropout), signed_seed(seed), activation)
    if activation in NATIVE_ACTIVATIONS and use_native(x, norm_weight, norm_bias):
        out: Tensor = autograd.row_activation(x, *options)
        return out
    return torch_network.row_activation(x, options)


def hash_dropout(
    x: Float[Tensor, "R C"] | Float[Tensor, " I"], rate: float, seed: int
) -> Float[Tensor, "R C"] | Float[Tensor, " I"]:
    """Drop entries by a mask that is a function of (seed, row, channel): the same on every device, for any threads.

    Each entry is set to 0 with probability ``rate`` (rounded to 1/65536), and scaled by the inverse of the probability
    to stay otherwise. A vector is masked as the rows of a table of 256 channels.

    Args:
        x: A table or a vector.
        rate: Probability that an entry is dropped.
        seed: Seed of the mask.

    Returns:
        The kept entries, scaled, and zeros.

    Raises:
        UsageError: if the rate is not in [0, 1).

    Example:
        >>> import torch
        >>> from edhnn.kernels import hash_dropout
        >>> sorted(set(hash_dropout(torch.ones(100), 0.5, seed=1).tolist()))
        [0.0, 2.0]
    """
    threshold = threshold_of(rate)
    if not threshold or not x.numel():
        return x
    if not use_native(x):
        return torch_network.drop(x, threshold, signed_seed(seed))
    options = RowOptions(threshold=threshold, seed=signed_seed(seed), activation="identity")
    padded = x if x.dim() == 2 else pad(x, (0, -len(x) % VECTOR_WIDTH)).view(-1, VECTOR_WIDTH)
    out: Tensor = autograd.row_activation(padded, *options)
    return out if x.dim() == 2 else out.flatten()[: len(x)]


def row_moments(x: Float[Tensor, "R C"], width: int = 1) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    r"""Return $\mu_r = \tfrac1C \sum_c x_{rc}$ and $\tfrac1w \sum_c (x_{rc} - \mu_r)^2$ of every row, for LayerNorm.

    Args:
        x: Values on rows.
        width: $w$: the width of the whole, where ``x`` is a part of it.

    Returns:
        Means, and sums of squares around them over the width.

    Raises:
        DataError: if ``x`` is not a table of real numbers.

    Example:
        >>> import torch
        >>> from edhnn.kernels import row_moments
        >>> row_moments(torch.tensor([[1.0, 3.0]]), width=2)
        (tensor([2.]), tensor([1.]))
    """
    check_table("x", x, x.shape[0])
    if use_native(x):
        mean, spread = autograd.row_moments(x, width)
        return mean, spread
    return torch_network.row_moments(x, width)


def column_sum(x: Float[Tensor, "R C"], weight: Float[Tensor, " R"] | None = None) -> Float[Tensor, " C"]:
    r"""Return $\sum_r w_r x_{rc}$ for every column, in an order that does not depend on the number of threads.

    Args:
        x: Values on rows.
        weight: A weight per row; ``None`` means 1.

    Returns:
        A sum per column.

    Raises:
        DataError: if shapes, types or devices do not fit.

    Example:
        >>> import torch
        >>> from edhnn.kernels import column_sum
        >>> column_sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [4.0, 6.0]
    """
    check_table("x", x, x.shape[0])
    if weight is not None:
        check_companion("weight", weight, x, (x.shape[0],), same_dtype=True)
    if use_native(x, weight):
        out: Tensor = autograd.column_sum(x, weight)
        return out
    return torch_network.column_sum(x, weight)


def add_bias(
    x: Float[Tensor, "R C"], bias: Float[Tensor, " C"], weight: Float[Tensor, " R"] | None = None
) -> Float[Tensor, "R C"]:
    r"""Return $x_{rc} + w_r b_c$; the gradient of the bias is a `column_sum`.

    Args:
        x: Values on rows.
        bias: What is added to each row.
        weight: How often it is added to each row; ``None`` means once.

    Returns:
        Values on rows.

    Raises:
        DataError: if shapes, types or devices do not fit.
    """
    check_table("x", x, x.shape[0])
    check_companion("bias", bias, x, (x.shape[1],), same_dtype=True)
    if weight is not None:
        check_companion("weight", weight, x, (x.shape[0],), same_dtype=True)
    if use_native(x, bias, weight):
        out: Tensor = autograd.add_bias(x, bias, weight)
        return out
    return torch_network.add_bias(x, bias, weight)


def scale_columns(x: Float[Tensor, "R C"], factor: Float[Tensor, " C"]) -> Float[Tensor, "R C"]:
    r"""Return $x_{rc} f_c$; the gradient of the factors is a `column_sum`."""
    if not _ours(x, factor):
        return x * factor
    out: Tensor = autograd.scale_columns(x, factor)
    return out


def linear(
    x: Float[Tensor, "R D"],
    weight: Float[Tensor, "H D"],
    bias: Float[Tensor, " H"],
    times: Float[Tensor, " R"] | None = None,
) -> Float[Tensor, "R H"]:
    r"""Return $x W^\top + n_r b$: the products are torch's, and the gradient of the bias is a `column_sum`.

    Args:
        x: Values on rows.
        weight: $W$.
        bias: $b$.
        times: $n$, how often each row gets the bias; ``None`` means once.

    Returns:
        Values on rows.
    """
    if times is not None:
        return add_bias(torch.nn.functional.linear(x, weight), bias, times)
    if not _ours(x, weight, bias):
        return torch.nn.functional.linear(x, weight, bias)
    out: Tensor = autograd.linear(x, weight, bias)
    return out


def _ours(x: Tensor, *others: Tensor) -> bool:
    """Return whether torch's product gets our gradient: eager, native, of one type."""
    return (
        not torch.compiler.is_compiling()
        and use_native(x, *others)
        and all(other.dtype == x.dtype for other in others)
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
    )


def fold_norm(
    weight: Float[Tensor, "H D"],
    bias: Float[Tensor, " H"],
    norm_weight: Float[Tensor, " D"],
    norm_bias: Float[Tensor, " D"],
    first: int,
) -> tuple[Float[Tensor, "H D1"], Float[Tensor, "H D2"], Float[Tensor, " H"]]:
    r"""Take a LayerNorm into the linear layer behind it: $W \mathrm{LN}(x) + b = r\, \bar W x + (W \beta + b)$.

    With $\gamma, \beta$ the norm's scale and shift, $\bar W$ is $W \mathrm{diag}(\gamma)$ less the mean of each of its
    rows, and $r$ is what is left of the norm: the inverse spread of $x$.

    Args:
        weight: $W$.
        bias: $b$.
        norm_weight: $\gamma$.
        norm_bias: $\beta$.
        first: How many columns of $\bar W$ go into the first of its two parts.

    Returns:
        The first columns of $\bar W$, the others, and $W \beta + b$.

    Raises:
        DataError: if shapes, types or devices do not fit.
    """
    check_table("weight", weight, weight.shape[0])
    for name, tensor, size in zip(
        ("bias", "norm_weight", "norm_bias"), (bias, norm_weight, norm_bias), (0, 1, 1), strict=True
    ):
        check_companion(name, tensor, weight, (weight.shape[size],), same_dtype=True)
    if not 0 <= first <= weight.shape[1]:
        raise DataError(f"'first' must lie in 0..{weight.shape[1]}. Got {first}.")
    if use_native(weight, bias, norm_weight, norm_bias):
        row, column, shift = autograd.fold_norm(weight, bias, norm_weight, norm_bias, first)
        return row, column, shift
    return torch_network.fold_norm(weight, bias, norm_weight, norm_bias, first)
