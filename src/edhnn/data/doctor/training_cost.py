r"""What a training step of the textbook ED-HNN does, counted operation by operation.

The **textbook form**, full batch: rho runs on every incidence, gathers are ``index_select``, sums are ``index_add``,
and autograd keeps what it keeps.

    encoder       h0 = ReLU(W Drop(x))
    iteration     a = Drop(h);  m_e = sum_{u in e} phi(a_u);  s_v = sum_{e: v in e} rho([a_v; m_e])
                  h = ReLU(update((s + h0) / 2))                 the same phi, rho, update in every iteration
    classifier    logits = classifier(Drop(h))

phi, rho and update are MLPs: LayerNorm on the input, then Linear-ReLU-LayerNorm-Dropout for each hidden layer, then
Linear; the classifier has no LayerNorm on its input. Paper: Algorithm 1, with the update of the released code.

Per row, in floats; i and o are the widths in and out:

    operation    kept for backward      traffic forward, backward    products forward, backward
    Linear       (its input)            i + o      2i + 2o           2io    4io
    ReLU         o                      2o         3o
    LayerNorm    o + 2                  2o         3o                o is not kept where Dropout follows
    Dropout      2o (mask, output)      6o         3o                and o mask entries drawn
    gather       -                      2o         3o
    sum          o (its source)         3o         2o                index_add keeps what it adds

and gathers and sums also fill the side they add to. A Linear's input is the output of something counted already.
With two-layer MLPs and dropout an iteration keeps 9c + 2 floats per incidence, c the hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import final

from edhnn.errors import UsageError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The size of an ED-HNN and of its training.

    Attributes:
        hidden: Width c of phi, rho and update.
        num_iterations: Diffusion steps; they share weights.
        mlp_layers: Linear layers in each of phi, rho and update.
        classifier_hidden: Width of the classifier's hidden layers.
        classifier_layers: Its linear layers.
        dropout: Whether dropout is on.
        self_loops: Whether every node gets a hyperedge of its own first, as in the released code.
        epochs: Training steps per split.
        splits: Repetitions with different splits.
    """

    hidden: int = 256
    num_iterations: int = 2
    mlp_layers: int = 2
    classifier_hidden: int = 128
    classifier_layers: int = 2
    dropout: bool = True
    self_loops: bool = True
    epochs: int = 500
    splits: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1 and field.name not in ("dropout", "self_loops"):
                raise UsageError(f"'{field.name}' must be 1 or more. Got {getattr(self, field.name)}.")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What of a dataset decides the cost: N, E, I, F and C."""

    nodes: int
    hyperedges: int
    incidences: int
    features: int
    classes: int


@final
@dataclass(frozen=True, slots=True)
class Work:
    """Floating-point operations of matrix products, floats read and written, operations started."""

    flops: int = 0
    traffic: int = 0
    calls: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.traffic + other.traffic, self.calls + other.calls)

    def times(self, repeats: int) -> Work:
        """The same work again and again."""
        return Work(self.flops * repeats, self.traffic * repeats, self.calls * repeats)


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What part of a step costs: parameters and their tensors, floats kept, mask entries, work forward and backward."""

    parameters: int = 0
    tensors: int = 0
    kept: int = 0
    masks: int = 0
    forward: Work = Work()
    backward: Work = Work()

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters,
            self.tensors + other.tensors,
            self.kept + other.kept,
            self.masks + other.masks,
            self.forward + other.forward,
            self.backward + other.backward,
        )

    def times(self, repeats: int) -> Cost:
        """The same operations again and again, with the same parameters."""
        return Cost(
            self.parameters,
            self.tensors,
            self.kept * repeats,
            self.masks * repeats,
            self.forward.times(repeats),
            self.backward.times(repeats),
        )


