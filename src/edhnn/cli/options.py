"""The options that several commands share: how to read a dataset, and checks of the files that a command writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, final, get_type_hints

import typer

from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.limits import Limits
from edhnn.datasets.registry import catalog, load_dataset
from edhnn.datasets.synthetic import MAX_SEED
from edhnn.errors import UsageError, unknown_name
from edhnn.io.file_format import TableRequest
from edhnn.io.files import check_can_write
from edhnn.io.formats import Format, detect_format, read_dataset
from edhnn.io.tables.names import table_name

Source = Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A catalogue name, a file or a folder.")]
DeviceName = Annotated[
    str, typer.Option("--device", help="Device of the model: cpu, cuda, cuda:1, mps, or auto for the fastest.")
]
_split = partial(typer.Option, rich_help_panel="Splits")
FoldCount = Annotated[
    int | None, _split("--folds", min=3, help="Stratified folds; default: 5, and 10 --splits for the catalogue.")
]
GroupColumn = Annotated[str | None, _split("--group", help="Column of groups; a group is never divided among folds.")]
SplitColumn = Annotated[str | None, _split("--split-column", help="Column with train, valid and test: the only split.")]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option("--spreadsheet-safe", help="Write ' before text that begins with = + - @ ' or a tab: no formulas."),
]
_column = partial(typer.Option, rich_help_panel="Labels and features")
_table = partial(typer.Option, rich_help_panel="Incidence tables")
_catalogue = partial(typer.Option, rich_help_panel="Catalogue")
_limit = partial(typer.Option, rich_help_panel="Limits")
DataDir = Annotated[Path | None, _catalogue("--data-dir", help="Folder to search first for published datasets.")]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of every command that reads a dataset."""

    format: Annotated[Format | None, typer.Option("--format", help="Input format; default: from the file name.")] = None
    label: Annotated[list[str] | None, _column("--label", help="Label column or attribute; repeatable.")] = None
    features: Annotated[
        str | None, _column("--features", help="Comma-separated feature columns, of any kind; '' for none.")
    ] = None
    task: Annotated[Task | None, _column("--task", help="Kind of labels; default: inferred from them.")] = None
    node_column: Annotated[str | None, _table("--node-column", help="Node column; default: guessed.")] = None
    edge_column: Annotated[str | None, _table("--hyperedge-column", help="Hyperedge column; default: guessed.")] = None
    weight_column: Annotated[str | None, _table("--weight-column", help="Weight column of the memberships.")] = None
    id_column: Annotated[str | None, _table("--id-column", help="Id column of the node table.")] = None
    nodes: Annotated[
        Path | None, _table("--nodes", help="Node table; default: NAME.nodes.csv (.tsv, .parquet) beside the file.")
    ] = None
    hyperedges: Annotated[
        Path | None, _table("--hyperedges", help="Hyperedge table; default: NAME.hyperedges.csv beside the file.")
    ] = None
    data_dir: DataDir = None
    noise: Annotated[float | None, _catalogue("--noise", min=0.0, help="Noise of generated features; default: 1.")] = (
        None
    )
    feature_seed: Annotated[
        int | None, _catalogue("--feature-seed", min=0, max=MAX_SEED, help="Seed of generated features; default: 0.")
    ] = None
    max_bytes: Annotated[
        int | None,
        _limit("--max-bytes", min=1, help="Largest input, decompressed; default: 50 times a file, up to 16 GiB."),
    ] = None
    max_nodes: Annotated[
        int | None,
        _limit("--max-nodes", min=0, help="Largest number of nodes; default: a million, or 10 for each membership."),
    ] = None

    @property
    def limits(self) -> Limits:
        """The size limits."""
        return Limits(max_bytes=self.max_bytes, max_nodes=self.max_nodes)

    def read(
        self,
        source: str,
        *,
        keep_missing: bool = False,
        features: Sequence[str] | None = None,
        attributes: Sequence[str] = (),
        like: Mapping[str, Any] | None = None,
        labels: bool = True,
    ) -> NodeDataset:
        """Read a catalogue dataset, a file or a folder.

        Args:
            source: Its name.
            keep_missing: Encode nothing, and keep missing feature values as NaN.
            features: The feature columns if --features is not given.
            attributes: Columns that are never guessed as label or feature.
            like: The reading of a model; other data are read in the same way.
            labels: Whether labels are needed; if not, none are guessed.
        """
        if is_catalogue_name(source):
            return self._from_catalogue(source)
        self._refuse(("data_dir", "noise", "feature_seed"), f"the file '{source}', only with catalogue names")
        return read_dataset(
            Path(source),
            format=self.format,
            label=self.label or (None if labels else ()),
            features=features if self.features is None else _names_in(self.features),
            task=self.task,
            keep_missing=keep_missing,
            attributes=attributes,
            like=like,
            table=self._table_request(),
            limits=self.limits,
        )

    def is_plain_hif(self, source: str) -> bool:
        """Return whether the source is a HIF file and no option about labels or features is given."""
        if is_catalogue_name(source) or self.label or self.features is not None or self.task:
            return False
        return (self.format or detect_format(Path(source))) == "hif"

    def refuse_all_but_limits(self, where: str) -> None:
        """Raise a usage error if an option other than a limit is given."""
        self._refuse([field.name for field in fields(self) if field.name not in ("max_bytes", "max_nodes")], where)

    def _refuse(self, names: Iterable[str], where: str) -> None:
        given = [f"`{name}=`" for name in names if getattr(self, name) not in (None, [])]
        if given:
            raise UsageError(f"{', '.join(given)} cannot be used with {where}.")

    def _from_catalogue(self, name: str) -> NodeDataset:
        columns = ("node_column", "edge_column", "weight_column", "id_column", "nodes", "hyperedges")
        self._refuse(("label", "features", "task", "format", *columns), f"the catalogue dataset '{name}'")
        if catalog()[name].features == "stored":
            self._refuse(("noise", "feature_seed"), f"'{name}', which has its own features")
        return load_dataset(
            name,
            data_dir=self.data_dir,
            noise=1.0 if self.noise is None else self.noise,
            feature_seed=self.feature_seed or 0,
            limits=self.limits,
        )

    def _table_request(self) -> TableRequest | None:
        request = TableRequest(
            node=self.node_column,
            edge=self.edge_column,
            weight=self.weight_column,
            nodes=self.nodes,
            hyperedges=self.hyperedges,
            id=self.id_column,
        )
        return None if request == TableRequest() else request


