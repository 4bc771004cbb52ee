"""`edhnn data`: list, info, doctor, clean, convert and fetch; and the doctor's report as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from edhnn.cli.flags import Command, translate_arguments
from edhnn.cli.options import DataDir, ReadOptions, Source, check_targets, is_catalogue_name, with_read_options
from edhnn.cli.output import (
    Json,
    console,
    facts_table,
    number,
    print_json,
    print_line,
    print_message,
    print_notes,
    print_table,
)
from edhnn.data.dataset import NodeDataset
from edhnn.data.limits import Limits, size_in_words
from edhnn.datasets.download import Patience, fetch, published_dataset, published_datasets
from edhnn.datasets.registry import cache_folder, catalog, find_published
from edhnn.doctor.checks import SEVERITIES, Finding
from edhnn.doctor.clean import Cleaning, clean_table
from edhnn.doctor.cost import Forecast, ModelSize, forecast
from edhnn.doctor.diagnose import Diagnosis, examine
from edhnn.doctor.summary import facts
from edhnn.doctor.tables import read_in_part
from edhnn.errors import DataError, UsageError, shown
from edhnn.io.files import check_can_write, check_folder, open_existing
from edhnn.io.formats import FORMATS, Format, Written, detect_format, format_by_name, write_dataset
from edhnn.io.hif.reader import read_hif
from edhnn.io.hif.writer import write_hif
from edhnn.io.legacy_pickle import read_legacy_pickle
from edhnn.io.tables.names import table_to_read
from edhnn.typing import JsonObject

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_SHOWN_CLASSES = 8
app = typer.Typer(help="List, inspect, check, convert and download datasets.", no_args_is_help=True)
_PNG = b"\x89PNG\r\n\x1a\n"


@app.command("list", cls=Command)
def list_datasets(*, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the datasets of the catalogue, their sizes, and which of them are on this machine."""
    rows = []
    for name, entry in catalog().items():
        folder = None if entry.origin == "embedded" else find_published(name, data_dir)
        rows.append(
            {
                "name": name,
                "description": entry.description,
                "origin": entry.origin,
                "num_nodes": entry.num_nodes,
                "num_hyperedges": entry.num_hyperedges,
                "num_incidences": entry.num_incidences,
                "features": entry.features,
                "available": entry.origin == "embedded" or folder is not None,
                "folder": None if folder is None else str(folder),
            }
        )
    if as_json:
        print_json(rows)
        return
    lines = []
    for row in rows:
        sizes = (number(row[key]) for key in ("num_nodes", "num_hyperedges", "num_incidences"))
        lines.append((row["name"], *sizes, "yes" if row["available"] else "fetch", row["description"]))
    counts = ("nodes", "hyperedges", "memberships")
    print_table(("name", *counts, "here", "description"), lines, right=counts)


@app.command(cls=Command)
@with_read_options
def info(source: Source, *, as_json: Json = False, options: ReadOptions) -> None:
    """Show the statistics of a dataset, among them those of the paper's Tables 1 and 5."""
    dataset = options.read(source, keep_missing=True)
    statistics = facts(dataset)
    provenance = dataset.provenance
    details = {key: value for key, value in provenance.details.items() if key != "source"}
    if as_json:
        notes = [translate_arguments(note) for note in provenance.notes]
        origin = {"source": provenance.source, "format": provenance.format, "notes": notes, **details}
        print_json({**statistics, "provenance": origin})
        return
    rows = [(key, number(value)) for key, value in statistics.items() if key != "name" and not isinstance(value, list)]
    console().print(facts_table(dataset.name, rows))
    print_notes(provenance.notes)


