"""The native network kernels on tensors: problems filled in, outputs made. Arguments are checked by the caller."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.kernels.links import Links
from edhnn.kernels.native_problems import Gather, MomentsProblem, Pair, Rows, plain, plain_or_none, solve
from edhnn.kernels.options import PairOptions, RowOptions


def gather_sum(
    x: Float[Tensor, "S C"], links: Links, weight: Float[Tensor, " I"] | None, mean: int
) -> Float[Tensor, "R C"]:
    """See `torch_kernels_network.gather_sum`."""
    out = torch.empty((links.num_rows, x.shape[1]), dtype=x.dtype)
    solve("gather", _gather(x, links, mean, weight=plain_or_none(weight), out=out), x.dtype)
    return out


def link_dot(x: Float[Tensor, "S C"], grad: Float[Tensor, "R C"], links: Links, mean: int) -> Float[Tensor, " I"]:
    """The gradient of `gather_sum` with respect to its weight."""
    out = torch.empty(links.num_links, dtype=x.dtype)
    solve("gather_weight", _gather(x, links, mean, grad=plain(grad), weight_out=out), x.dtype)
    return out


def _gather(x: Tensor, links: Links, mean: int, **tensors: Tensor | None) -> Gather:
    return Gather(
        ptr=links.row_ptr,
        other=links.row_column,
        link=links.row_link,
        source_ptr=links.column_ptr if mean == 2 else None,
        rows=links.num_rows,
        sources=links.num_columns,
        channels=x.shape[1],
        own_mean=int(mean == 1),
        x=plain(x),
        **tensors,
    )


def pair_sum(a: Float[Tensor, "R C"], b: Float[Tensor, "S C"], links: Links, options: PairOptions) -> Tensor:
    """See `edhnn.kernels.pair_sum`."""
    out = torch.empty((links.num_rows, a.shape[1]), dtype=a.dtype)
    solve("pair_forward", _pair(a, b, links, options, out=out), a.dtype)
    return out


def pair_sum_backward(
    grad: Float[Tensor, "R C"],
    a: Float[Tensor, "R C"],
    b: Float[Tensor, "S C"],
    links: Links,
    options: PairOptions,
    wants_weight: bool,
) -> list[Tensor]:
    """Gradients of a, b, bias, the four moments, norm_weight, norm_bias and weight; empty where there is none."""
    tensors = (a, b, *options.tensors)
    made = [torch.empty(0 if tensor is None else tensor.shape, dtype=a.dtype) for tensor in tensors]
    if not wants_weight:
        made[-1] = torch.empty(0, dtype=a.dtype)
    names = ("a", "b", *options.TENSORS)
    wanted = {f"grad_{name}": out for name, out, tensor in zip(names, made, tensors, strict=True) if tensor is not None}
    if not wants_weight:
        wanted.pop("grad_weight", None)
    solve("pair_backward", _pair(a, b, links, options, grad=plain(grad), **wanted), a.dtype)
    return made


def _pair(a: Tensor, b: Tensor, links: Links, options: PairOptions, **tensors: Tensor) -> Pair:
    given = {name: plain_or_none(tensor) for name, tensor in zip(options.TENSORS, options.tensors, strict=True)}
    return Pair(
        row_ptr=links.row_ptr,
        row_column=links.row_column,
        row_link=links.row_link,
        column_ptr=links.column_ptr,
        column_row=links.column_row,
        column_link=links.column_link,
        rows=links.num_rows,
        columns=links.num_columns,
        channels=a.shape[1],
        a=plain(a),
        b=plain(b),
        kappa=options.kappa,
        eps=options.eps,
        norm_eps=options.norm_eps,
        seed=options.seed,
        threshold=options.threshold,
        relu=int(options.activation == "relu"),
        **given,
        **tensors,
    )


def row_activation(x: Float[Tensor, "R C"], options: RowOptions) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.row_activation`."""
    out = torch.empty(x.shape, dtype=x.dtype)
    solve("rows_forward", _rows(x, options, out=out), x.dtype)
    return out


def row_activation_backward(grad: Float[Tensor, "R C"], x: Float[Tensor, "R C"], options: RowOptions) -> list[Tensor]:
    """Gradients of x, norm_weight and norm_bias; empty where there is none."""
    tensors = {"grad_x": x, "grad_norm_weight": options.norm_weight, "grad_norm_bias": options.norm_bias}
    made = {name: torch.empty(0 if t is None else t.shape, dtype=x.dtype) for name, t in tensors.items()}
    wanted = {name: made[name] for name, tensor in tensors.items() if tensor is not None}
    solve("rows_backward", _rows(x, options, grad=plain(grad), **wanted), x.dtype)
    return list(made.values())


def _rows(x: Tensor, options: RowOptions, **tensors: Tensor) -> Rows:
    return Rows(
        rows=x.shape[0],
        channels=x.shape[1],
        relu=int(options.activation == "relu"),
        norm_eps=options.norm_eps,
        seed=options.seed,
        threshold=options.threshold,
        x=plain(x),
        norm_weight=plain_or_none(options.norm_weight),
        norm_bias=plain_or_none(options.norm_bias),
        **tensors,
    )


def row_moments(x: Float[Tensor, "R C"]) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """See `edhnn.kernels.row_moments`."""
    mean, spread = x.new_empty(x.shape[0]), x.new_empty(x.shape[0])
    sizes = {"rows": x.shape[0], "channels": x.shape[1]}
    solve("moments_forward", MomentsProblem(**sizes, x=plain(x), mean=mean, spread=spread), x.dtype)
    return mean, spread


def row_moments_backward(
    grad_mean: Float[Tensor, " R"], grad_spread: Float[Tensor, " R"], x: Float[Tensor, "R C"], mean: Float[Tensor, " R"]
) -> Float[Tensor, "R C"]:
    """The gradient of x."""
    grad_x = torch.empty(x.shape, dtype=x.dtype)
    given = {"grad_mean": plain(grad_mean), "grad_spread": plain(grad_spread), "x": plain(x), "mean": plain(mean)}
    sizes = {"rows": x.shape[0], "channels": x.shape[1]}
    solve("moments_backward", MomentsProblem(**sizes, **given, grad_x=grad_x), x.dtype)
    return grad_x
