r"""Perceptrons as one step of autograd: on rows, and on every link with a sum at the rows.

Each function is a composition of the kernels in `edhnn.kernels.rows` and `edhnn.kernels.messages`. Where the native
kernels serve and no tracer watches, the composition runs inside one `torch.autograd.Function`: the same kernels in the
same order, with one node of the graph instead of four to six. On a hypergraph of a hundred nodes the graph costs more
than the arithmetic. Second derivatives, tracers and other devices use the composition itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function, forward_ad

from edhnn.kernels import autograd, native_backend
from edhnn.kernels.autograd import applied, is_watched, small_work
from edhnn.kernels.backend import active
from edhnn.kernels.dropout import signed_seed, threshold_of
from edhnn.kernels.links import Links
from edhnn.kernels.messages import pair_sum
from edhnn.kernels.options import NATIVE_ACTIVATIONS, Moments, PairOptions, RowOptions
from edhnn.kernels.rows import linear, row_activation, row_moments


class Hidden(NamedTuple):
    """What follows a linear layer: activation, LayerNorm (if it has a weight), dropout.

    Args:
        norm_weight: Scale of the LayerNorm; ``None``: there is no LayerNorm.
        norm_bias: Shift of the LayerNorm.
        norm_eps: Added to its variance.
        dropout: Probability that an entry is dropped.
        seed: Seed of the dropout mask.
        activation: ``relu``, ``identity``, ``gelu`` or ``tanh``.
    """

    norm_weight: Tensor | None = None
    norm_bias: Tensor | None = None
    norm_eps: float = 1e-5
    dropout: float = 0.0
    seed: int = 0
    activation: str = "relu"


Linear = tuple[Tensor, Tensor]
"""Weight and bias of a linear layer."""
Settings = tuple[float, int, int, str]
"""The fields of `RowOptions` that are not tensors."""


def perceptron(
    x: Float[Tensor, "R C"], linears: Sequence[Linear], hidden: Sequence[Hidden], input_norm: Hidden | None = None
) -> Float[Tensor, "R D"]:
    r"""Apply a perceptron to each row: $W_n s_{n-1} + b_n$, $s_k = D(\mathrm{LN}(\sigma(W_k s_{k-1} + b_k)))$.

    Args:
        x: Values on rows; $s_0$ is $\mathrm{LN}(x)$, or $x$ without ``input_norm``.
        linears: The linear layers.
        hidden: What follows each of them but the last.
        input_norm: LayerNorm of the input.

    Returns:
        Values on rows.

    Raises:
        DataError: if shapes, types or devices do not fit.
        UsageError: if an activation is unknown or a dropout rate is not in [0, 1).

    Example:
        >>> import torch
        >>> from edhnn.kernels import Hidden, perceptron
        >>> one = torch.ones(1, 1)
        >>> perceptron(torch.tensor([[-2.0], [3.0]]), [(-one, one[0]), (one, one[0])], [Hidden()]).tolist()
        [[4.0], [1.0]]
    """
    tensors: list[Tensor | None] = [x]
    settings: list[Settings] = []
    for step in (*(() if input_norm is None else (input_norm._replace(activation="identity"),)), *hidden):
        tensors += (step.norm_weight, step.norm_bias)
        settings.append((step.norm_eps, threshold_of(step.dropout), signed_seed(step.seed), step.activation))
    for pair in linears:
        tensors += pair
    if (
        _fused(x, tensors)
        and _fits(x, linears, hidden, input_norm)
        and all(step[3] in NATIVE_ACTIVATIONS for step in settings)
    ):
        out: Tensor = _perceptron(tuple(settings), input_norm is not None, *tensors)
        return out
    return _composed_perceptron(x, linears, hidden, input_norm)


def _composed_perceptron(
    x: Tensor, linears: Sequence[Linear], hidden: Sequence[Hidden], input_norm: Hidden | None
) -> Tensor:
    if input_norm is not None:
        x = row_activation(x, **input_norm._replace(activation="identity")._asdict())
    for (weight, bias), step in zip(linears, hidden, strict=False):
        x = row_activation(linear(x, weight, bias), **step._asdict())
    return linear(x, *linears[-1])


def pair_perceptron_sum(
    row: Float[Tensor, "R C"],
    column: Float[Tensor, "S C2"],
    links: Links,
    first: tuple[Tensor, Tensor, Tensor],
    hidden: Hidden,
    last: Linear,
    *,
    norm_eps: float | None = None,
    weight: Float[Tensor, " I"] | None = None,
    mean: bool = False,
    total: Float[Tensor, " R"] | None = None,
    column_product: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "R D"]:
    r"""Sum a perceptron of two layers on $[x_r ; y_s]$ over the links of each row. Paper: Algorithm 1, step 3.

    Args:
        row: $x$.
        column: $y$.
        links: Which rows and columns are joined.
        first: The first layer, split: $\bar W_1$ for rows, $\bar W_2$ for columns, and the shift.
        hidden: What follows it.
        last: The last linear layer, applied behind the sum.
        norm_eps: Of the LayerNorm on $[x_r ; y_s]$ that is folded into the first layer; ``None``: there is none.
        weight: A weight per link, by its number; ``None`` means 1.
        mean: Divide by the number of a row's links.
        total: How often each row gets the last bias; ``None`` means once.
        column_product: Returns $y W^\top$ for a matrix $W$, where the caller has a cheaper way to it.

    Returns:
        Values on rows.
    """
    if column_product is None and _fused(row, (row, column, *first, *last, *hidden[:2], weight, total)):
        width = row.shape[1] + column.shape[1]
        options = PairOptions(
            weight=weight,
            kappa=0.0 if norm_eps is None else row.shape[1] * column.shape[1] / width**2,
            eps=norm_eps or 0.0,
            norm_eps=hidden.norm_eps,
            threshold=threshold_of(hidden.dropout),
            seed=signed_seed(hidden.seed),
            activation=hidden.activation,
            mean=mean,
        )
        if (
            hidden.activation in NATIVE_ACTIVATIONS
            and links.row_ptr.device == row.device
            and (weight is None or not weight.requires_grad)
            and _fits(row, [(first[0], first[2]), last], [hidden], None)
            and column.shape == (links.num_columns, first[1].shape[1])
            and first[1].shape[0] == len(first[2])
            and row.shape[0] == links.num_rows
            and (weight is None or weight.shape == (links.num_links,))
            and (total is None or total.shape == (links.num_rows,))
        ):
            tensors = row, column, *first, *hidden[:2], *last
            out: Tensor = _pair_perceptron(links, options, norm_eps is not None, total, *tensors)
            return out
    return _composed_pair(row, column, links, first, hidden, last, norm_eps, weight, mean, total, column_product)


def _composed_pair(
    row: Tensor,
    column: Tensor,
    links: Links,
    first: tuple[Tensor, Tensor, Tensor],
    hidden: Hidden,
    last: Linear,
    norm_eps: float | None,
    weight: Tensor | None,
    mean: bool,
    total: Tensor | None,
    column_product: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    matrix_row, matrix_column, bias = first
    a = F.linear(row, matrix_row)
    b = (column_product or (lambda matrix: F.linear(column, matrix)))(matrix_column)
    moments = None if norm_eps is None else pair_moments(row, column, norm_eps)
    summed = pair_sum(a, b, links, bias=bias, moments=moments, weight=weight, mean=mean, **hidden._asdict())
    return linear(summed, *last, total)


def pair_moments(row: Tensor, column: Tensor, eps: float) -> Moments:
    """Return what LayerNorm on $[x_r ; y_s]$ needs of each half."""
    width = row.shape[1] + column.shape[1]
    (mu_row, q_row), (mu_column, q_column) = row_moments(row, width), row_moments(column, width)
    return Moments(q_row, mu_row, q_column, mu_column, kappa=row.shape[1] * column.shape[1] / width**2, eps=eps)


def _fused(x: Tensor, tensors: Sequence[Tensor | None]) -> bool:
    """Return whether native kernels serve these tensors in one autograd function: plain, on the CPU, of one type."""
    dtype = x.dtype
    return (
        dtype in native_backend.SUFFIX
        and active() == "native"
        and forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
        and not is_watched(tensors)
        and all(tensor is None or (tensor.dtype == dtype and tensor.is_cpu) for tensor in tensors)
    )


def _fits(x: Tensor, linears: Sequence[Linear], hidden: Sequence[Hidden], input_norm: Hidden | None) -> bool:
    """Return whether all shapes fit. Native code trusts pointers; the composition reports what does not fit."""
    if x.dim() != 2 or len(hidden) != len(linears) - 1:
        return False
    width = x.shape[1]
    if input_norm is not None and not _norm_fits(input_norm, width):
        return False
    for number, (weight, bias) in enumerate(linears):
        if weight.dim() != 2 or weight.shape[1] != width or bias.shape != (weight.shape[0],):
            return False
        width = weight.shape[0]
        if number < len(hidden) and not _norm_fits(hidden[number], width):
            return False
    return True


def _norm_fits(step: Hidden, width: int) -> bool:
    return all(tensor is None or tensor.shape == (width,) for tensor in step[:2])


class _Perceptron(Function):
    """`perceptron`: its kernels run directly, and its gradient takes the same steps backwards."""

    @staticmethod
    def forward(ctx: Any, settings: tuple[Settings, ...], normed: bool, x: Tensor, *tensors: Any) -> Tensor:
        """Apply the layers; keep their inputs and what the gradients of the steps on rows need."""
        layers = tensors[2 * len(settings) :]
        options = [RowOptions(tensors[2 * k], tensors[2 * k + 1], *step) for k, step in enumerate(settings)]
        inputs, before = [], []
        with small_work(x.shape[0] * layers[0].numel()):
            if normed:
                before.append(x)
                x = native_backend.row_activation(x, options[0])
            for k in range(0, len(layers) - 2, 2):
                inputs.append(x)
                z = F.linear(x, layers[k], layers[k + 1])
                step = options[k // 2 + normed]
                x = native_backend.row_activation(z, step)
                before.append(x if step.norm_weight is None else z)  # without a norm the sign of the output is enough
            inputs.append(x)
            out = F.linear(x, layers[-2], layers[-1])
        ctx.save_for_backward(*tensors, *inputs, *before)
        ctx.settings, ctx.normed, ctx.count = settings, normed, len(tensors)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Return the gradients of the input, the norms and the linear layers."""
        settings, normed, wants = ctx.settings, ctx.normed, ctx.needs_input_grad[2:]
        tensors, kept = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        norms, layers = tensors[: 2 * len(settings)], tensors[2 * len(settings) :]
        inputs, before = kept[: len(layers) // 2], kept[len(layers) // 2 :]
        if torch.is_grad_enabled():
            x = before[0] if normed else inputs[0]
            return None, None, *_differentiated(_again, (settings, normed), (x, *tensors), wants, grad)
        options = [RowOptions(norms[2 * k], norms[2 * k + 1], *step) for k, step in enumerate(settings)]
        grad_norms: list[Tensor | None] = [None] * len(norms)
        grad_layers: list[Tensor | None] = [None] * len(layers)
        first_layer = 1 + len(norms)
        g: Any = grad

        def through_rows(g: Tensor, k: int) -> Any:
            grad_x, *grad_norms[2 * k : 2 * k + 2] = native_backend.row_activation_backward(g, before[k], options[k])
            return grad_x

        with small_work(grad.shape[0] * layers[0].numel()):
            for k in reversed(range(len(inputs))):
                if wants[first_layer + 2 * k]:
                    grad_layers[2 * k] = g.t().mm(inputs[k])
                if wants[first_layer + 2 * k + 1]:
                    grad_layers[2 * k + 1] = native_backend.column_sum(g, None)
                if k == 0 and not (normed or wants[0]):
                    g = None
                    break
                g = g.mm(layers[2 * k])
                if k or normed:
                    g = through_rows(g, k - 1 + normed)
        return None, None, g, *grad_norms, *grad_layers


def _again(settings: tuple[Settings, ...], normed: bool, x: Tensor, *tensors: Any) -> Tensor:
    """Run `perceptron` from what its gradient keeps, as operators that have second derivatives or refuse them."""
    layers = tensors[2 * len(settings) :]
    for k in range(-1 if normed else 0, len(layers) // 2):
        if k >= 0:
            x = autograd.linear(x, layers[2 * k], layers[2 * k + 1])
        if k + 1 < len(layers) // 2:
            place = k + normed
            x = autograd.row_activation(x, *tensors[2 * place : 2 * place + 2], *settings[place])
    return x


class _PairPerceptron(Function):
    """`pair_perceptron_sum`: its kernels run directly, and its gradient takes the same steps backwards."""

    @staticmethod
    def forward(
        ctx: Any, links: Links, options: PairOptions, normed: bool, total: Tensor | None, *tensors: Any
    ) -> Tensor:
        """Return the sums."""
        given, (row, column, matrix_row, matrix_column, bias, norm_weight, norm_bias, last, last_bias) = (
            options,
            tensors,
        )
        width = row.shape[1] + column.shape[1]
        with small_work(max(row.shape[0], column.shape[0]) * matrix_row.numel()):
            a, b = F.linear(row, matrix_row), F.linear(column, matrix_column)
            moments: tuple[Any, ...] = (None,) * 4
            if normed:
                (mu_row, q_row), (mu_column, q_column) = (native_backend.row_moments(x, width) for x in (row, column))
                moments = q_row, mu_row, q_column, mu_column
            options = _with_tensors(options, bias, *moments, norm_weight, norm_bias)
            summed = native_backend.pair_sum(a, b, links.parts, options)
            if total is None:
                out = F.linear(summed, last, last_bias)
            else:
                out = native_backend.add_bias(F.linear(summed, last), last_bias, total)
        ctx.save_for_backward(*tensors, a, b, summed, *moments)
        ctx.links, ctx.options, ctx.normed, ctx.total = links, given, normed, total
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Return the gradients of the tensors."""
        tensors, (a, b, summed, *moments) = ctx.saved_tensors[:9], ctx.saved_tensors[9:]
        row, column, matrix_row, matrix_column, bias, norm_weight, norm_bias, last, _ = tensors
        wants = ctx.needs_input_grad[4:]
        if torch.is_grad_enabled():
            fixed = ctx.links, ctx.options, ctx.normed, ctx.total
            return *(None,) * 4, *_differentiated(_pair_again, fixed, tensors, wants, grad)
        options = _with_tensors(ctx.options, bias, *moments, norm_weight, norm_bias)
        with small_work(max(row.shape[0], column.shape[0]) * matrix_row.numel()):
            grad_last = grad.t().mm(summed) if wants[7] else None
            grad_last_bias = native_backend.column_sum(grad, ctx.total) if wants[8] else None
            gradients: list[Any] = native_backend.pair_sum_backward(
                grad.mm(last), a, b, ctx.links.parts, options, False
            )
            grad_a, grad_b, grad_bias, *grads, _ = gradients
            ends = []
            for place, (x, grad_x, matrix) in enumerate(((row, grad_a, matrix_row), (column, grad_b, matrix_column))):
                grad_end = None
                if wants[place]:
                    grad_end = grad_x.mm(matrix)
                    if ctx.normed:
                        width = row.shape[1] + column.shape[1]
                        grad_q, grad_mu = grads[2 * place : 2 * place + 2]
                        mu = moments[2 * place + 1]
                        grad_end += native_backend.row_moments_backward(grad_mu, grad_q, x, mu, width)
                ends.append((grad_end, grad_x.t().mm(x) if wants[2 + place] else None))
        (grad_row, grad_matrix_row), (grad_column, grad_matrix_column) = ends
        first = grad_row, grad_column, grad_matrix_row, grad_matrix_column, grad_bias
        return *(None,) * 4, *first, *grads[4:6], grad_last, grad_last_bias


def _with_tensors(options: PairOptions, *tensors: Tensor | None) -> PairOptions:
    """Return options with their first seven tensors, all but the weight of links."""
    return PairOptions(*tensors, *options[7:])  # type: ignore[arg-type, call-arg]


def _pair_again(links: Links, options: PairOptions, normed: bool, total: Tensor | None, *tensors: Any) -> Tensor:
    """Run `pair_perceptron_sum` from what its gradient keeps, as operators that refuse second derivatives."""
    row, column, matrix_row, matrix_column, bias, norm_weight, norm_bias, last, last_bias = tensors
    moments: tuple[Any, ...] = (None,) * 4
    if normed:
        both = pair_moments(row, column, options.eps)
        moments = both.q_row, both.mu_row, both.q_column, both.mu_column
    a, b = (F.linear(*pair) for pair in ((row, matrix_row), (column, matrix_column)))
    options = _with_tensors(options, bias, *moments, norm_weight, norm_bias)
    summed = autograd.pair_sum(a, b, *links.parts, *options)
    return linear(summed, last, last_bias, total)


def _differentiated(
    function: Callable[..., Tensor],
    fixed: tuple[Any, ...],
    tensors: Sequence[Tensor],
    wants: Sequence[bool],
    grad: Tensor,
) -> list[Tensor | None]:
    """Return gradients that can be differentiated: the function runs again, as a graph of operators."""
    wanted = [tensor for tensor, wants_it in zip(tensors, wants, strict=True) if wants_it]
    gradients = iter(torch.autograd.grad(function(*fixed, *tensors), wanted, grad, create_graph=True))
    return [next(gradients) if wants_it else None for wants_it in wants]


_perceptron = applied(_Perceptron)
_pair_perceptron = applied(_PairPerceptron)
