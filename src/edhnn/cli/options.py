"""Options that several commands share, the dataset they ask for, and checks of the files a command will write."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Literal, final, get_type_hints

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

_TABLES, _COLUMNS, _CATALOGUE, _LIMITS = "Incidence tables", "Labels and features", "Catalogue", "Limits"
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text for people.")]
Source = Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A catalogue name, a file or a folder.")]
DeviceName = Annotated[
    str, typer.Option("--device", help="Where to run the model: cpu, cuda, cuda:1, mps, or auto for the best there is.")
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="The format, where the name does not say it.")]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", help="Label column or attribute; repeat it for several.", rich_help_panel=_COLUMNS),
]
Features = Annotated[
    str | None,
    typer.Option("--features", help="Feature columns, separated by commas; '' for none.", rich_help_panel=_COLUMNS),
]
TaskOption = Annotated[
    Task | None, typer.Option("--task", help="What the labels are; inferred if not given.", rich_help_panel=_COLUMNS)
]
NodeColumn = Annotated[
    str | None, typer.Option("--node-column", help="Node column; guessed from its name.", rich_help_panel=_TABLES)
]
EdgeColumn = Annotated[
    str | None,
    typer.Option("--hyperedge-column", help="Hyperedge column; guessed from its name.", rich_help_panel=_TABLES),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight-column", help="Weight column, if there is one.", rich_help_panel=_TABLES)
]
IdColumn = Annotated[
    str | None, typer.Option("--id-column", help="Id column of the node table.", rich_help_panel=_TABLES)
]
NodeTable = Annotated[
    Path | None,
    typer.Option(
        "--nodes", help="Node table; by default NAME.nodes.csv (.tsv, .parquet) beside it.", rich_help_panel=_TABLES
    ),
]
EdgeTable = Annotated[
    Path | None,
    typer.Option("--hyperedges", help="Hyperedge table; by default NAME.hyperedges.csv.", rich_help_panel=_TABLES),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where published datasets are looked for first.", rich_help_panel=_CATALOGUE),
]
Noise = Annotated[
    float | None,
    typer.Option("--noise", min=0.0, help="Noise of features drawn from labels [1.0].", rich_help_panel=_CATALOGUE),
]
FeatureSeed = Annotated[
    int | None,
    typer.Option("--feature-seed", min=0, max=MAX_SEED, help="Seed of that draw [0].", rich_help_panel=_CATALOGUE),
]
MaxBytes = Annotated[
    int, typer.Option("--max-bytes", min=1, help="Largest input, decompressed.", rich_help_panel=_LIMITS)
]
MaxNodes = Annotated[int, typer.Option("--max-nodes", min=0, help="Most nodes in a file.", rich_help_panel=_LIMITS)]
Kind = Literal["catalogue", "file"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Everything the shared options said."""

    format: FormatOption = None
    label: Label = None
    features: Features = None
    task: TaskOption = None
    node_column: NodeColumn = None
    edge_column: EdgeColumn = None
    weight_column: WeightColumn = None
    id_column: IdColumn = None
    nodes: NodeTable = None
    hyperedges: EdgeTable = None
    data_dir: DataDir = None
    noise: Noise = None
    feature_seed: FeatureSeed = None
    max_bytes: MaxBytes = Limits().max_bytes
    max_nodes: MaxNodes = Limits().max_nodes

    @property
    def limits(self) -> Limits:
        """The size limits."""
        return Limits(max_bytes=self.max_bytes, max_nodes=self.max_nodes)

    def read(self, source: str, *, keep_missing: bool = False, features: Sequence[str] | None = None) -> NodeDataset:
        """Read what the user named: a catalogue name, or a file or folder; ``features`` where --features is not."""
        if kind_of(source) == "catalogue":
            return self._from_catalogue(source)
        unused = {"--data-dir": self.data_dir, "--noise": self.noise, "--feature-seed": self.feature_seed}
        _refuse(unused, f"the file '{source}'; they are for catalogue names")
        return read_dataset(
            Path(source),
            format=self.format,
            label=self.label or None,
            features=features if self.features is None else _names_in(self.features),
            task=self.task,
            keep_missing=keep_missing,
            table=self._table(),
            limits=self.limits,
        )

    def is_plain_hif(self, source: str) -> bool:
        """Whether the source is a HIF file and nothing was said about labels or features."""
        if kind_of(source) == "catalogue" or self.label or self.features is not None or self.task:
            return False
        return (self.format or detect_format(Path(source))) == "hif"

    def refuse_all_but_limits(self, where: str) -> None:
        """Raise a usage error if an option says how to read something that this is not."""
        names = [field.name for field in fields(self) if field.name not in ("max_bytes", "max_nodes")]
        flags = {name: "--" + name.replace("edge_", "hyperedge_").replace("_", "-") for name in names}
        _refuse({flags[name]: getattr(self, name) for name in names}, where)

    def _from_catalogue(self, name: str) -> NodeDataset:
        unused = {"--label": self.label, "--features": self.features, "--task": self.task, "--format": self.format}
        _refuse({**unused, "column and table options": self._table()}, f"the catalogue dataset '{name}'")
        if catalog()[name].features == "stored":
            _refuse(
                {"--noise": self.noise, "--feature-seed": self.feature_seed}, f"'{name}', which has features of its own"
            )
        return load_dataset(
            name,
            data_dir=self.data_dir,
            noise=1.0 if self.noise is None else self.noise,
            feature_seed=self.feature_seed or 0,
            limits=self.limits,
        )

    def _table(self) -> TableRequest | None:
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
    """Give a command the shared options: it takes them as one argument ``options``, the user sees each of them."""
    hints = get_type_hints(ReadOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(ReadOptions)
    ]

    @wraps(command)
    def run(**given: object) -> None:
        options = {parameter.name: given.pop(parameter.name) for parameter in shared}
        command(**given, options=ReadOptions(**options))  # type: ignore[arg-type]  # typer has checked each

    own_hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "options"
    ]
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return run


def _names_in(text: str) -> list[str]:
    """Names separated by commas; none in an empty text."""
    return [name.strip() for name in text.split(",")] if text.strip() else []


def kind_of(source: str) -> Kind:
    """Whether a word names a catalogue dataset or a file; a path that exists is a file."""
    if Path(source).exists():
        return "file"
    if source in catalog():
        return "catalogue"
    if "/" in source or "\\" in source or "." in source:
        raise UsageError(f"There is no file or folder '{source}'.")
    raise UsageError(f"There is no file or folder '{source}'. {unknown_name('dataset', source, catalog())}")


def _refuse(options: Mapping[str, object], where: str) -> None:
    given = [name for name, value in options.items() if value is not None and value != []]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be used with {where}.")


def check_targets(*files: Path | None, table: Path | None = None, picture: Path | None = None, overwrite: bool) -> None:
    """Refuse targets that could not be written at the end. Their endings differ, so neither replaces the other.

    Raises:
        UsageError: if a name ends otherwise than it must, its folder is missing, it is a folder, or something is there
            that may not be replaced.
    """
    if table is not None:
        table_name(table)
    if picture is not None and picture.suffix.lower() != ".png":
        raise UsageError(f"A picture must end in .png. Got '{picture.name}'.")
    check_can_write(*(path for path in (*files, table, picture) if path is not None), overwrite=overwrite)
