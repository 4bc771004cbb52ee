"""The description of a file format, and the options that a reader receives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, final

import msgspec

from edhnn.data.columns import ColumnRequest
from edhnn.data.dataset import NodeDataset
from edhnn.data.limits import Limits


class TableColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns that were read from the tables of a dataset, for `Provenance.details`."""

    node: str
    hyperedge: str
    weight: str | None = None
    id: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """The columns and files of a table dataset; ``None`` means that the reader guesses.

    Attributes:
        node: Node column of the incidence table.
        edge: Hyperedge column of the incidence table.
        weight: Weight column of the incidence table.
        nodes: The node table; by default ``NAME.nodes.csv`` beside the incidence table, if it exists.
        hyperedges: The hyperedge table; by default ``NAME.hyperedges.csv``.
        id: Id column of the node table.
        columns: Labels and features of the node table.
        usual: The columns of a model's training data, used where the file has them and none are named.
    """

    node: str | None = None
    edge: str | None = None
    weight: str | None = None
    nodes: Path | None = None
    hyperedges: Path | None = None
    id: str | None = None
    columns: ColumnRequest = field(default_factory=ColumnRequest)
    usual: TableColumns | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A file format. Its module defines one, and `edhnn.io.formats.FORMATS` lists it.

    Attributes:
        name: The name that users pass as ``format=``.
        patterns: The file names of this format: an ending ``.csv``, a pattern ``hyperedges-NAME.txt``, or ``NAME/`` for
            a folder, which matches every name without a dot. A final ``.gz`` is ignored.
        read: Reads a file or folder. It receives the whole request; see ``options``.
        write: Writes a dataset to a target that was checked before, and returns the paths; ``None`` if the format is
            only read.
        dropped: Describes the parts of a dataset that the format cannot store.
        options: Which options of a reader apply: none, those about labels and features, or those about tables too.
        sign: A glob pattern that recognises a folder of this format, and its description.
        files: Every path that belongs to a target, even if this dataset does not need it.
    """

    name: str
    patterns: tuple[str, ...]
    read: Callable[[Path, TableRequest, Limits], NodeDataset]
    write: Callable[[NodeDataset, Path], list[Path]] | None = None
    dropped: Callable[[NodeDataset, Path], list[str]] = lambda dataset, target: []  # noqa: ARG005
    options: Literal["none", "columns", "tables"] = "none"
    sign: tuple[str, str] | None = None
    files: Callable[[Path], list[Path]] = lambda target: [target]

    @property
    def is_folder(self) -> bool:
        """Whether a dataset of this format is a folder."""
        return self.patterns[0].endswith("/")

    def matches(self, path: Path) -> bool:
        """Return whether a file name has one of the patterns of this format."""
        name = path.name.lower().removesuffix(".gz")
        if self.is_folder:
            return "." not in name
        ends = [pattern.rpartition("NAME")[::2] for pattern in self.patterns]
        return any(name.startswith(start) and name.endswith(end) for start, end in ends)


def dropped_parts(dataset: NodeDataset, *, holds: Collection[str] = ()) -> list[str]:
    """Describe the parts of a dataset that a format of plain hyperedges drops.

    Args:
        dataset: The dataset.
        holds: What the format stores besides the hyperedges: ``labels`` (of classification), ``edge_weight``,
            ``incidence_weight``, ``features``, or the name of a node attribute.

    Returns:
        The other parts. Ids are dropped unless they are the numbers 1, 2, ...
    """
    hypergraph = dataset.hypergraph
    dropped = [
        f"the {kind} ids (numbered from 1 instead)"
        for kind, ids in (("node", dataset.node_ids), ("hyperedge", dataset.edge_ids))
        if ids.to_list() != list(range(1, len(ids) + 1))
    ]
    holds_labels = "labels" in holds and dataset.task == "classification"
    if dataset.x is not None and "features" not in holds:
        dropped.append("the features")
    if dataset.y is not None and not holds_labels:
        dropped.append("the labels")
    if holds_labels and any(isinstance(name, int) for name in dataset.class_names or ()):
        dropped.append("that class names are numbers (written as text)")
    if hypergraph.incidence_weight is not None and "incidence_weight" not in holds:
        dropped.append("the incidence weights")
    if hypergraph.edge_weight is not None and "edge_weight" not in holds:
        dropped.append("the hyperedge weights")
    dropped += [f"the node attribute '{name}'" for name in dataset.node_attributes if name not in holds]
    return dropped + [f"the hyperedge attribute '{name}'" for name in dataset.edge_attributes]
