"""The registry of file formats, and functions that read and write a dataset in any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from edhnn.data.columns import ColumnRequest, encoded_again, names_in
from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.encoding import encoding_from_json
from edhnn.data.limits import Limits
from edhnn.errors import UsageError, unknown_name
from edhnn.io import allset, benson, cornell, folder, hmetis
from edhnn.io.file_format import FileFormat, TableColumns, TableRequest
from edhnn.io.files import check_can_write, usage_errors
from edhnn.io.hif import conversion
from edhnn.io.tables import writer

FORMATS: dict[str, FileFormat] = {
    entry.name: entry
    for entry in (
        conversion.FORMAT,
        writer.FORMAT,
        writer.WORKBOOK,
        cornell.FORMAT,
        folder.FORMAT,
        hmetis.FORMAT,
        benson.FORMAT,
        allset.FORMAT,
    )
}
"""Every file format by name. Reading, writing, messages and the contract tests use it."""

if TYPE_CHECKING:
    Format: TypeAlias = str
else:
    Format = Literal[tuple(FORMATS)]  # the command shows these choices


def detect_format(path: Path) -> Format:
    """Return the format of a file from its name, or of a folder from its content.

    Raises:
        UsageError: if ``path`` does not exist or its format is unknown.
    """
    with usage_errors(path, "read"):
        is_folder, exists = path.is_dir(), path.exists()
    if is_folder:
        signs = [(entry, *entry.sign) for entry in FORMATS.values() if entry.sign is not None]
        signs.sort(key=lambda sign: not sign[0].is_folder)  # a dataset folder wins over files in a folder
        for entry, pattern, _ in signs:
            if any(path.glob(pattern)):
                return entry.name
        raise UsageError(f"The folder '{path}' must contain {' or '.join(words for *_, words in signs)}.")
    if not exists:
        raise UsageError(f"File or folder not found: '{path}'.")
    name = format_by_name(path)
    if FORMATS[name].is_folder:
        raise _unknown_format(path)
    return name


def format_by_name(path: Path, *, writing: bool = False) -> Format:
    """Return the format of a file to read or write, from its name alone.

    Raises:
        UsageError: if no format has such names.
    """
    for name, entry in FORMATS.items():
        if entry.matches(path):
            return name
    if path.name.lower().removesuffix(".gz").endswith((".pickle", ".pkl")):
        if writing:
            raise UsageError(
                f"Pickles are not written, because reading one can run code. Got '{path.name}'. "
                "Choose a name that ends in .hif.json, or a folder."
            )
        raise UsageError(
            f"'{path.name}' is a pickle. It is not read, because reading one can run code. If it belongs to a dataset "
            "in the layout of HyperGCN, read it with edhnn.io.read_legacy_pickle, or convert it with the command "
            "edhnn data convert --legacy-pickle IN OUT."
        )
    raise _unknown_format(path)


def _unknown_format(path: Path) -> UsageError:
    patterns = ", ".join(pattern for entry in FORMATS.values() for pattern in entry.patterns)
    return UsageError(
        f"The format of '{path.name}' cannot be determined from its name. Known names: {patterns}. "
        "Name the format with `format=`."
    )


def _find_format(name: Format) -> FileFormat:
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
    attributes: str | Sequence[str] = (),
    like: Mapping[str, Any] | None = None,
    table: TableRequest | None = None,
    limits: Limits | None = None,
) -> NodeDataset:
    r"""Read a hypergraph, its labels, features and attributes from a file or folder of any known format.

    Args:
        path: HIF (``.hif.json``), incidence table (``.csv``, ``.tsv``, ``.parquet``, ``.xlsx``), Cornell text, dataset
            folder, hMETIS (``.hgr``), Benson's simplices (``NAME-nverts.txt``) or the files of AllSet
            (``NAME.content``); text formats may be gzip-compressed.
        format: The format, a key of `FORMATS`; by default it follows from the name.
        label: The attribute or column that is the label, or several of them; guessed by default.
        features: The attribute or column that is the feature, or several, of any kind; by default all others that can
            be encoded (`edhnn.data.encoding`).
        task: The kind of the labels; by default it is inferred from their values.
        keep_missing: Encode nothing: only numbers are features, missing ones are NaN, and all else stays an attribute.
        attributes: The attribute or column that is never guessed as label or feature, or several: groups, splits.
        like: The ``reading`` of a dataset or a model, whose data this file continues: its columns are used where the
            file has them, and its features are encoded in the same way.
        table: Columns and neighbouring files of incidence tables.
        limits: Size limits.

    Returns:
        The dataset.

    Raises:
        DataError: if the content is invalid. The message names the file, the line or record, and a remedy.
        UsageError: if the file does not exist, or an option does not apply to its format.

    Example:
        >>> import edhnn, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "baskets.csv"
        ...     _ = file.write_text("item,basket\nmilk,1\nbread,1\nmilk,2\n")
        ...     edhnn.read_dataset(file).hypergraph
        Hypergraph(num_nodes=2, num_edges=2, num_incidences=3)
    """
    path = Path(path)
    entry = _find_format(format or detect_format(path))
    columns = ColumnRequest(
        label=None if label is None else names_in(label),
        features=None if features is None else names_in(features),
        task=task,
        keep_missing=keep_missing,
        attributes=names_in(attributes),
    )
    like = like or {}
    encoding = encoding_from_json(like["encoding"]) if "encoding" in like and not keep_missing else None
    if table is not None and entry.options != "tables":
        raise UsageError(
            f"Column and table options apply to CSV, TSV, Excel and Parquet only. '{path.name}' is read as "
            f"{entry.name}."
        )
    given = replace(columns, label=columns.label or None, keep_missing=False, attributes=())
    if entry.options == "none" and given != ColumnRequest():
        raise UsageError(
            f"Label, feature and task options do not apply to '{path.name}', which is read as {entry.name}."
        )
    columns = replace(
        columns, usual_label=tuple(like.get("label_columns", ())), usual_task=like.get("task"), encoding=encoding
    )
    usual = msgspec.convert(like["columns"], TableColumns) if "columns" in like else None
    dataset = entry.read(path, replace(table or TableRequest(), columns=columns, usual=usual), limits or Limits())
    return dataset if encoding is None else encoded_again(dataset, encoding)


class Written(NamedTuple):
    """The result of `write_dataset`.

    Attributes:
        paths: The files or the folder written.
        dropped: The parts of the dataset that the format cannot store; empty if it stores all.
        removed: Older neighbouring files that a reader would have read together with the new file.
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
    """Write a dataset in the format that the name of the target implies. A failure leaves no partial file.

    Args:
        dataset: The dataset.
        target: ``.hif.json``, ``.csv``, ``.tsv``, ``.parquet``, ``.hgr``, ``hyperedges-NAME.txt``, or a folder name.
        format: The format, a key of `FORMATS`; by default it follows from the name.
        overwrite: Replace existing files, and remove neighbours that a reader would read together with the new file.

    Returns:
        What was written, dropped and removed.

    Raises:
        DataError: if the format cannot store the hypergraph itself.
        UsageError: if the target exists already.

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
    entry = _find_format(format or format_by_name(target, writing=True))
    if entry.write is None:
        raise UsageError(f"Files of the format '{entry.name}' are read and not written. Choose another name for OUT.")
    files = entry.files(target)
    check_can_write(*files, overwrite=overwrite, folder=entry.is_folder)
    written = entry.write(dataset, target)
    removed = [path for path in files if path not in written and path.exists()]
    for stale in removed:
        stale.unlink()
    dropped = [*dataset.provenance.details.get("left_behind", ()), *entry.dropped(dataset, target)]
    return Written(written, dropped, removed)
