"""A hypergraph with features, labels and names of its nodes, and its provenance."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.ids import Ids
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.notebook import table
from edhnn.typing import JsonObject, NodeOrEdgeId

Task = Literal["classification", "multilabel", "regression"]
UNLABELLED = -1
Attributes = Mapping[str, Sequence[Any]]
"""Named columns beside features and labels, one entry per node (or hyperedge), ``None`` where absent."""


@final
@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a dataset came from.

    Attributes:
        source: The file, folder, catalogue name or library it was read from.
        format: The reader's name.
        notes: Messages for the user: guessed columns, merged memberships.
        details: Facts for programs: seeds, checksums, the record of the source.
    """

    source: str
    format: str
    notes: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _without_surrogates(self.source))
        object.__setattr__(self, "notes", tuple(map(_without_surrogates, self.notes)))


def _without_surrogates(text: str) -> str:
    """Escape the bytes of a file name that are not UTF-8, which no result could store."""
    return text.encode("utf-8", "backslashreplace").decode()


READING = ("label_columns", "feature_noise", "feature_seed", "encoding", "columns", "structural_features")
"""Keys of `Provenance.details` that record how the data were read.

The label columns, how features were drawn, made or encoded, and the columns of the tables.
"""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeDataset:
    """A hypergraph, node features, node labels, original ids, attributes and provenance.

    Args:
        name: Short name, used in reports.
        hypergraph: The hypergraph.
        x: Node features: dense ``[N, D]`` or sparse CSR of that shape; ``None`` if there are none.
        y: Node labels. Classification: ``[N]`` int64 in 0..C-1, `UNLABELLED` (-1) where unknown. Multi-label:
            ``[N, C]`` floating point, 0 or 1, NaN where unknown. Regression: ``[N]`` or ``[N, T]``, NaN where unknown.
        task: The kind of labels in ``y``; required with ``y``.
        class_names: The original names of the classes, in the order of their numbers.
        feature_names: A name per feature column.
        node_ids: Original node ids; by default the numbers.
        edge_ids: Original hyperedge ids; by default the numbers.
        node_attributes: Further columns, one entry per node.
        edge_attributes: Further columns, one entry per hyperedge.
        provenance: Where the dataset came from.

    Raises:
        DataError: if lengths, types or label values do not fit, or two ids are equal.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph, NodeDataset
        >>> trios = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]])
        >>> NodeDataset(name="trios", hypergraph=trios, y=torch.tensor([0, 0, 1, -1]), task="classification")
        NodeDataset('trios', nodes=4, hyperedges=2, features=0, classes=2)
    """

    name: str
    hypergraph: Hypergraph
    x: Tensor | None = None
    y: Tensor | None = None
    task: Task | None = None
    class_names: tuple[NodeOrEdgeId, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    node_ids: Ids = None  # type: ignore[assignment]  # __post_init__ fills in the numbers
    edge_ids: Ids = None  # type: ignore[assignment]
    node_attributes: Attributes = field(default_factory=dict)
    edge_attributes: Attributes = field(default_factory=dict)
    provenance: Provenance = field(default_factory=lambda: Provenance("memory", "python"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _without_surrogates(self.name))
        nodes, edges = self.hypergraph.num_nodes, self.hypergraph.num_edges
        for name, count in (("node_ids", nodes), ("edge_ids", edges)):
            ids = getattr(self, name)
            if ids is None:
                object.__setattr__(self, name, Ids(range(count)))
            elif not isinstance(ids, Ids):
                raise DataError(f"'{name}' must be edhnn.Ids([...]). Got a {type(ids).__name__}.")
            elif len(ids) != count:
                raise DataError(f"'{name}' must hold {count} ids. Got {len(ids)}.")
            elif (twice := ids.repeated()) is not None:
                kind = "Node" if name == "node_ids" else "Hyperedge"
                raise DataError(f"{kind} ids must be unique. {twice!r} occurs twice.", remedy="Rename one.")
        for kind, columns, count in (
            ("node", self.node_attributes, nodes),
            ("hyperedge", self.edge_attributes, edges),
        ):
            for name, column in columns.items():
                if len(column) != count:
                    raise DataError(f"The {kind} attribute '{name}' must have {count} entries. Got {len(column)}.")
        _check_features(self.x, nodes, self.feature_names)
        _check_labels(self.y, self.task, nodes, self.class_names)

    @property
    def num_features(self) -> int:
        """Width of the features; 0 if there are none."""
        return 0 if self.x is None else int(self.x.shape[1])

    @property
    def num_classes(self) -> int | None:
        """Number of classes; ``None`` without labels or for real-valued ones."""
        if self.y is None or self.task == "regression":
            return None
        if self.task == "multilabel":
            return int(self.y.shape[1])
        if self.class_names is not None:
            return len(self.class_names)
        return int(self.y.max()) + 1 if len(self.y) else 0

    @property
    def labelled(self) -> Tensor:
        """Mask of the labelled nodes, ``[N]``: those with a class, or with at least one known value."""
        if self.y is None:
            return torch.zeros(self.hypergraph.num_nodes, dtype=torch.bool)
        if self.task == "classification":
            return self.y != UNLABELLED
        known = ~self.y.isnan()
        return known if known.dim() == 1 else known.any(dim=1)

    @property
    def reading(self) -> JsonObject:
        """The part of the provenance that is needed to read other data in the same way."""
        return {key: self.provenance.details[key] for key in READING if key in self.provenance.details}

    def to(self, device: torch.device | str) -> NodeDataset:
        """Return the dataset with its tensors on another device."""
        return replace(
            self,
            hypergraph=self.hypergraph.to(device),
            x=None if self.x is None else self.x.to(device),
            y=None if self.y is None else self.y.to(device),
        )

    def _repr_html_(self) -> str:
        graph, labelled = self.hypergraph, int(self.labelled.sum())
        rows: list[tuple[str, object]] = [
            ("nodes", graph.num_nodes),
            ("hyperedges", graph.num_edges),
            ("memberships", graph.num_incidences),
            ("features", self.num_features or "none"),
            ("labels", "none" if self.task is None else f"{self.task}, {labelled:,} of {graph.num_nodes:,} nodes"),
        ]
        if self.num_classes is not None:
            first = ", ".join(class_name(self, number) for number in range(min(self.num_classes, 8)))
            rows.append(("classes", f"{self.num_classes}: {first}{', …' if self.num_classes > 8 else ''}"))
        rows.append(("source", f"{self.provenance.source} ({self.provenance.format})"))
        return table(self.name, rows + [("note", note) for note in self.provenance.notes[:3]])

    def __repr__(self) -> str:
        facts = f"nodes={self.hypergraph.num_nodes}, hyperedges={self.hypergraph.num_edges}"
        labels = f"classes={self.num_classes}" if self.num_classes is not None else f"task={self.task}"
        return f"NodeDataset('{self.name}', {facts}, features={self.num_features}, {labels})"


def class_name(dataset: NodeDataset, number: int) -> str:
    """Return the name of a class, or its number as text."""
    return str(number if dataset.class_names is None else dataset.class_names[number])


def merged_note(hypergraph: Hypergraph) -> tuple[str, ...]:
    """Return a note about merged memberships, or an empty tuple if none were merged."""
    merged = hypergraph.merged_memberships
    weights = "" if hypergraph.incidence_weight is None else "; the largest weight is kept"
    return (f"{merged} memberships given more than once were merged{weights}",) if merged else ()


def sparse_features(matrix: sp.sparray | sp.spmatrix, dtype: torch.dtype = torch.float32) -> Tensor:
    """Make a torch sparse CSR tensor from a scipy matrix; canonical: columns sorted, duplicates summed."""
    csr = sp.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()  # do not change the caller's matrix
        csr.sum_duplicates()
    with warnings.catch_warnings():  # torch warns once per process that its CSR layout is beta
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            torch.from_numpy(np.require(csr.data, requirements="W")).to(dtype),  # torch has no read-only tensors
            size=csr.shape,
            check_invariants=True,
        )


def as_numpy(tensor: Tensor) -> npt.NDArray[np.floating[Any]]:
    """Convert to a numpy array of 32 or 64 bits: numpy lacks bfloat16, and scipy and polars lack float16."""
    array: npt.NDArray[np.floating[Any]] = (tensor if tensor.dtype == torch.float64 else tensor.float()).cpu().numpy()
    return array


def features_to_scipy(x: Tensor) -> sp.csr_array:
    """Make a scipy CSR array from dense or sparse CSR features."""
    if x.layout == torch.sparse_csr:
        indices, bounds = x.col_indices().cpu().numpy(), x.crow_indices().cpu().numpy()
        return sp.csr_array((as_numpy(x.values()), indices, bounds), shape=tuple(x.shape))
    return sp.csr_array(as_numpy(x))


def select_columns(x: Tensor, columns: Sequence[int]) -> Tensor:
    """Select columns of dense or sparse CSR features, in the given order."""
    if x.layout == torch.strided:
        return x[:, list(columns)].contiguous()
    return sparse_features(features_to_scipy(x)[:, list(columns)], x.dtype)


def _check_features(x: Tensor | None, nodes: int, names: tuple[str, ...] | None) -> None:
    if x is None:
        return
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DataError(f"Features must be dense or sparse CSR. Got layout {x.layout}.")
    if x.dim() != 2 or x.shape[0] != nodes or not x.is_floating_point():
        raise DataError(
            f"Features must be floating point of shape [{nodes}, D], a row per node. "
            f"Got {x.dtype} of shape {list(x.shape)}."
        )
    if names is not None and len(names) != x.shape[1]:
        raise DataError(f"'feature_names' must name {x.shape[1]} columns. Got {len(names)} names.")


def _check_labels(
    y: Tensor | None, task: Task | None, nodes: int, class_names: tuple[NodeOrEdgeId, ...] | None
) -> None:
    if (y is None) != (task is None):
        raise DataError("Labels 'y' and their 'task' must be given together.")
    if y is None:
        return
    if y.shape[:1] != (nodes,):
        raise DataError(f"Labels must have a row per node, {nodes}. Got shape {list(y.shape)}.")
    if class_names is not None and len(set(class_names)) < len(class_names):
        twice = Counter(class_names).most_common(1)[0][0]
        raise DataError(f"Class names must be unique. {twice!r} occurs twice.", remedy="Rename one.")
    if class_names is not None and y.dim() == 2 and len(class_names) != y.shape[1]:
        raise DataError(f"'class_names' must name {y.shape[1]} label columns. Got {len(class_names)} names.")
    if task == "classification":
        if y.dtype != torch.int64 or y.dim() != 1:
            raise DataError(f"Class labels must be an int64 vector. Got {y.dtype} with {y.dim()} dimensions.")
        top = len(class_names) if class_names is not None else None
        if len(y) and (int(y.min()) < UNLABELLED or (top is not None and int(y.max()) >= top)):
            bound = "" if top is None else f" and less than {top}, the number of class names"
            raise DataError(f"Class labels must be -1 (unlabelled) or more{bound}. Got {int(y.min())}..{int(y.max())}.")
    elif not y.is_floating_point() or y.dim() > 2 or (task == "multilabel" and y.dim() != 2):
        raise DataError(f"Labels for {task} must be floating point, a row per node. Got {y.dtype}, {y.dim()}-d.")
    elif task == "multilabel" and not bool(((y == 0) | (y == 1) | y.isnan()).all()):
        raise DataError("Multi-label entries must be 0, 1 or NaN (unknown).")