@app.command(cls=Command)
@with_read_options
def doctor(
    source: Source,
    *,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the dataset into this PNG; an existing one is replaced.")
    ] = None,
    hidden: Annotated[
        int | None, typer.Option("--hidden", min=1, help="Width in the forecast; default: as `edhnn train`.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", min=1, help="Iterations in the forecast; default: as `edhnn train`.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Epochs in the forecast; default: as `edhnn train`.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", min=1, help="Splits in the forecast; default: as `edhnn train`.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a finding is an error.")] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Check a dataset for problems, and forecast the time and memory of training on it."""
    if picture is not None:
        _check_picture(picture)
    dataset, diagnosis, command = _examine(source, options)
    sizes = {"hidden": hidden, "num_iterations": iterations, "epochs": epochs}
    cost = None if dataset is None else _forecast(dataset, splits, sizes)
    if picture is not None and dataset is not None:
        from edhnn.plotting.dataset import draw  # matplotlib takes half a second to import

        draw(dataset, picture)
    if as_json:
        drawn = None if picture is None or dataset is None else str(picture)
        content = diagnosis.to_json()
        for entry, finding in zip(content["findings"], diagnosis.findings, strict=True):
            entry["command"] = command(finding.clean)
        print_json({**content, "forecast": cost and cost.to_json(), "picture": drawn})
    else:
        print_report(console(), diagnosis, cost, command)
        if picture is not None and dataset is not None:
            print_message(f"picture: {picture}")
    if strict and diagnosis.count("error"):
        raise typer.Exit(1)


def _forecast(dataset: NodeDataset, splits: int | None, sizes: dict[str, int | None]) -> Forecast:
    """Forecast what `edhnn train` would do; with the defaults of `ModelSize` if the data cannot be trained on yet."""
    from edhnn.runs.forecast import forecast_run  # slow to import
    from edhnn.runs.plan import make_plan
    from edhnn.training.objective import check_trainable
    from edhnn.training.structural_features import with_features

    given: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
    if dataset.x is not None and dataset.x.layout == torch.strided:
        dataset = replace(dataset, x=dataset.x.nan_to_num())  # training imputes them
    try:
        prepared = with_features(dataset)
        check_trainable(prepared)
        plan = make_plan(prepared, "ed-hnn", splits=splits, settings=given)
    except DataError:
        return forecast(dataset, ModelSize(**given | ({} if splits is None else {"splits": splits})))
    return forecast_run(prepared, plan)


def _examine(
    source: str, options: ReadOptions
) -> tuple[NodeDataset | None, Diagnosis, Callable[[Sequence[str]], str | None]]:
    """Return the dataset or what can be read of it, what was found, and the command that fixes a finding."""
    path = None if is_catalogue_name(source) else _text_table(Path(source), options)
    if path is None:
        dataset = _read_like_training(source, options)
        return dataset, _translate_findings(examine(dataset)), _no_command
    names = [name for name in (options.node_column, options.edge_column) if name is not None]
    part = read_in_part(
        path, lambda cleaned: _read_cleaned(path, options, cleaned), options.limits, names if len(names) == 2 else ()
    )
    diagnosis = Diagnosis({}, ()) if part.dataset is None else examine(part.dataset)
    found = [finding for check in part.checks for finding in check.findings]
    if part.refusal is not None:
        read = "" if part.dataset is None else " What follows was read from a copy, cleaned as far as necessary."
        found.insert(
            0,
            Finding(severity="error", code="not-readable", message=f"No command reads the file: {part.refusal}{read}"),
        )
    findings = sorted([*found, *diagnosis.findings], key=lambda finding: SEVERITIES.index(finding.severity))
    diagnosis = _translate_findings(replace(diagnosis, findings=tuple(findings)))
    checks = {check.path: check for check in part.checks}
    check = checks.get(path)
    columns = dict(zip(("{node}", "{hyperedge}"), () if check is None else check.ids, strict=False))

    def command(wish: Sequence[str]) -> str | None:
        owner = next((c for c in part.checks if any(tuple(wish) == f.clean for f in c.findings)), check)
        if not wish or owner is None:
            return None
        words = list(wish)
        for place, name in columns.items():
            words = [word.replace(place, name) for word in words]
        return owner.command(words)

    return part.dataset, diagnosis, command


def _no_command(wish: Sequence[str]) -> str | None:  # noqa: ARG001  # the type of a command
    """Return nothing: only text tables are cleaned by a command."""
    return None


def _text_table(path: Path, options: ReadOptions) -> Path | None:
    """Return the path of a text table, and nothing for a file of another format."""
    is_table = FORMATS[options.format or detect_format(path)].options == "tables"
    return path if is_table and table_to_read(path).kind in ("csv", "tsv") else None


def _read_cleaned(path: Path, options: ReadOptions, cleaned: Mapping[Path, Path]) -> NodeDataset:
    """Read a table, or the cleaned copies of it and of its neighbours."""
    if cleaned:
        nodes, hyperedges = options.nodes or _beside(path, "nodes"), options.hyperedges or _beside(path, "hyperedges")
        options = replace(
            options,
            nodes=nodes and cleaned.get(nodes, nodes),
            hyperedges=hyperedges and cleaned.get(hyperedges, hyperedges),
        )
    return _read_like_training(str(cleaned.get(path, path)), options)


def _read_like_training(source: str, options: ReadOptions) -> NodeDataset:
    """Read a dataset with the features that training would have; as it is if its features cannot be encoded."""
    try:
        return options.read(source)
    except DataError:
        return options.read(source, keep_missing=True)


def _beside(path: Path, what: str) -> Path | None:
    table = path.with_name(table_to_read(path).neighbour(what))
    return table if table.is_file() else None


def _translate_findings(diagnosis: Diagnosis) -> Diagnosis:
    translated = (
        replace(
            finding,
            message=translate_arguments(finding.message),
            remedy=finding.remedy and translate_arguments(finding.remedy),
        )
        for finding in diagnosis.findings
    )
    return replace(diagnosis, findings=tuple(translated))


def _check_picture(target: Path) -> None:
    """Check that the picture can be written and replaces nothing but a PNG file."""
    check_targets(picture=target, overwrite=True)
    if target.is_file():
        with open_existing(target) as stream:
            if stream.read(len(_PNG)) != _PNG:
                raise UsageError(f"'{target}' exists and is not a PNG file. Choose another name.")


@app.command("clean", cls=Command)
def clean(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or TSV table.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The cleaned table to write: .csv or .tsv, or .gz.")],
    *,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of FILE, such as cp1252; OUT is always UTF-8.")
    ] = None,
    separator: Annotated[
        list[str] | None,
        typer.Option("--separator", help="Character between fields, or 'tab'; repeat it if lines differ."),
    ] = None,
    skip_lines: Annotated[
        int, typer.Option("--skip-lines", min=0, help="Leave out so many lines above the names of the columns.")
    ] = 0,
    header: Annotated[
        str | None, typer.Option("--header", help="Comma-separated names of the columns, if no line has them.")
    ] = None,
    one_basket_per_line: Annotated[
        bool, typer.Option("--one-basket-per-line", help="Each line lists the members of a hyperedge: milk,bread,eggs.")
    ] = False,
    drop_bad_lines: Annotated[
        bool, typer.Option("--drop-bad-lines", help="Leave out lines that cannot be read, and repeated headers.")
    ] = False,
    drop_extra_fields: Annotated[
        bool, typer.Option("--drop-extra-fields", help="Cut empty fields after the last column.")
    ] = False,
    drop_empty: Annotated[
        bool, typer.Option("--drop-empty", help="Leave out rows without an id, and empty lines.")
    ] = False,
    merge_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--merge-ids",
            help="Spell ids in one way that differ by zeros, decimals, case or spaces: KIND or KIND:COLUMN.",
        ),
    ] = None,
    id_column: Annotated[
        list[str] | None, typer.Option("--id-column", help="Column of ids, repeatable; default: guessed.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would change, and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing OUT.")] = False,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", min=1, help="Largest input, decompressed; default: 50 times a file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Clean a text table: exactly what the options name, with a count of every change. The doctor names the options."""
    cleaning = Cleaning(
        encoding=encoding,
        separators="".join("\t" if mark == "tab" else mark for mark in separator) if separator else None,
        skip=skip_lines,
        header=None if header is None else tuple(name.strip() for name in header.split(",")),
        one_basket_per_line=one_basket_per_line,
        drop_bad_lines=drop_bad_lines,
        drop_extra_fields=drop_extra_fields,
        drop_empty=drop_empty,
        merge_ids=tuple(merge_ids or ()),
        ids=tuple(id_column or ()),
    )
    report = clean_table(file, target, cleaning, limits=Limits(max_bytes=max_bytes), overwrite=force, dry_run=dry_run)
    if as_json:
        notes = [translate_arguments(note) for note in report.notes]
        print_json({"written": None if dry_run else str(target), **report.to_json(), "notes": notes})
        return
    rows = [(change.what, number(change.count), "; ".join(change.examples)) for change in report.changes.values()]
    if rows:
        print_table(("change", "count", "first"), rows, right=("count",))
    else:
        print_line("No change.")
    print_line(f"{'Would write' if dry_run else 'Written'}: {target} ({report.rows:,} rows)")
    print_notes(report.notes)


