"""Sums over links: `gather_sum` of rows, and `pair_sum` of a small network's hidden layer on every link."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from edhnn.kernels import autograd
from edhnn.kernels.backend import check_companion, check_links, check_name, check_table, use_native
from edhnn.kernels.dropout import signed_seed, threshold_of
from edhnn.kernels.links import Links
from edhnn.kernels.options import NATIVE_ACTIVATIONS, Moments, PairOptions
from edhnn.kernels.torch_backend import network as torch_network


def gather_sum(
    x: Float[Tensor, "S C"], links: Links, weight: Float[Tensor, " I"] | None = None, *, mean: bool = False
) -> Float[Tensor, "R C"]:
    r"""Return each row's sum over its links of the columns' values.

    $\mathrm{out}_r = \sum_{(r, s)} w_{rs}\, x_s$, and with ``mean`` divided by the number of r's links. A row without
    links gets 0. Gradients with respect to ``x`` and ``weight``, of any order.
    Paper: Algorithm 1, step 2, the sum over the nodes of a hyperedge.

    Args:
        x: Values on columns.
        links: Which rows and columns are joined.
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
    if use_native(x, weight):
        out: Tensor = autograd.gather_sum(x, *links.parts, weight, int(mean))
        return out
    return torch_network.gather_sum(x, links, weight, int(mean))


def pair_sum(
    a: Float[Tensor, "R C"],
    b: Float[Tensor, "S C"],
    links: Links,
    *,
    bias: Float[Tensor, " C"] | None = None,
    moments: Moments | None = None,
    activation: str = "relu",
    norm_weight: Float[Tensor, " C"] | None = None,
    norm_bias: Float[Tensor, " C"] | None = None,
    norm_eps: float = 1e-5,
    dropout: float = 0.0,
    seed: int = 0,
    weight: Float[Tensor, " I"] | None = None,
    mean: bool = False,
) -> Float[Tensor, "R C"]:
    r"""Sum over each row's links of ``dropout(norm(activation(rho (a_r + b_s) + bias)))``.

    $$\mathrm{out}_r = \sum_{(r, s)} w_{rs}\, D_{rs}\!\left(\mathrm{LN}\!\left(
      \sigma\!\left(\rho_{rs} (a_r + b_s) + \beta\right)\right)\right),\qquad
      \rho_{rs} = \left(q_r + q_s + \kappa (\mu_r - \mu_s)^2 + \varepsilon\right)^{-1/2}$$

    With $a = W_1 x_r$ and $b = W_2 x_s$ this is the first layer of an MLP on $[x_r; x_s]$ and what follows it, up to
    the last linear layer, which commutes with the sum. ``moments`` stand for a LayerNorm on $[x_r; x_s]$ before that
    layer (its scale in $W$, its shift in ``bias``, and $W$'s rows centred); without them $\rho = 1$. Natively no tensor
    of one row per link is ever made: backward recomputes, and masks come from a hash of (seed, link, channel).
    Paper: Algorithm 1, step 3, the messages $\hat\rho(h_v, m_e)$ and their sum.

    Args:
        a: Values on rows.
        b: Values on columns.
        links: Which rows and columns are joined.
        bias: Added before the activation.
        moments: LayerNorm on the concatenated input.
        activation: ``relu``, ``identity``, ``gelu`` or ``tanh``; the first two run natively.
        norm_weight: Scale of the LayerNorm after the activation; ``None``: there is no LayerNorm.
        norm_bias: Shift of that LayerNorm.
        norm_eps: Added to its variance.
        dropout: Probability that a channel of a message is dropped; the others are scaled to keep the mean.
        seed: Seed of the mask, which also depends on link and channel.
        weight: A weight per link, by its number; ``None`` means 1.
        mean: Divide by the number of a row's links, not by the sum of weights.

    Returns:
        Values on rows; 0 for a row without links.

    Raises:
        DataError: if shapes, types or devices do not fit.
        UsageError: if the activation is unknown or the dropout rate is not in [0, 1).

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> from edhnn.kernels import node_links, pair_sum
        >>> links = node_links(Hypergraph.from_hyperedges([[0, 1], [1]], num_nodes=3))
        >>> pair_sum(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[10.0], [-5.0]]), links).flatten().tolist()
        [11.0, 12.0, 0.0]
    """
    check_table("a", a, links.num_rows)
    check_links(links, a)
    check_name("activation", activation, torch_network.ACTIVATIONS)
    options = PairOptions(
        bias=bias,
        q_row=moments and moments.q_row,
        mu_row=moments and moments.mu_row,
        q_column=moments and moments.q_column,
        mu_column=moments and moments.mu_column,
        norm_weight=norm_weight,
        norm_bias=norm_bias,
        weight=weight,
        kappa=moments.kappa if moments else 0.0,
        eps=moments.eps if moments else 0.0,
        norm_eps=norm_eps,
        threshold=threshold_of(dropout),
        seed=signed_seed(seed),
        activation=activation,
        mean=mean,
    )
    rows, columns, channels = links.num_rows, links.num_columns, a.shape[1]
    check_companion("b", b, a, (columns, channels), same_dtype=True)
    sizes = channels, rows, rows, columns, columns, channels, channels, links.num_links
    for name, tensor, size in zip(PairOptions._fields, options.tensors, sizes, strict=False):
        if tensor is not None:
            check_companion(name, tensor, a, (size,), same_dtype=True)
    if activation in NATIVE_ACTIVATIONS and use_native(a, b, *options.tensors):
        out: Tensor = autograd.pair_sum(a, b, *links.parts, *options)
        return out
    return torch_network.pair_sum(a, b, links, options)
