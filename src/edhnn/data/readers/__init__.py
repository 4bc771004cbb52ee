"""One reader per format; `read_dataset` chooses by the name of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from edhnn.data.columns import ColumnRequest, names_in
from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.files import Limits
from edhnn.data.hif_dataset import dataset_from_document
from edhnn.data.readers.cornell import find_cornell, read_cornell
from edhnn.data.readers.folder import HYPEREDGES, read_folder
from edhnn.data.readers.hif import read_hif
from edhnn.data.readers.hmetis import read_hmetis
from edhnn.data.readers.tables import TableRequest, read_tables
from edhnn.data.table_names import table_kind
from edhnn.errors import UsageError, unknown_name

Format = Literal["hif", "table", "cornell", "folder", "hmetis"]


def detect_format(path: Path) -> Format:
    """The format of a file or folder, from its name and, for folders, what is in it.

    Raises:
        UsageError: if there is nothing at ``path``, or it is of no known format.
    """
    try:
        folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {(error.strerror or str(error)).lower()}.") from error
    if folder:
        if (path / HYPEREDGES).is_file():
            return "folder"
        if find_cornell(path) is not None:
            return "cornell"
        raise UsageError(
            f"The folder '{path}' must hold {HYPEREDGES} (a dataset folder) or hyperedges-NAME.txt (Cornell text)."
        )
    if not exists:
        raise UsageError(f"There is no file or folder '{path}'.")
    found = format_by_name(path)
    if found == "folder":
        raise _unknown(path, "--format")
    return found


def format_by_name(path: Path, *, writing: bool = False) -> Format:
    """The format a file name asks for, for reading or writing."""
    name = path.name.lower().removesuffix(".gz")
    if table_kind(path) is not None:
        return "table"
    if name.endswith(".json"):
        return "hif"
    if name.endswith(".hgr"):
        return "hmetis"
    if name.startswith("hyperedges-") and name.endswith(".txt"):
        return "cornell"
    if "." not in name:
        return "folder"
    if name.endswith((".pickle", ".pkl")) and writing:
        raise UsageError(
            f"Pickles can run code when read, so none is written. Got '{path.name}': choose .hif.json, or a folder."
        )
    if name.endswith((".pickle", ".pkl")):
        raise UsageError(
            f"'{path.name}' is a pickle, and pickles can run code when read. "
            "If it is a dataset of the HyperGCN kind, convert it: edhnn data convert --legacy-pickle IN OUT."
        )
    raise _unknown(path, "--to" if writing else "--format")


def _unknown(path: Path, option: str) -> UsageError:
    return UsageError(
        f"The format of '{path.name}' is not known by its name. Known: .hif.json, .csv, .tsv, .parquet, .hgr, "
        f"hyperedges-NAME.txt, and dataset folders. Say which with {option}."
    )


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
        format: Says the format when the name does not.
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
    if format is not None and format not in get_args(Format):
        raise unknown_name("format", format, get_args(Format))
    chosen = format or detect_format(path)
    columns = ColumnRequest(
        label=None if label is None else names_in(label),
        features=None if features is None else names_in(features),
        task=task,
        keep_missing=keep_missing,
    )
    if table is not None and chosen != "table":
        raise UsageError(f"Column and table options apply to CSV, TSV and Parquet. '{path.name}' is read as {chosen}.")
    if chosen == "table":
        return read_tables(path, replace(table or TableRequest(), columns=columns), limits)
    if chosen == "hif":
        name = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".hif")
        document = read_hif(path, limits)
        return dataset_from_document(document, name=name, source=str(path), request=columns, limits=limits)
    if columns != ColumnRequest(keep_missing=keep_missing):
        raise UsageError(f"Label, feature and task options do not apply to '{path.name}', which is read as {chosen}.")
    if chosen == "cornell":
        return read_cornell(find_cornell(path) or path, None, limits)
    return read_folder(path, limits) if chosen == "folder" else read_hmetis(path, limits)
