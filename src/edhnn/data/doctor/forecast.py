"""What training ED-HNN on a dataset will cost, before it is tried.

The forecast is for the **textbook form** of the network (`training_cost`), full batch, float32, on the CPU: what a
plain implementation costs, and more than a clever one needs.

**Memory.** Weights, gradients and Adam's two moments, 16 bytes a parameter; the features, dense; the incidence
indices; everything kept for the backward pass, which dominates; one gradient of I x c and one state of E x c.

**Time.** Matrix products, bytes read and written by all other operations, dropout masks, and a fixed cost per
operation, each at the rate measured on this machine (`machine.measure_rates`). A run is ``splits * epochs`` steps, each
followed by an evaluation (a forward pass without dropout).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import final

import torch

from edhnn.data.dataset import NodeDataset
from edhnn.data.doctor.machine import Rates, measure_rates, total_memory
from edhnn.data.doctor.training_cost import Counts, ModelSize, Work, textbook_cost
from edhnn.typing import JsonObject

_FLOAT, _INDEX = 4, 8
_ADAM_COPIES = 4  # weight, gradient, two moments
_ADAM_TRAFFIC = 9  # read weight, gradient, moments; write weight, moments; temporaries
_ADAM_CALLS = 12
_ASSUMED_FEATURES, _ASSUMED_CLASSES = 100, 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What training costs.

    Attributes:
        size: The model and its training.
        counts: What was counted, self-loops included; 100 features and 2 classes are assumed where there are none.
        parameters: Number of trainable parameters.
        activation_bytes: Kept for the backward pass.
        peak_bytes: All memory of a step.
        machine_bytes: Memory of this machine; ``None`` if unknown.
        fits: Whether the peak fits in it; ``None`` if unknown.
        flops_per_step: Of the matrix products of a training step.
        bytes_per_step: Read and written by everything else.
        seconds_per_step: Time of a training step.
        seconds_per_run: Time of all epochs of all splits, with an evaluation after each epoch.
        rates: What was measured on this machine.
    """

    size: ModelSize
    counts: Counts
    parameters: int
    activation_bytes: int
    peak_bytes: int
    machine_bytes: int | None
    fits: bool | None
    flops_per_step: int
    bytes_per_step: int
    seconds_per_step: float
    seconds_per_run: float
    rates: Rates

    def to_json(self) -> JsonObject:
        """The forecast as JSON, nested as its parts are."""
        return asdict(self)


def forecast(dataset: NodeDataset, size: ModelSize | None = None, *, rates: Rates | None = None) -> Forecast:
    """Forecast memory and time of training the textbook ED-HNN (see the module) on a dataset.

    Args:
        dataset: The dataset.
        size: The model and its training; the defaults of `ModelSize` if not given.
        rates: What the machine can do; measured now if not given, in well under a second.

    Returns:
        The forecast. Paper: Algorithm 1.
    """
    size = size or ModelSize()
    counts = count(dataset, self_loops=size.self_loops)
    largest = counts.incidences * size.hidden * _FLOAT
    cost = textbook_cost(counts, size)
    rates = rates or measure_rates(largest, cost.kept * _FLOAT)
    adam_seconds = cost.parameters * _ADAM_TRAFFIC * _FLOAT / rates.bytes_per_second
    adam_seconds += cost.tensors * _ADAM_CALLS * rates.seconds_per_call
    forward, backward = _seconds(cost.forward, rates), _seconds(cost.backward, rates)
    masks = cost.masks / rates.masks_per_second
    step = forward + backward + masks + adam_seconds
    activation_bytes = cost.kept * _FLOAT
    persistent = cost.parameters * _ADAM_COPIES * _FLOAT + counts.nodes * (counts.features * _FLOAT + _INDEX)
    passing = largest + counts.hyperedges * size.hidden * _FLOAT
    peak = persistent + 2 * counts.incidences * _INDEX + activation_bytes + passing
    machine = total_memory()
    return Forecast(
        size=size,
        counts=counts,
        parameters=cost.parameters,
        activation_bytes=activation_bytes,
        peak_bytes=peak,
        machine_bytes=machine,
        fits=None if machine is None else peak <= machine,
        flops_per_step=cost.forward.flops + cost.backward.flops,
        bytes_per_step=(cost.forward.traffic + cost.backward.traffic + _ADAM_TRAFFIC * cost.parameters) * _FLOAT,
        seconds_per_step=step,
        seconds_per_run=size.splits * size.epochs * (step + forward),
        rates=rates,
    )


def count(dataset: NodeDataset, *, self_loops: bool) -> Counts:
    """N, E, I, F and C of a dataset; with ``self_loops``, after every node without a hyperedge of its own got one."""
    hypergraph = dataset.hypergraph
    alone = hypergraph.node_index[hypergraph.edge_size[hypergraph.edge_index] == 1]
    added = hypergraph.num_nodes - len(torch.unique(alone)) if self_loops else 0
    outputs = dataset.num_classes
    if dataset.task == "regression" and dataset.y is not None:
        outputs = dataset.y.shape[1] if dataset.y.dim() == 2 else 1
    return Counts(
        nodes=hypergraph.num_nodes,
        hyperedges=hypergraph.num_edges + added,
        incidences=hypergraph.num_incidences + added,
        features=dataset.num_features or _ASSUMED_FEATURES,
        classes=outputs or _ASSUMED_CLASSES,
    )


def _seconds(work: Work, rates: Rates) -> float:
    products = work.flops / rates.flops_per_second
    return products + work.traffic * _FLOAT / rates.bytes_per_second + work.calls * rates.seconds_per_call