@app.command("convert", cls=Command)
@with_read_options
def convert_dataset(
    source: Source,
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File or folder to write; its name determines the format.")
    ],
    *,
    to: Annotated[Format | None, typer.Option("--to", help="Output format; default: from the name of OUT.")] = None,
    legacy_pickle: Annotated[
        bool, typer.Option("--legacy-pickle", help="Read a folder of HyperGCN pickles; no code in them runs.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Convert a dataset to another format. HIF to HIF loses nothing."""
    started = time.perf_counter()
    try:
        to = to or format_by_name(target, writing=True)
    except UsageError as error:  # the writer's argument `format=` is the option --to
        raise UsageError(str(error).replace("`format=", "`to=")) from error
    if legacy_pickle:
        options.refuse_all_but_limits("--legacy-pickle")
        dataset = read_legacy_pickle(Path(source), options.limits)
    elif to == "hif" and options.is_plain_hif(source):
        replace(options, format=None).refuse_all_but_limits(f"the HIF file '{source}', which is copied without changes")
        check_can_write(target, overwrite=force)
        write_hif(read_hif(Path(source), options.limits), target)
        _report_conversion(Written([target], []), (), started, as_json=as_json)
        return
    else:
        dataset = options.read(source, keep_missing=True)
    written = write_dataset(dataset, target, format=to, overwrite=force)
    _report_conversion(written, dataset.provenance.notes, started, as_json=as_json)


def _report_conversion(written: Written, notes: Iterable[str], started: float, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "written": [str(path) for path in written.paths],
                "removed": [str(path) for path in written.removed],
                "left_behind": [translate_arguments(part) for part in written.dropped],
                "notes": [translate_arguments(note) for note in notes],
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        return
    print_line(f"Written: {', '.join(map(str, written.paths))}")
    for path in written.removed:
        print_message(f"removed, because it would be read with '{written.paths[0].name}': {path}", style="yellow")
    print_notes(notes)
    for part in written.dropped:
        print_message(f"dropped, because the format cannot hold it: {part}", style="yellow")


@app.command("fetch", cls=Command)
def fetch_datasets(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Published datasets, or 'all'.")],
    *,
    data_dir: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Download existing datasets again.")] = False,
    deadline: Annotated[
        float, typer.Option("--deadline", min=1, help="Seconds after which the download of a dataset fails.")
    ] = Patience().deadline,
    as_json: Json = False,
) -> None:
    """Download published datasets, verify their checksums, and convert them."""
    specifications = [published_dataset(name) for name in (published_datasets() if names == ["all"] else names)]
    folder = data_dir or cache_folder()
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for specification in specifications:
        fetch(specification, folder / specification.name, force=force, patience=Patience(deadline=deadline))
        rows.append({"name": specification.name, "folder": str(folder / specification.name)})
        if not as_json:
            print_line(f"{specification.name}: {folder / specification.name}")
    if as_json:
        print_json(rows)


def print_report(
    console: Console,
    diagnosis: Diagnosis,
    forecast: Forecast | None,
    command: Callable[[Sequence[str]], str | None] = _no_command,
) -> None:
    """Print a diagnosis and a forecast of cost; colours appear on a terminal only.

    Args:
        console: Where to print.
        diagnosis: What was found.
        forecast: The cost of training; ``None`` if no dataset could be read.
        command: Returns the command that fixes a finding.
    """
    if diagnosis.facts:
        console.print(facts_table(str(diagnosis.facts["name"]), list(_fact_rows(diagnosis.facts))))
        console.print()
    console.print(_summary(diagnosis))
    for finding in diagnosis.findings:
        console.print(Padding(_finding_text(finding), (0, 0, 0, 2)))
        if finding.remedy:
            console.print(Padding(Text(shown(finding.remedy), style="italic"), (0, 0, 0, 6)))
        _print_command(console, command(finding.clean))
    certain = [finding.clean for finding in diagnosis.findings if finding.clean and finding.severity != "note"]
    certain = [wish for wish in certain if wish[0] != "--header"]  # names of columns must be chosen by the user
    if len(set(certain)) > 1:
        console.print(Text("All of these at once:", style="bold"))
        _print_command(console, command(_joined(certain)))
    if forecast is not None:
        console.print()
        _print_forecast(console, forecast)


def _print_command(console: Console, command: str | None) -> None:
    """Print a command on one line, however long, so that it can be copied."""
    if command is not None:
        console.print(Text(f"      {shown(command)}", style="green"), soft_wrap=True)


def _joined(parts: Iterable[Sequence[str]]) -> list[str]:
    """Return the options of several findings, each once; if an option takes one value, the last one counts."""
    repeated: dict[tuple[str, ...], None] = {}
    single: dict[str, tuple[str, ...]] = {}
    for wish in parts:
        words = list(wish)
        while words:
            flag = words.pop(0)
            value = (flag, words.pop(0)) if words and not words[0].startswith("--") else (flag,)
            if flag in ("--separator", "--merge-ids", "--id-column"):
                repeated[value] = None
            else:
                single[flag] = value
    return [word for value in (*single.values(), *repeated) for word in value]


def _fact_rows(facts: JsonObject) -> Iterator[tuple[str, str]]:
    yield "nodes", number(facts["num_nodes"])
    yield "hyperedges", number(facts["num_hyperedges"])
    yield "memberships", number(facts["num_incidences"])
    yield "features", number(facts["num_features"])
    yield "task", number(facts["task"])
    if facts["task"] is not None:
        yield "labelled nodes", number(facts["labelled_nodes"])
    if facts["class_counts"] is not None:
        yield "classes", number(facts["num_classes"])
        yield "nodes per class", _class_balance(facts["class_counts"])
    yield "degree, mean and largest", f"{number(facts['mean_degree'])}, {number(facts['max_degree'])}"
    yield (
        "hyperedge size, mean and largest",
        f"{number(facts['mean_hyperedge_size'])}, {number(facts['max_hyperedge_size'])}",
    )
    yield "components, largest", f"{number(facts['components'])}, {number(facts['largest_component'])} nodes"
    if facts["task"] == "classification":
        yield "clique homophily (the paper's)", number(facts["clique_homophily"])
        yield "  without the node itself", number(facts["clique_homophily_without_self"])
        yield "  and weighted by shared hyperedges", number(facts["clique_homophily_weighted"])
        yield "  over pairs", number(facts["clique_edge_homophily"])


def _class_balance(counts: list[int]) -> str:
    shown = ", ".join(f"{count:,}" for count in counts[:_SHOWN_CLASSES])
    return f"{shown}, ..." if len(counts) > _SHOWN_CLASSES else shown


def _summary(diagnosis: Diagnosis) -> Text:
    if not diagnosis.findings:
        return Text("Findings: none", style="bold green")
    parts = [
        (f"{count} {severity}{'' if count == 1 else 's'}", STYLES[severity])
        for severity in SEVERITIES
        if (count := diagnosis.count(severity))
    ]
    return Text("Findings: ", style="bold") + Text(", ").join(Text(part, style=style) for part, style in parts)


def _finding_text(finding: Finding) -> Text:
    text = Text()
    text.append(finding.severity, style=STYLES[finding.severity]).append(f" {finding.code}: ", style="bold")
    text.append(shown(finding.message))
    if finding.examples:
        more = ", ..." if finding.count > len(finding.examples) else ""
        text.append(shown(f" First: {', '.join(repr(name) for name in finding.examples)}{more}"), style="dim")
    return text


def _print_forecast(console: Console, forecast: Forecast) -> None:
    size = forecast.size
    amount = f"{size.num_iterations} iterations, at most {size.epochs} epochs, {size.splits} splits"
    part = "the whole dataset" if forecast.timed_share > 0.99 else f"{forecast.timed_share:.1%} of the dataset"
    rows = [
        ("parameters", number(forecast.parameters)),
        ("memory of a step", size_in_words(forecast.peak_bytes)),
        ("memory of the whole run", size_in_words(forecast.run_bytes)),
        ("a training step", duration_in_words(forecast.seconds_per_step)),
        ("the whole run", f"{duration_in_words(forecast.seconds_per_run)}, {forecast.processes} at a time"),
        ("timed on this machine", f"steps on {part}, {forecast.flops_per_second / 1e9:.0f} GFLOP/s"),
    ]
    console.print(Text(f"Training ED-HNN (width {size.hidden}, {amount})", style="bold"))
    console.print(facts_table("", rows))
    if forecast.machine_bytes is None:
        return
    memory = size_in_words(forecast.machine_bytes)
    if forecast.fits:
        console.print(Text(f"It fits in this machine's memory, {memory}.", style="green"))
    else:
        remark = f"It does not fit in this machine's memory, {memory}. Choose a smaller --hidden."
        console.print(Text(remark, style="bold red"))


def duration_in_words(seconds: float) -> str:
    """Format a duration: ``12 ms``, ``3.4 s``, ``5.0 min``, ``2.1 h``, ``3.0 days``."""
    for bound, divisor, unit in ((1, 1e-3, "ms"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < bound:
            value = seconds / divisor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
