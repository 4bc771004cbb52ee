"""Order and shares inside hyperedges: sort, project onto non-increasing sequences, softmax, maximum."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels import autograd, native_backend
from edhnn.kernels.backend import check_segments, check_weight, use_native
from edhnn.kernels.torch_backend import network as torch_network
from edhnn.kernels.torch_backend import segments as torch_segments


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    r"""Return row numbers that sort each hyperedge's values in descending order, column by column.

    $\mathrm{values}[\mathrm{order}_{i}] \ge \mathrm{values}[\mathrm{order}_{i+1}]$ inside a hyperedge; ties keep their
    order, and NaN counts as greater than every number.
    Paper: Example 1 (LEC), the sort $\varsigma$.

    Args:
        values: Values on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.

    Returns:
        ``order`` such that ``values.gather(0, order)`` is descending inside each hyperedge.

    Raises:
        DataError: if ``edge_ptr`` does not cut the rows into segments.

    Example:
        >>> import torch
        >>> from edhnn.kernels import segment_sort
        >>> segment_sort(torch.tensor([[1.0], [3.0], [2.0], [5.0]]), torch.tensor([0, 3, 4])).flatten().tolist()
        [1, 2, 0, 3]
    """
    check_segments(values, edge_ptr)
    if use_native(values.detach(), has_gradient=False):  # row numbers have no derivative
        return native_backend.segment_sort(values, edge_ptr)
    return torch_segments.segment_sort(values, edge_ptr)


def segment_pav(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    weight: Float[Tensor, " I"] | Float[Tensor, "I D"] | None = None,
) -> Float[Tensor, "I D"]:
    r"""Project each hyperedge's values onto the non-increasing sequences: pool adjacent violators.

    $\arg\min_{z_1 \ge \dots \ge z_k} \sum_i w_i (z_i - s_i)^2$ for a hyperedge's values $s$ in the order of its rows.
    Paper: Example 1 (LEC); the projection behind its proximal operator in Eq. 3.

    Args:
        values: Values on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.
        weight: Positive weights per row, or per row and column; ``None`` means 1.

    Returns:
        The projections. A segment with a number that is not finite becomes NaN.

    Raises:
        DataError: if ``edge_ptr`` does not cut the rows into segments, or a weight is not positive.

    Example:
        >>> import torch
        >>> from edhnn.kernels import segment_pav
        >>> segment_pav(torch.tensor([[3.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 3, 4])).flatten().tolist()
        [3.0, 1.5, 1.5, 4.0]
    """
    check_segments(values, edge_ptr)
    if weight is not None:
        check_weight(weight, values, tuple(values.shape[:1]), tuple(values.shape))
    if use_native(values, weight, has_gradient=False):
        return native_backend.segment_pav(values, edge_ptr, weight)
    return torch_segments.segment_pav(values, edge_ptr, weight)


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    r"""Turn scores into weights that sum to 1 inside each hyperedge, column (attention head) by column.

    $\mathrm{out}_i = e^{s_i} / \sum_{j \in e} e^{s_j}$.

    Args:
        scores: Scores on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.

    Returns:
        The weights. An empty hyperedge has none.

    Raises:
        DataError: if ``edge_ptr`` does not cut the rows into segments.

    Example:
        >>> import torch
        >>> from edhnn.kernels import segment_softmax
        >>> segment_softmax(torch.tensor([[1.0], [1.0], [7.0]]), torch.tensor([0, 2, 3])).flatten().tolist()
        [0.5, 0.5, 1.0]
    """
    check_segments(scores, edge_ptr, again_in_operator=use_native(scores))
    if use_native(scores):
        out: Tensor = autograd.segment_softmax(scores, edge_ptr)
        return out
    return torch_network.segment_softmax(scores, edge_ptr)


def segment_max(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "E D"]:
    r"""Return the largest value of each hyperedge, column by column; 0 for an empty hyperedge.

    Of equal values the first takes the whole gradient. NaN counts as greater than every number.

    Args:
        values: Values on incidences, sorted by hyperedge.
        edge_ptr: Where each hyperedge's rows begin, and where the last one's end.

    Returns:
        A row per hyperedge.

    Raises:
        DataError: if ``edge_ptr`` does not cut the rows into segments.

    Example:
        >>> import torch
        >>> from edhnn.kernels import segment_max
        >>> segment_max(torch.tensor([[1.0], [3.0], [-2.0]]), torch.tensor([0, 2, 3, 3])).flatten().tolist()
        [3.0, -2.0, 0.0]
    """
    check_segments(values, edge_ptr)
    plain = values.detach()
    implementation = native_backend if use_native(plain, has_gradient=False) else torch_network
    first = implementation.segment_argmax(plain, edge_ptr)
    if not len(values):
        return values.new_zeros(first.shape)
    return values.gather(0, first.clamp(min=0)).masked_fill(first < 0, 0.0)