def with_read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command, which takes them as one argument ``options``."""
    hints = get_type_hints(ReadOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(ReadOptions)
    ]

    @wraps(command)
    def run(**values: object) -> None:
        options = {parameter.name: values.pop(parameter.name) for parameter in shared}
        command(**values, options=ReadOptions(**options))  # type: ignore[arg-type]  # Typer has checked the types

    command_hints = get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=command_hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "options"
    ]
    parameters += shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _names_in(text: str) -> list[str]:
    """Split names at commas; return no names for an empty text."""
    return [name.strip() for name in text.split(",")] if text.strip() else []


def is_catalogue_name(source: str) -> bool:
    """Return whether a word names a catalogue dataset. An existing path is a file."""
    if Path(source).exists():
        return False
    if source in catalog():
        return True
    if "/" in source or "\\" in source or "." in source:
        raise UsageError(f"File or folder not found: '{source}'.")
    raise UsageError(f"File or folder not found: '{source}'. {unknown_name('dataset', source, catalog())}")


def check_targets(*files: Path | None, table: Path | None = None, picture: Path | None = None, overwrite: bool) -> None:
    """Check before the work that its results can be written. A table and a picture have different file endings.

    Raises:
        UsageError: if a name has the wrong ending, its folder is missing, it is a folder, or it exists and may not be
            replaced.
    """
    if table is not None:
        table_name(table)
    if picture is not None and picture.suffix.lower() != ".png":
        raise UsageError(f"A picture must end in .png. Got '{picture.name}'.")
    check_can_write(*(path for path in (*files, table, picture) if path is not None), overwrite=overwrite)
