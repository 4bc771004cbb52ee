"""Sums over links of the rows at their other end: hyperedge means, and products with sparse matrices."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from edhnn.kernels import operators_gather, torch_kernels_network
from edhnn.kernels.checks import check_companion, check_links, check_table
from edhnn.kernels.dispatch import trains_natively
from edhnn.kernels.links import Links


def gather_sum(
    x: Float[Tensor, "S C"], links: Links, weight: Float[Tensor, " I"] | None = None, *, mean: bool = False
) -> Float[Tensor, "R C"]:
    r"""Each row's sum over its links of the columns' values.

    $\mathrm{out}_r = \sum_{(r, s)} w_{rs}\, x_s$, and with ``mean`` divided by the number of r's links. A row without
    links gets 0. Gradients with respect to ``x`` and ``weight``, of any order.
    Paper: Algorithm 1, step 2, the sum over the nodes of a hyperedge.

    Args:
        x: Values on columns.
        links: Who is joined to whom.
        weight: A weight per link, by its number; ``None`` means 1.
        mean: Divide by the number of links, not by the sum of weights.

    Returns:
        Values on rows.

    Raises:
        DataError: if shapes, types or devices do not fit.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> from edhnn.kernels import edge_links, gather_sum
        >>> baskets = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], []], num_nodes=4)
        >>> gather_sum(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), edge_links(baskets)).flatten().tolist()
        [6.0, 7.0, 0.0]
    """
    check_table("x", x, links.num_columns)
    check_links(links, x)
    if weight is not None:
        check_companion("weight", weight, x, (links.num_links,))
        weight = weight.to(x.dtype)
    if trains_natively(x, weight):
        out: Tensor = operators_gather.gather_sum(x, *links.parts, weight, int(mean))
        return out
    return torch_kernels_network.gather_sum(x, links, weight, int(mean))
