"""Proximal operators of hyperedge potentials that need order: total variation and cardinality-based cuts."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels import native_backend
from edhnn.kernels.backend import check_companion, check_power, check_segments, check_step, check_weight, use_native
from edhnn.kernels.torch_backend import cardinality, total_variation


def prox_total_variation(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    weight: Float[Tensor, " I"] | None = None,
) -> Float[Tensor, "I D"]:
    r"""Apply the exact proximal operator of total variation, per hyperedge and column.

    $\arg\min_z \; \eta_e (\max_v z_v - \min_v z_v)^p + \tfrac12 \sum_{v \in e} w_v (z_v - a_v)^2$

    is $a$ clipped to $[l, h]$, where $\sum_v w_v (a_v - h)_+ = \sum_v w_v (l - a_v)_+$ is $\eta_e$ for $p = 1$ and
    $2 \eta_e (h - l)$ for $p = 2$; where the levels meet, it is the weighted mean.
    Paper: Example 1 (TV) and Eq. 3.

    Args:
        values: The points $a$ on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.
        step: $\eta_e \ge 0$, the step size times the hyperedge's weight.
        power: $p$, 1 or 2.
        weight: Positive weights $w_v$ per row (degrees, for the degree-normalised potential); ``None`` means 1.

    Returns:
        The minimisers. A segment with a number that is not finite becomes NaN.

    Raises:
        DataError: if shapes do not fit, a step is negative or a weight is not positive.
        UsageError: if ``power`` is neither 1 nor 2.

    Example:
        >>> import torch
        >>> from edhnn.kernels import prox_total_variation
        >>> a, edge_ptr = torch.tensor([[4.0], [0.0], [1.0]]), torch.tensor([0, 3])
        >>> prox_total_variation(a, edge_ptr, torch.tensor([1.0]), power=1).flatten().tolist()
        [3.0, 1.0, 1.0]
    """
    check_segments(values, edge_ptr)
    check_step(step, values, len(edge_ptr) - 1)
    check_power(power, "prox_total_variation")
    if weight is not None:
        check_weight(weight, values, (len(values),))
    if use_native(values, step, weight, has_gradient=False):
        return native_backend.prox_total_variation(values, edge_ptr, step, power, weight)
    return total_variation.prox_total_variation(values, edge_ptr, step, power, weight)


def prox_cardinality(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    cut_weight: Float[Tensor, " I"],
    weight: Float[Tensor, " I"] | None = None,
) -> Float[Tensor, "I D"]:
    r"""Apply the proximal operator of a cardinality-based potential (the Lovász extension of a cut).

    $\arg\min_z \; \eta_e \langle y, \varsigma(z) \rangle^p + \tfrac12 \sum_{v \in e} w_v (z_v - a_v)^2$,

    $\varsigma$ sorting descending, is for $w = 1$, in the order of $\varsigma(a)$, the projection of
    $\varsigma(a) - \tau y$ onto non-increasing sequences, where $\tau = \eta_e$ for $p = 1$ and
    $\tau = 2 \eta_e \langle y, \varsigma(z) \rangle$ for $p = 2$. It is a global minimiser for every $y$; for
    non-increasing $y$ (with $\sum y = 0$ if $p = 2$) the potential is convex, and only then.
    Other weights can turn the order of $a$ round: then the hyperedge is split at thresholds until each part is
    constant, which is exact too, but for convex potentials only. The torch kernel does it on every device.
    Paper: Example 1 (LEC) and Eq. 3.

    Args:
        values: The points $a$ on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.
        step: $\eta_e \ge 0$, the step size times the hyperedge's weight.
        power: $p$, 1 or 2.
        cut_weight: $y$ by rank: the first row of a hyperedge holds the weight of its largest value, and so on.
        weight: Positive weights $w_v$ per row (degrees, for the degree-normalised potential); ``None`` means 1.

    Returns:
        The minimisers. A segment with a number that is not finite becomes NaN.

    Raises:
        DataError: if shapes do not fit, a step is negative, a weight is not positive, or there are weights and the
            potential is not convex.
        UsageError: if ``power`` is neither 1 nor 2.

    Example:
        >>> import torch
        >>> from edhnn.kernels import prox_cardinality
        >>> a, edge_ptr, y = torch.tensor([[0.0], [4.0]]), torch.tensor([0, 2]), torch.tensor([1.0, -1.0])
        >>> prox_cardinality(a, edge_ptr, torch.tensor([1.0]), power=1, cut_weight=y).flatten().tolist()
        [1.0, 3.0]
    """
    check_segments(values, edge_ptr)
    check_step(step, values, len(edge_ptr) - 1)
    check_power(power, "prox_cardinality")
    check_companion("cut_weight", cut_weight, values, (len(values),))
    if weight is not None:
        check_weight(weight, values, (len(values),))
        return cardinality.prox_weighted_cardinality(values, edge_ptr, step, power, cut_weight, weight)
    if use_native(values, step, cut_weight, has_gradient=False):
        return native_backend.prox_cardinality(values, edge_ptr, step, power, cut_weight)
    return cardinality.prox_cardinality(values, edge_ptr, step, power, cut_weight)
