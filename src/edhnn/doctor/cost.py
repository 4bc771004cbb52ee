r"""Forecast the time and memory of training ED-HNN on a dataset, on this machine.

**Time.** A few real training steps of the network are timed, full batch, float32, on the CPU. A dataset whose step
would take long is reduced first: every $k$-th hyperedge, with node numbers modulo $N / k$, so that hyperedge sizes and
the mean degree stay; the seconds are then multiplied. A split is ``epochs`` steps, each followed by an evaluation (a
forward pass without dropout). Splits are trained one after another with all threads, or by ``jobs`` processes of one
thread each. Training may end before the last epoch, so the time is a limit.

**Memory.** Autograd reports what a step keeps for the backward pass, which dominates. Weights, gradients and Adam's two
moments (16 bytes a parameter), the features, the incidences in both orders and the gradients of a few states are added.
A run needs that in each process, beside Python and PyTorch.

**Planning** must neither run anything nor depend on the machine: the width of a network and the number of processes are
chosen by `step_bytes`, the states that a step keeps. Per iteration and channel ED-HNN keeps 9 to 11 floats a node and 2
a hyperedge, AllDeepSets 6 and 6; the rule covers both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, final

import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, features_to_scipy, sparse_features
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.registry import make_model
from edhnn.typing import JsonObject

_FLOAT, _INDEX = 4, 8
_ADAM_COPIES = 4  # weight, gradient, two moments
_KEPT_PER_NODE, _KEPT_PER_EDGE, _KEPT_PER_INCIDENCE = 11, 6, 1  # floats per iteration and channel
_ASSUMED_FEATURES, _ASSUMED_CLASSES = 100, 2
_TIMED_BYTES, _TIMED_SECONDS = 2**28, 0.5
PROCESS_BYTES = 400 * 2**20  # Python and torch before any data


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
        self_loops: Whether a singleton hyperedge is added to every node first, as in the released code.
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
    """The sizes of a dataset that determine the cost: N, E, I, F and C."""

    nodes: int
    hyperedges: int
    incidences: int
    features: int
    classes: int

    def step_bytes(self, hidden: int, num_iterations: int) -> int:
        """Return about how many bytes of states a training step keeps for the backward pass."""
        rows = _KEPT_PER_NODE * self.nodes + _KEPT_PER_EDGE * self.hyperedges + _KEPT_PER_INCIDENCE * self.incidences
        return _FLOAT * rows * hidden * num_iterations


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The cost of training.

    Attributes:
        size: The model and its training.
        counts: The sizes, self-loops included; 100 features and 2 classes are assumed where there are none.
        parameters: Number of trainable parameters.
        activation_bytes: Memory kept for the backward pass.
        peak_bytes: Total memory of a step.
        processes: Processes that train splits at the same time.
        run_bytes: Memory of the whole run: of a step in every process, and of the programs themselves.
        machine_bytes: Memory of this machine; ``None`` if unknown.
        fits: Whether the run fits in it; ``None`` if unknown.
        flops_per_step: Operations of the matrix products of a training step.
        seconds_per_step: Time of a training step.
        seconds_per_run: Time of all epochs of all splits, with an evaluation after each epoch.
        timed_share: Share of the dataset on which steps were timed.
    """

    size: ModelSize
    counts: Counts
    parameters: int
    activation_bytes: int
    peak_bytes: int
    processes: int
    run_bytes: int
    machine_bytes: int | None
    fits: bool | None
    flops_per_step: int
    seconds_per_step: float
    seconds_per_run: float
    timed_share: float

    @property
    def flops_per_second(self) -> float:
        """The rate of matrix products in a step."""
        return self.flops_per_step / self.seconds_per_step

    def to_json(self) -> JsonObject:
        """Return the forecast as JSON. Rates that an earlier version measured are ``None``."""
        unknown = dict.fromkeys(("bytes_per_second", "masks_per_second", "seconds_per_call"))
        rates = {"flops_per_second": self.flops_per_second, **unknown}
        return {**asdict(self), "bytes_per_step": None, "rates": rates}


