"""The inputs of a model, and the one function that runs a model on them.

Training, evaluation, prediction, estimators, tuning and experiments all call `outputs_of`, so that batches and devices
are handled in one function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.data.dataset import NodeDataset, as_numpy, features_to_scipy
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.nn.features import append_columns
from edhnn.training.config import TrainConfig
from edhnn.training.objective import check_features, feature_name
from edhnn.typing import BoolArray, FloatArray

FAR: Final = 3.0
"""A value is far outside a range if its distance to the range is more than this many widths of the range."""
_BLOCK = 2**22  # entries of a table that are compared at a time

Device = str | torch.device
"""``cpu``, ``cuda``, ``cuda:1``, ``mps``, ..., or ``auto``: the first available of cuda, mps and cpu."""


@final
@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and deviation of each feature column over all nodes of the training hypergraph.

    Features in 64 bits are scaled in 64 bits, so that values far from 0, such as dates, keep their differences.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class FeatureRange:
    """The smallest and the largest value of each feature column over all nodes of the training hypergraph.

    A model answers for any finite features, but its answers for features far outside this range may be wrong. A value
    is far outside if it is less than ``low - 3 * (high - low)`` or more than ``high + 3 * (high - low)``. The width
    ``high - low`` of a constant column counts as 1.

    Attributes:
        low: The smallest values; a single one if all columns have the same, as in a bag of words.
        high: The largest values, likewise.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def _bounds(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = np.array(self.low), np.array(self.high)
        with np.errstate(over="ignore"):
            width = high - low
        return low, high, np.where(width > 0, width, 1.0)

    def note(self, dataset: NodeDataset) -> str | None:
        """Describe the features of a dataset that are far outside the range; return ``None`` if none are."""
        x = dataset.x
        assert x is not None
        if not len(x):
            return None
        low, high, width = self._bounds
        with np.errstate(over="ignore"):
            low, high = (np.broadcast_to(bound, x.shape[1]) for bound in (low - FAR * width, high + FAR * width))
        smallest, largest = _extremes(x)
        columns = np.flatnonzero((smallest < low) | (largest > high))
        if not len(columns):
            return None
        nodes = int(_outside(x, columns, low[columns], high[columns]).sum())
        first = int(columns[0])
        value = largest[first] if largest[first] > high[first] else smallest[first]
        return (
            f"{nodes} of {x.shape[0]} nodes of '{dataset.name}' have features far outside the range of the training, "
            f"in {len(columns)} of {x.shape[1]} columns. The first is column {self.describe(dataset, first, value)}. "
            "Answers for these nodes and their neighbours may be wrong"
        )

    def describe(self, dataset: NodeDataset, column: int, value: float) -> str:
        """Name a column with a value of it and its range in the training."""
        low, high = (bound[column if len(bound) > 1 else 0] for bound in (self.low, self.high))
        return f"'{feature_name(dataset, column)}', with the value {value:.6g} (training: {low:.6g} to {high:.6g})"

    def most_extreme(self, dataset: NodeDataset, nodes: Tensor) -> tuple[int, int, float] | None:
        """Find the value farthest outside the range, in widths of its column: the node, the column and the value.

        Args:
            dataset: The dataset.
            nodes: The nodes whose features are compared.

        Returns:
            ``None`` if all features of the nodes lie in the range.
        """
        assert dataset.x is not None
        rows, numbers = _table(dataset.x), nodes.cpu().numpy()
        rows = rows[numbers]
        low, high, width = self._bounds
        smallest, largest = _extremes(rows)
        with np.errstate(over="ignore"):
            below, above = (low - smallest) / width, (largest - high) / width
        distance = np.maximum(below, above)
        column = int(distance.argmax())
        if not distance[column] > 0:
            return None
        values = rows[:, [column]]
        values = (values.toarray() if sp.issparse(values) else values)[:, 0]
        row = int(values.argmax() if above[column] >= below[column] else values.argmin())
        return int(numbers[row]), column, float(values[row])


def measure_range(x: Tensor) -> FeatureRange:
    """Measure the range of dense or sparse features, a row per node."""
    low, high = _extremes(x)
    return FeatureRange(*(tuple((side[:1] if (side == side[0]).all() else side).tolist()) for side in (low, high)))


def _table(x: Tensor) -> Any:
    """Return features as an array or a sparse array, whose rows and columns can be selected."""
    return features_to_scipy(x) if x.layout == torch.sparse_csr else as_numpy(x)


def _extremes(x: Any) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column, zeros of sparse features included."""
    table = _table(x) if isinstance(x, Tensor) else x
    sides = (table.min(axis=0), table.max(axis=0))
    low, high = (np.ravel(side.toarray() if sp.issparse(side) else side).astype(np.float64) for side in sides)
    return low, high


def _outside(x: Tensor, columns: Any, low: FloatArray, high: FloatArray) -> BoolArray:
    """Mark the nodes with a value outside the bounds in one of the columns."""
    table, step = _table(x), max(1, _BLOCK // len(columns))
    outside = np.zeros(x.shape[0], dtype=bool)
    for start in range(0, len(outside), step):
        rows = table[start : start + step][:, columns]
        rows = rows.toarray() if sp.issparse(rows) else rows
        outside[start : start + step] = ((rows < low) | (rows > high)).any(axis=1)
    return outside


@final
@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What a model gets beside the features; see `edhnn.training.beliefs`.

    Attributes:
        base: The outputs of the base predictor, which the model corrects; ``None`` without a base.
        labels: The columns of the given labels, ``[N, C + 1]``; ``None`` if labels are not inputs.
    """

    base: Float[Tensor, "N C"] | None
    labels: Float[Tensor, "N C_plus_1"] | None

    def to(self, device: torch.device) -> Beliefs:
        """Move the beliefs to a device."""
        return Beliefs(*(None if part is None else part.to(device) for part in (self.base, self.labels)))

    def columns(self) -> Tensor:
        """Return the columns that exist."""
        return torch.cat([part for part in (self.base, self.labels) if part is not None], dim=1)

    def table(self, num_outputs: int) -> Float[Tensor, "N B"]:
        """Return all columns, ``2 C + 1``: base, labels and flag, with zeros for those that do not exist."""
        some = self.base if self.base is not None else self.labels
        assert some is not None
        base = some.new_zeros(len(some), num_outputs) if self.base is None else self.base
        labels = some.new_zeros(len(some), num_outputs + 1) if self.labels is None else self.labels
        return torch.cat([base, labels], dim=1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A model's inputs.

    Attributes:
        hypergraph: The transformed hypergraph.
        x: Features in 32 bits, scaled if the configuration requires it.
        scaling: Mean and deviation that scaled them; ``None`` if they are not scaled.
        beliefs: Base predictions and labels, if they are inputs beside the features.
    """

    hypergraph: Hypergraph
    x: Tensor
    scaling: Scaling | None = None
    beliefs: Beliefs | None = None

    def to(self, device: torch.device) -> Inputs:
        """Move the inputs to a device. Return the same object if they are on it already."""
        if self.x.device == device == self.hypergraph.device:
            return self
        beliefs = None if self.beliefs is None else self.beliefs.to(device)
        return replace(self, hypergraph=self.hypergraph.to(device), x=self.x.to(device), beliefs=beliefs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The data of one training step. The whole hypergraph is one batch.

    Attributes:
        inputs: The model's inputs.
        targets: The targets of the loss.
        rows: The rows of the outputs that the loss compares with the targets; all rows if ``None``.
    """

    inputs: Inputs
    targets: Tensor
    rows: Tensor | None = None


def outputs_of(model: nn.Module, inputs: Inputs, *, training: bool = False) -> Tensor:
    """Run a model and return its outputs, on its device.

    Beliefs are further columns of the features, or the argument ``beliefs`` of a model that takes them
    (`HypergraphModel.takes_beliefs`). Base predictions are added to the outputs.

    Args:
        model: Any module ``model(x, hypergraph)``.
        inputs: Its inputs, on its device.
        training: Run in training mode, with gradients; otherwise in evaluation mode, without.
    """
    model.train(training)
    beliefs = inputs.beliefs
    with torch.set_grad_enabled(training):
        if beliefs is None:
            outputs: Tensor = model(inputs.x, inputs.hypergraph)
        elif getattr(model, "takes_beliefs", False):
            outputs = model(inputs.x, inputs.hypergraph, beliefs.table(model.num_classes))  # type: ignore[arg-type]
        else:
            outputs = model(append_columns(inputs.x, beliefs.columns()), inputs.hypergraph)
        return outputs if beliefs is None or beliefs.base is None else outputs + beliefs.base


def find_device(name: Device) -> torch.device:
    """Find a device by name.

    Raises:
        UsageError: if this machine has no such device, or torch does not support it.
    """
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.insert(0, "mps")
    if torch.cuda.is_available():
        available.insert(0, "cuda")
    try:
        probe = torch.zeros(1, device=available[0] if name == "auto" else name)
        probe.item()  # a device without values, such as meta, fails here
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise unknown_name("device, on this machine,", str(name), ["auto", *available]) from error
    return probe.device  # includes the number: cuda is cuda:0


def make_inputs(dataset: NodeDataset, config: TrainConfig, scaling: Scaling | None = None) -> Inputs:
    """Make a model's inputs from a dataset.

    Args:
        dataset: The dataset, with features.
        config: The transforms and the feature scaling; see `TrainConfig.for_model`.
        scaling: The scaling of the training data, for prediction; measured here if not given.

    Raises:
        UsageError: if sparse features are to be scaled.
        DataError: if a feature is not finite in 32 bits, after scaling.
    """
    x = dataset.x
    assert x is not None
    if config.feature_scaling == "standard":
        if x.layout == torch.sparse_csr:
            raise UsageError(
                "Only dense features can be scaled, because scaled sparse features are dense. "
                "Use `feature_scaling='none'`."
            )
        x = x if x.dtype == torch.float64 else x.to(torch.float32)
        scaling = scaling or _measure_scaling(x)
        x = (x - x.new_tensor(scaling.mean)) / x.new_tensor(scaling.scale)
    x = x.to(torch.float32)
    check_features(dataset, x)
    return Inputs(config.transformed(dataset.hypergraph), x, scaling)


def _measure_scaling(x: Tensor) -> Scaling:
    """Measure mean and deviation of each column. The deviation of a constant column counts as 1."""
    exact = x.double()
    deviation = exact.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    return Scaling(tuple(exact.mean(dim=0).tolist()), tuple(deviation.tolist()))
