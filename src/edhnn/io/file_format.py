"""What a file format is: a name, the file names that ask for it, how it is read and written, and what it drops.

`TableRequest` is what a reader is asked for; most of it is about tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, final

from edhnn.data.columns import ColumnRequest
from edhnn.data.dataset import NodeDataset
from edhnn.data.limits import Limits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """What the user said about tables; ``None`` means guess.

    Attributes:
        node: Node column of the incidence table.
        edge: Hyperedge column of the incidence table.
        weight: Weight column of the incidence table.
        nodes: The node table; by default the neighbour ``NAME.nodes.csv``, if there is one.
        hyperedges: The hyperedge table; by default ``NAME.hyperedges.csv``.
        id: Id column of the node table.
        columns: Labels and features of the node table.
    """

    node: str | None = None
    edge: str | None = None
    weight: str | None = None
    nodes: Path | None = None
    hyperedges: Path | None = None
    id: str | None = None
    columns: ColumnRequest = field(default_factory=ColumnRequest)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A file format. Its module makes one, and `edhnn.io.formats.FORMATS` lists it.

    Attributes:
        name: What users call it in ``format=`` and ``--format``.
        patterns: The file names that ask for it: an ending ``.csv``, a pattern ``hyperedges-NAME.txt``, or ``NAME/``,
            a folder, which any name without a dot asks for. A final ``.gz`` is not looked at.
        read: Reads a file or folder. It gets the whole request; see ``options``.
        write: Writes a dataset to a target that may be written, and returns the paths.
        dropped: What the format cannot hold of a dataset, in words.
        options: Which options of a reader apply: none, those about labels and features, or those about tables too.
        sign: A glob pattern that tells that a folder holds this format, and the same in words.
        files: Every path that belongs to a target, whether a dataset needs it or not.
    """

    name: str
    patterns: tuple[str, ...]
    read: Callable[[Path, TableRequest, Limits], NodeDataset]
    write: Callable[[NodeDataset, Path], list[Path]]
    dropped: Callable[[NodeDataset, Path], list[str]]
    options: Literal["none", "columns", "tables"] = "none"
    sign: tuple[str, str] | None = None
    files: Callable[[Path], list[Path]] = lambda target: [target]

    @property
    def is_folder(self) -> bool:
        """Whether a dataset of this format is a folder."""
        return self.patterns[0].endswith("/")

    def is_asked_by(self, path: Path) -> bool:
        """Tell whether a file name asks for this format."""
        name = path.name.lower().removesuffix(".gz")
        return any(_matches(name, pattern) for pattern in self.patterns)


def _matches(name: str, pattern: str) -> bool:
    if pattern.endswith("/"):
        return "." not in name
    start, _, end = pattern.rpartition("NAME")
    return name.startswith(start) and name.endswith(end)


def dropped_parts(dataset: NodeDataset, *, holds: Collection[str] = ()) -> list[str]:
    """Name the parts of a dataset that a format of plain hyperedges drops.

    Args:
        dataset: The dataset.
        holds: What the format holds beside the hyperedges: ``labels`` (of classification), ``edge_weight``,
            ``incidence_weight``, ``features``, or the name of a node attribute.

    Returns:
        The other parts, in words. Ids are dropped unless they are the numbers from 1 on.
    """
    hypergraph = dataset.hypergraph
    dropped = [
        f"the {kind} ids (numbered from 1 instead)"
        for kind, ids in (("node", dataset.node_ids), ("hyperedge", dataset.edge_ids))
        if ids.to_list() != list(range(1, len(ids) + 1))
    ]
    kept_labels = "labels" in holds and dataset.task == "classification"
    if dataset.x is not None and "features" not in holds:
        dropped.append("the features")
    if dataset.y is not None and not kept_labels:
        dropped.append("the labels")
    if kept_labels and any(isinstance(name, int) for name in dataset.class_names or ()):
        dropped.append("that class names are numbers (written as text)")
    if hypergraph.incidence_weight is not None and "incidence_weight" not in holds:
        dropped.append("the incidence weights")
    if hypergraph.edge_weight is not None and "edge_weight" not in holds:
        dropped.append("the hyperedge weights")
    dropped += [f"the node attribute '{name}'" for name in dataset.node_attributes if name not in holds]
    return dropped + [f"the hyperedge attribute '{name}'" for name in dataset.edge_attributes]