def forecast(
    dataset: NodeDataset,
    size: ModelSize | None = None,
    *,
    model: str = "ed-hnn",
    options: Mapping[str, Any] | None = None,
    jobs: int = 1,
) -> Forecast:
    """Forecast memory and time of training ED-HNN on a dataset (see the module). For a plan use `forecast_run`.

    Args:
        dataset: The dataset.
        size: The model and its training; the defaults of `ModelSize` if not given.
        model: The name of the model.
        options: All its options; by default those that the size names.
        jobs: Processes that train splits at the same time, each with one thread if there are several.

    Returns:
        The forecast, after a second or two. Paper: Algorithm 1.
    """
    from torch.utils.flop_counter import FlopCounterMode  # slow to import

    size = size or ModelSize()
    counts = count(dataset, self_loops=size.self_loops)
    shrink = max(-(-counts.step_bytes(size.hidden, size.num_iterations) // _TIMED_BYTES), 1)
    hypergraph, x = _reduced(dataset, counts, shrink)
    hypergraph = add_singletons(hypergraph) if size.self_loops else hypergraph
    reduced = count(NodeDataset(name="reduced", hypergraph=hypergraph), self_loops=False)
    scale = max(counts.step_bytes(1, 1), 1) / max(reduced.step_bytes(1, 1), 1)
    if options is None:
        options = {
            "hidden": size.hidden,
            "num_iterations": size.num_iterations,
            **dict.fromkeys(("phi_layers", "rho_layers", "update_layers"), size.mlp_layers),
            "classifier_hidden": size.classifier_hidden,
            "classifier_layers": size.classifier_layers,
            **({} if size.dropout else {"dropout": 0.0, "input_dropout": 0.0}),
        }
    network = make_model(model, in_features=counts.features, num_classes=counts.classes, seed=0, **options)
    optimiser = torch.optim.Adam(network.parameters())

    def train() -> None:
        optimiser.zero_grad()
        network(x, hypergraph).square().mean().backward()
        optimiser.step()

    @torch.no_grad()
    def evaluate() -> None:
        network(x, hypergraph)

    threads = {1} if jobs > 1 else {1, torch.get_num_threads()}
    network.train()
    with _threads(1), FlopCounterMode(display=False) as flops:
        saved = _saved_bytes(
            train, [*network.parameters(), x]
        )  # the first step also allocates Adam's moments, so it is not timed
    step = _best_seconds(train, threads) * scale
    network.eval()
    evaluation = _best_seconds(evaluate, threads) * scale
    activation_bytes, parameters = round(saved * scale), network.num_parameters()
    features = (
        counts.nodes * counts.features * _FLOAT
        if x.layout == torch.strided
        else round((x.values().nbytes + x.col_indices().nbytes) * scale)
    )
    states = _FLOAT * size.hidden * (4 * counts.nodes + 2 * counts.hyperedges)  # gradients of a few states
    indices = _INDEX * (2 * counts.incidences + counts.nodes)
    peak = _ADAM_COPIES * _FLOAT * parameters + features + indices + activation_bytes + states
    machine = total_memory()
    run_bytes = jobs * (PROCESS_BYTES + peak) + (PROCESS_BYTES if jobs > 1 else 0)
    return Forecast(
        size=size,
        counts=counts,
        parameters=parameters,
        activation_bytes=activation_bytes,
        peak_bytes=peak,
        processes=jobs,
        run_bytes=run_bytes,
        machine_bytes=machine,
        fits=None if machine is None else run_bytes <= machine,
        flops_per_step=round(flops.get_total_flops() * scale),
        seconds_per_step=step,
        seconds_per_run=-(-size.splits // jobs) * size.epochs * (step + evaluation),
        timed_share=1 / scale,
    )


def count(dataset: NodeDataset, *, self_loops: bool = True) -> Counts:
    """Count N, E, I, F and C; with ``self_loops``, include the singletons that would be added."""
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


def total_memory() -> int | None:
    """Return the bytes of memory in this machine; ``None`` if the system does not provide it."""
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX, or without these names
        return None
    return pages * page if pages > 0 and page > 0 else None


def _reduced(dataset: NodeDataset, counts: Counts, shrink: int) -> tuple[Hypergraph, Tensor]:
    """Return about 1/``shrink`` of a dataset: a hypergraph of the same hyperedge sizes and degrees, and features."""
    hypergraph, x = dataset.hypergraph, dataset.x
    nodes = -(-counts.nodes // shrink)
    if shrink > 1:
        chosen = hypergraph.edge_index % shrink == 0
        members, edges = hypergraph.node_index[chosen] % nodes, hypergraph.edge_index[chosen] // shrink
        hypergraph = Hypergraph(members, edges, nodes, -(-hypergraph.num_edges // shrink))
    if x is None or not dataset.num_features:
        return hypergraph, torch.ones(nodes, counts.features)
    if x.layout == torch.strided:
        return hypergraph, x[:nodes].float()
    return hypergraph, sparse_features(features_to_scipy(x)[:nodes])


def _saved_bytes(step: Callable[[], None], lasting: list[Tensor]) -> int:
    """Run a step and return the bytes of the storages that autograd saves, without those of ``lasting`` tensors."""
    excluded = {_storage(tensor) for tensor in lasting if tensor.layout == torch.strided}
    saved: dict[int, Tensor] = {}  # holds the tensors, so that no address is reused

    def pack(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided and _storage(tensor) not in excluded:
            saved[_storage(tensor)] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        step()
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _best_seconds(work: Callable[[], None], threads: set[int]) -> float:
    """Return the mean time with the best of several numbers of threads; on a busy machine one thread can be faster."""
    best = float("inf")
    for number in sorted(threads):
        with _threads(number):
            begin, count, passed = time.perf_counter(), 0, 0.0
            while passed < _TIMED_SECONDS:
                work()
                count, passed = count + 1, time.perf_counter() - begin
        best = min(best, passed / count)
    return best


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
