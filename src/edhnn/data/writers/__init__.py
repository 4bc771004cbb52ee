"""One writer per format; `write_dataset` chooses by the name of the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from edhnn.data.atomic import REPLACE
from edhnn.data.dataset import NodeDataset
from edhnn.data.hif_dataset import details_left_behind, document_from_dataset
from edhnn.data.readers import Format, format_by_name
from edhnn.data.table_names import table_neighbour
from edhnn.data.writers.folder import write_folder
from edhnn.data.writers.hif import write_hif
from edhnn.data.writers.table_losses import left_behind_by_tables
from edhnn.data.writers.tables import write_tables
from edhnn.data.writers.text import cornell_neighbours, left_behind_by_text, write_cornell, write_hmetis
from edhnn.errors import UsageError, unknown_name


class Written(NamedTuple):
    """What a writer did.

    Attributes:
        paths: The files or the folder written.
        left_behind: What the format cannot hold of the dataset, in words; empty if nothing.
        removed: Neighbours that were there and would have been read along with the new file.
    """

    paths: list[Path]
    left_behind: list[str]
    removed: Sequence[Path] = ()


def write_dataset(
    dataset: NodeDataset,
    target: Path | str,
    *,
    format: Format | None = None,  # noqa: A002  # the word users know
    overwrite: bool = False,
) -> Written:
    """Write a dataset in the format its name asks for, each file whole or not at all.

    Args:
        dataset: The dataset.
        target: ``.hif.json``, ``.csv``, ``.tsv``, ``.parquet``, ``.hgr``, ``hyperedges-NAME.txt``, or a folder name.
        format: Says the format when the name does not.
        overwrite: Replace what is there. Neighbours that would be read along with the new file are removed.

    Returns:
        What was written, what was left behind, and what was removed.

    Raises:
        DataError: if the format cannot hold the hypergraph itself.
        UsageError: if something is there already.

    Example:
        >>> import edhnn, pathlib, tempfile
        >>> trios = edhnn.Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "trios.hif.json"
        ...     written = edhnn.write_dataset(edhnn.NodeDataset(name="trios", hypergraph=trios), file)
        ...     edhnn.read_dataset(file).hypergraph.same_as(trios)
        True
    """
    target = Path(target)
    if format is not None and format not in get_args(Format):
        raise unknown_name("format", format, get_args(Format))
    chosen = format or format_by_name(target, writing=True)
    outputs = outputs_of(target, chosen)
    refuse_existing(outputs, overwrite=overwrite)
    lost: list[str] = []
    if chosen == "hif":
        write_hif(document_from_dataset(dataset), target)
        written, lost = [target], details_left_behind(dataset)
    elif chosen == "table":
        written, lost = write_tables(dataset, target), left_behind_by_tables(dataset, target)
    elif chosen == "folder":
        write_folder(dataset, target, overwrite=overwrite)
        written, lost = [target], details_left_behind(dataset)
    else:
        written = write_hmetis(dataset, target) if chosen == "hmetis" else write_cornell(dataset, target)
        lost = left_behind_by_text(dataset, hmetis=chosen == "hmetis")
    removed = [path for path in outputs if path not in written and path.exists()]
    for stale in removed:
        stale.unlink()
    return Written(written, [*dataset.provenance.details.get("left_behind", ()), *lost], removed)


def outputs_of(target: Path, chosen: Format) -> list[Path]:
    """Every path that belongs to a dataset written to ``target``, whether this one needs it or not."""
    if chosen == "table":
        return [target, table_neighbour(target, "nodes"), table_neighbour(target, "hyperedges")]
    return [target, *cornell_neighbours(target)] if chosen == "cornell" else [target]


def refuse_existing(paths: list[Path], *, overwrite: bool) -> None:
    """A usage error if something is there already and may not be replaced."""
    found = [str(path) for path in paths if path.exists()]
    if found and not overwrite:
        raise UsageError(f"{', '.join(found)} exists already. Choose another name, or {REPLACE}.")