def textbook_cost(counts: Counts, size: ModelSize) -> Cost:
    """The cost of one training step of the textbook ED-HNN (see the module). Paper: Algorithm 1."""
    nodes, incidences, width = counts.nodes, counts.incidences, size.hidden
    drop = _dropout(nodes, width) if size.dropout else Cost()
    node_mlp = _mlp(nodes, width, width, width, size.mlp_layers, size.dropout, input_norm=True)
    encoder = _linear(nodes, counts.features, width, input_gradient=False) + _relu(nodes, width)
    if size.dropout:  # x needs no gradient, so only the dropped x is kept, for the Linear, and nothing runs backward
        entries = nodes * counts.features
        encoder += Cost(kept=entries, masks=entries, forward=Work(traffic=6 * entries, calls=4))
    edges = counts.hyperedges
    messages_to_hyperedges = _gather(nodes, incidences, width) + _sum(incidences, edges, width)
    pair = Cost(kept=2 * width * incidences, forward=Work(traffic=4 * width * incidences, calls=1))
    rho = _mlp(incidences, 2 * width, width, width, size.mlp_layers, size.dropout, input_norm=True)
    gathers = _gather(nodes, incidences, width) + _gather(edges, incidences, width)
    messages_to_nodes = gathers + pair + rho + _sum(incidences, nodes, width)
    mixture = nodes * width
    restart = Cost(
        kept=mixture, forward=Work(traffic=7 * mixture, calls=3), backward=Work(traffic=7 * mixture, calls=4)
    )
    update = restart + node_mlp + _relu(nodes, width)
    iteration = drop + node_mlp + messages_to_hyperedges + messages_to_nodes + update
    classifier = _mlp(
        nodes, width, size.classifier_hidden, counts.classes, size.classifier_layers, size.dropout, input_norm=False
    )
    logits = nodes * counts.classes
    loss = Cost(kept=logits, forward=Work(traffic=3 * logits, calls=2), backward=Work(traffic=3 * logits, calls=2))
    return encoder + iteration.times(size.num_iterations) + drop + classifier + loss


def _mlp(
    rows: int, width_in: int, hidden: int, width_out: int, layers: int, dropout: bool, *, input_norm: bool
) -> Cost:
    cost = _norm(rows, width_in, kept=True) if input_norm else Cost()
    widths = [width_in, *[hidden] * (layers - 1)]
    for before, after in pairwise(widths):
        cost += _linear(rows, before, after) + _relu(rows, after) + _norm(rows, after, kept=not dropout)
        cost += _dropout(rows, after) if dropout else Cost()
    return cost + _linear(rows, widths[-1], width_out)


def _linear(rows: int, width_in: int, width_out: int, *, input_gradient: bool = True) -> Cost:
    product = 2 * rows * width_in * width_out
    return Cost(
        parameters=width_in * width_out + width_out,
        tensors=2,
        forward=Work(product, rows * (width_in + width_out), 2),
        backward=Work(2 * product if input_gradient else product, 2 * rows * (width_in + width_out), 5),
    )


def _relu(rows: int, width: int) -> Cost:
    entries = rows * width
    return Cost(kept=entries, forward=Work(traffic=2 * entries, calls=1), backward=Work(traffic=3 * entries, calls=1))


def _norm(rows: int, width: int, *, kept: bool) -> Cost:
    entries = rows * width
    return Cost(
        parameters=2 * width,
        tensors=2,
        kept=2 * rows + (entries if kept else 0),
        forward=Work(traffic=2 * entries, calls=1),
        backward=Work(traffic=3 * entries, calls=3),
    )


def _dropout(rows: int, width: int) -> Cost:
    entries = rows * width
    return Cost(
        kept=2 * entries,
        masks=entries,
        forward=Work(traffic=6 * entries, calls=4),
        backward=Work(traffic=3 * entries, calls=1),
    )


def _gather(sources: int, rows: int, width: int) -> Cost:
    """``index_select``: its backward adds the rows to a fresh gradient of the sources."""
    entries = rows * width
    backward = Work(traffic=3 * entries + sources * width, calls=2)
    return Cost(forward=Work(traffic=2 * entries, calls=1), backward=backward)


def _sum(rows: int, targets: int, width: int) -> Cost:
    """``index_add`` of the rows to fresh targets: it keeps the rows, and its backward gathers them."""
    entries = rows * width
    forward = Work(traffic=3 * entries + targets * width, calls=2)
    return Cost(kept=entries, forward=forward, backward=Work(traffic=2 * entries, calls=1))
