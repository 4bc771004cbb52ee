"""Order inside hyperedges: sort a segment, project it onto non-increasing sequences."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels import native_kernels, torch_kernels_order
from edhnn.kernels.checks import check_segments, check_weight
from edhnn.kernels.dispatch import goes_native


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    r"""Row numbers that put each hyperedge's values into descending order, column by column.

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
    if goes_native(values.detach()):  # row numbers have no derivative
        return native_kernels.segment_sort(values, edge_ptr)
    return torch_kernels_order.segment_sort(values, edge_ptr)


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
    if goes_native(values, weight):
        return native_kernels.segment_pav(values, edge_ptr, weight)
    return torch_kernels_order.segment_pav(values, edge_ptr, weight)
