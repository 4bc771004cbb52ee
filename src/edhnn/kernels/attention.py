"""Softmax and maxima inside hyperedges, for attention."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels import native_kernels, operators_softmax, torch_kernels_softmax
from edhnn.kernels.checks import check_segments
from edhnn.kernels.dispatch import goes_native, trains_natively


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    r"""Scores to weights that sum to 1 inside each hyperedge, column (attention head) by column.

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
    check_segments(scores, edge_ptr)
    if trains_natively(scores):
        out: Tensor = operators_softmax.segment_softmax(scores, edge_ptr)
        return out
    return torch_kernels_softmax.segment_softmax(scores, edge_ptr)


def segment_max(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "E D"]:
    r"""The largest value of each hyperedge, column by column; 0 for an empty hyperedge.

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
    implementation = native_kernels if goes_native(plain) else torch_kernels_softmax
    first = implementation.segment_argmax(plain, edge_ptr)
    if not len(values):
        return values.new_zeros(first.shape)
    return values.gather(0, first.clamp(min=0)).masked_fill(first < 0, 0.0)
