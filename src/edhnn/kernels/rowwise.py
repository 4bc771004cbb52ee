"""Fused steps on rows: activation, LayerNorm and dropout in one pass, and dropout alone."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from edhnn.kernels import operators_moments, operators_rows, torch_kernels_network
from edhnn.kernels.checks import check_companion, check_name, check_table
from edhnn.kernels.dispatch import trains_natively
from edhnn.kernels.hashing import VECTOR_WIDTH, signed_seed, threshold_of
from edhnn.kernels.options import NATIVE_ACTIVATIONS, RowOptions


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
    r"""$D(\mathrm{LN}(\sigma(x_r)))$ on every row: what follows a linear layer in an MLP, in one pass.

    Args:
        x: Values on rows.
        activation: ``relu``, ``identity``, ``gelu`` or ``tanh``; the first two run natively.
        norm_weight: Scale of the LayerNorm; ``None``: there is no LayerNorm.
        norm_bias: Shift of the LayerNorm.
        norm_eps: Added to its variance.
        dropout: Probability that an entry is dropped; the others are scaled to keep the mean.
        seed: What the mask depends on, beside row and channel: another seed, another mask.

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
    check_name("activation", activation, torch_kernels_network.ACTIVATIONS)
    for name, tensor in (("norm_weight", norm_weight), ("norm_bias", norm_bias)):
        if tensor is not None:
            check_companion(name, tensor, x, tuple(x.shape[1:]), same_dtype=True)
    options = RowOptions(norm_weight, norm_bias, norm_eps, threshold_of(dropout), signed_seed(seed), activation)
    if activation in NATIVE_ACTIVATIONS and trains_natively(x, norm_weight, norm_bias):
        out: Tensor = operators_rows.row_activation(x, *vars(options).values())
        return out
    return torch_kernels_network.row_activation(x, options)


def hash_dropout(
    x: Float[Tensor, "R C"] | Float[Tensor, " I"], rate: float, seed: int
) -> Float[Tensor, "R C"] | Float[Tensor, " I"]:
    """Dropout whose mask is a function of (seed, row, channel): the same on every device, for any number of threads.

    Each entry is set to 0 with probability ``rate`` (rounded to 1/65536), and scaled by the inverse of the probability
    to stay otherwise. A vector is masked as the rows of a table of 256 channels.

    Args:
        x: A table or a vector.
        rate: Probability that an entry is dropped.
        seed: Another seed, another mask.

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
    if not trains_natively(x):
        return torch_kernels_network.drop(x, threshold, signed_seed(seed))
    options = RowOptions(threshold=threshold, seed=signed_seed(seed), activation="identity")
    padded = x if x.dim() == 2 else pad(x, (0, -len(x) % VECTOR_WIDTH)).view(-1, VECTOR_WIDTH)
    out: Tensor = operators_rows.row_activation(padded, *vars(options).values())
    return out if x.dim() == 2 else out.flatten()[: len(x)]


def row_moments(x: Float[Tensor, "R C"]) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    r"""$\mu_r = \tfrac1C \sum_c x_{rc}$ and $\sum_c (x_{rc} - \mu_r)^2$ of every row: what LayerNorm needs to know.

    Args:
        x: Values on rows.

    Returns:
        Means, and sums of squares around them.

    Raises:
        DataError: if ``x`` is not a table of real numbers.

    Example:
        >>> import torch
        >>> from edhnn.kernels import row_moments
        >>> row_moments(torch.tensor([[1.0, 3.0]]))
        (tensor([2.]), tensor([2.]))
    """
    check_table("x", x, x.shape[0])
    if trains_natively(x):
        mean, spread = operators_moments.row_moments(x)
        return mean, spread
    return torch_kernels_network.row_moments(x)
