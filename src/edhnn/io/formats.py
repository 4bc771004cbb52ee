"""The file formats, and reading and writing a dataset in the one that a file name asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from edhnn.data.columns import ColumnRequest, names_in
from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.limits import Limits
from edhnn.errors import UsageError, unknown_name
from edhnn.io import cornell, folder, hmetis
from edhnn.io.file_format import FileFormat, TableRequest
from edhnn.io.files import check_can_write
from edhnn.io.hif import conversion
from edhnn.io.tables import writer

FORMATS: dict[str, FileFormat] = {
    found.name: found
    for found in (
        conversion.FORMAT,
        writer.FORMAT,
        cornell.FORMAT,
        folder.FORMAT,
        hmetis.FORMAT,
    )
}
"""Every file format by name. Reading, writing, messages and the contract tests run over it."""

if TYPE_CHECKING:
    Format: TypeAlias = str
else:
    Format = Literal[tuple(FORMATS)]  # the command shows these choices


def detect_format(path: Path) -> Format:
    """Return the format of a file or folder, from its name and, for folders, what is in it.

    Raises:
        UsageError: if there is nothing at ``path``, or it is of no known format.
    """
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {(error.strerror or str(error)).lower()}.") from error
    if is_folder:
        return _format_of_folder(path)
    if not exists:
        raise UsageError(f"There is no file or folder '{path}'.")
    name = format_by_name(path)
    if FORMATS[name].is_folder:
        raise _unknown(path, "--format")
    return name


def _format_of_folder(path: Path) -> Format:
    signed = [found for found in FORMATS.values() if found.sign is not None]
    signed.sort(key=lambda found: not found.is_folder)  # a dataset folder before files in a folder
    for found in signed:
        if found.sign is not None and any(path.glob(found.sign[0])):
            return found.name
    raise UsageError(f"The folder '{path}' must hold {' or '.join(found.sign[1] for found in signed if found.sign)}.")


def format_by_name(path: Path, *, writing: bool = False) -> Format:
    """Return the format that a file name asks for, for reading or writing."""
    found = next((name for name, each in FORMATS.items() if each.is_asked_by(path)), None)
    if found is not None:
        return found
    if path.name.lower().removesuffix(".gz").endswith((".pickle", ".pkl")):
        if writing:
            raise UsageError(
                f"Pickles can run code when read, so none is written. Got '{path.name}': choose .hif.json, or a folder."
            )
        raise UsageError(
            f"'{path.name}' is a pickle, and pickles can run code when read. "
            "If it is a dataset of the HyperGCN kind, convert it: edhnn data convert --legacy-pickle IN OUT."
        )
    raise _unknown(path, "--to" if writing else "--format")


def _unknown(path: Path, option: str) -> UsageError:
    patterns = ", ".join(pattern for found in FORMATS.values() for pattern in found.patterns)
    return UsageError(
        f"The format of '{path.name}' is not known by its name. Known: {patterns}. Say which with {option}."
    )


def _chosen(name: Format) -> FileFormat:
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    return FORMATS[name]


def read_dataset(
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002  # the word users know
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    task: Task | None = None,
    keep_missing: bool = False,
    table: TableRequest | None = None,
    limits: Limits | None = None,
) -> NodeDataset:
    r"""Read a hypergraph with what is known about its nodes, from a file or folder of any known format.

    Args:
        path: HIF (``.hif.json``), incidence table (``.csv``, ``.tsv``, ``.parquet``), Cornell text, dataset folder or
            hMETIS (``.hgr``); text formats may be gzip-compressed.
        format: The format, where the name does not say it: a key of `FORMATS`.
        label: The attribute or column that is the label, or several of them; guessed if not given.
        features: The attribute or column that is the feature, or several; all other numbers if not given.
        task: What the labels are; inferred from them if not given.
        keep_missing: Keep missing feature values as NaN instead of refusing them.
        table: Columns and neighbouring files of incidence tables.
        limits: Size limits.

    Returns:
        The dataset.

    Raises:
        DataError: if the content breaks a rule; file, place and remedy are named.
        UsageError: if there is no such file, or an option does not apply to its format.

    Example:
        >>> import edhnn, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "baskets.csv"
        ...     _ = file.write_text("item,basket\nmilk,1\nbread,1\nmilk,2\n")
        ...     edhnn.read_dataset(file).hypergraph
        Hypergraph(num_nodes=2, num_edges=2, num_incidences=3)
    """
    path, limits = Path(path), limits or Limits()
    chosen = _chosen(format or detect_format(path))
    columns = ColumnRequest(
        label=None if label is None else names_in(label),
        features=None if features is None else names_in(features),
        task=task,
        keep_missing=keep_missing,
    )
    if table is not None and chosen.options != "tables":
        raise UsageError(
            f"Column and table options apply to CSV, TSV and Parquet. '{path.name}' is read as {chosen.name}."
        )
    if chosen.options == "none" and columns != ColumnRequest(keep_missing=keep_missing):
        raise UsageError(
            f"Label, feature and task options do not apply to '{path.name}', which is read as {chosen.name}."
        )
    return chosen.read(path, replace(table or TableRequest(), columns=columns), limits)


class Written(NamedTuple):
    """What a writer did.

    Attributes:
        paths: The files or the folder written.
        dropped: What the format cannot hold of the dataset, in words; empty if nothing.
        removed: Neighbours that were there and would have been read along with the new file.
    """

    paths: list[Path]
    dropped: list[str]
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
        format: The format, where the name does not say it: a key of `FORMATS`.
        overwrite: Replace what is there. Neighbours that would be read along with the new file are removed.

    Returns:
        What was written, dropped and removed.

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
    chosen = _chosen(format or format_by_name(target, writing=True))
    files = chosen.files(target)
    check_can_write(*files, overwrite=overwrite, folder=chosen.is_folder)
    written = chosen.write(dataset, target)
    removed = [path for path in files if path not in written and path.exists()]
    for stale in removed:
        stale.unlink()
    dropped = [*dataset.provenance.details.get("left_behind", ()), *chosen.dropped(dataset, target)]
    return Written(written, dropped, removed)
