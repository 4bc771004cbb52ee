"""`edhnn data`: list, info, doctor, convert, fetch; and the doctor's report for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from edhnn.cli.options import DataDir, Json, ReadOptions, Source, check_targets, with_read_options
from edhnn.cli.output import console, facts_table, number, print_json, say, say_notes
from edhnn.data.limits import size_in_words
from edhnn.datasets.download import fetch, published_dataset, published_datasets
from edhnn.datasets.registry import cache_folder, catalog, find_published
from edhnn.doctor.checks import SEVERITIES, Finding
from edhnn.doctor.cost import Forecast, ModelSize, forecast
from edhnn.doctor.diagnose import Diagnosis, examine
from edhnn.doctor.summary import facts
from edhnn.errors import UsageError
from edhnn.io.files import check_can_write, check_folder, open_existing
from edhnn.io.formats import Format, Written, format_by_name, write_dataset
from edhnn.io.hif.reader import read_hif
from edhnn.io.hif.writer import write_hif
from edhnn.io.legacy_pickle import read_legacy_pickle
from edhnn.typing import JsonObject

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_SHOWN_CLASSES = 8
app = typer.Typer(help="Look at hypergraphs, mend and convert them.", no_args_is_help=True)
_PNG = b"\x89PNG\r\n\x1a\n"


@app.command("list")
def list_datasets(*, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show the catalogue: names, sizes, and what is on this machine."""
    rows = []
    for name, entry in catalog().items():
        found = None if entry.origin == "embedded" else find_published(name, data_dir)
        rows.append(
            {
                "name": name,
                "description": entry.description,
                "origin": entry.origin,
                "num_nodes": entry.num_nodes,
                "num_hyperedges": entry.num_hyperedges,
                "num_incidences": entry.num_incidences,
                "features": entry.features,
                "available": entry.origin == "embedded" or found is not None,
                "folder": None if found is None else str(found),
            }
        )
    if as_json:
        print_json(rows)
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "nodes", "hyperedges", "memberships", "here", "what"):
        table.add_column(heading, justify="right" if heading in ("nodes", "hyperedges", "memberships") else "left")
    for row in rows:
        sizes = (number(row[key]) for key in ("num_nodes", "num_hyperedges", "num_incidences"))
        table.add_row(str(row["name"]), *sizes, "yes" if row["available"] else "fetch", str(row["description"]))
    console().print(table)


@app.command()
@with_read_options
def info(source: Source, *, as_json: Json = False, options: ReadOptions) -> None:
    """Show a dataset's statistics (the paper's Tables 1 and 5, and more)."""
    dataset = options.read(source, keep_missing=True)
    found = facts(dataset)
    provenance = dataset.provenance
    details = {key: value for key, value in provenance.details.items() if key != "source"}
    if as_json:
        origin = {"source": provenance.source, "format": provenance.format, "notes": list(provenance.notes), **details}
        print_json({**found, "provenance": origin})
        return
    rows = [(key, number(value)) for key, value in found.items() if key != "name" and not isinstance(value, list)]
    console().print(facts_table(dataset.name, rows))
    say_notes(provenance.notes)


@app.command()
@with_read_options
def doctor(
    source: Source,
    *,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the dataset into this PNG; replaces one.")
    ] = None,
    hidden: Annotated[
        int, typer.Option("--hidden", min=1, help="Width of the model to forecast.")
    ] = ModelSize().hidden,
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, help="Iterations of the model to forecast.")
    ] = ModelSize().num_iterations,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Epochs to forecast.")] = ModelSize().epochs,
    splits: Annotated[int, typer.Option("--splits", min=1, help="Splits to forecast.")] = ModelSize().splits,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave with 1 if there is an error among the findings.")
    ] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Say what is in a dataset, what is wrong with it, and what training on it will cost."""
    if picture is not None:
        _need_picture(picture)
    dataset = options.read(source, keep_missing=True)
    diagnosis = examine(dataset)
    size = replace(ModelSize(), hidden=hidden, num_iterations=iterations, epochs=epochs, splits=splits)
    cost = forecast(dataset, size)
    if picture is not None:
        from edhnn.plotting.dataset import draw  # matplotlib takes half a second to import

        draw(dataset, picture)
    if as_json:
        drawn = None if picture is None else str(picture)
        print_json({**diagnosis.to_json(), "forecast": cost.to_json(), "picture": drawn})
    else:
        print_report(console(), diagnosis, cost)
        if picture is not None:
            say(f"picture: {picture}")
    if strict and diagnosis.count("error"):
        raise typer.Exit(1)


def _need_picture(target: Path) -> None:
    """A usage error if the picture could not be written, or would replace something that is no picture."""
    check_targets(picture=target, overwrite=True)
    if target.is_file():
        with open_existing(target) as stream:
            if stream.read(len(_PNG)) != _PNG:
                raise UsageError(f"'{target}' is not a PNG, so it is not replaced by one. Choose another name.")


@app.command("convert")
@with_read_options
def convert_dataset(
    source: Source,
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file or folder to write; its name says the format.")
    ],
    *,
    to: Annotated[
        Format | None, typer.Option("--to", help="The format to write, where the name does not say it.")
    ] = None,
    legacy_pickle: Annotated[
        bool, typer.Option("--legacy-pickle", help="The source is a folder of HyperGCN pickles; read by an allow-list.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Read a dataset in one format and write it in another; HIF to HIF without any loss."""
    begun = time.perf_counter()
    if legacy_pickle:
        options.refuse_all_but_limits("--legacy-pickle")
        dataset = read_legacy_pickle(Path(source), options.limits)
    elif options.is_plain_hif(source) and (to or format_by_name(target, writing=True)) == "hif":
        replace(options, format=None).refuse_all_but_limits(f"the HIF file '{source}', which is copied as it is")
        check_can_write(target, overwrite=force)
        write_hif(read_hif(Path(source), options.limits), target)
        _report_conversion(Written([target], []), (), begun, as_json=as_json)
        return
    else:
        dataset = options.read(source, keep_missing=True)
    written = write_dataset(dataset, target, format=to, overwrite=force)
    _report_conversion(written, dataset.provenance.notes, begun, as_json=as_json)


def _report_conversion(done: Written, notes: Iterable[str], begun: float, *, as_json: bool) -> None:
    paths, removed = ([str(path) for path in found] for found in (done.paths, done.removed))
    if as_json:
        said = {"written": paths, "removed": removed, "left_behind": done.dropped, "notes": list(notes)}
        print_json({**said, "seconds": round(time.perf_counter() - begun, 3)})
        return
    console().print(f"Written: {', '.join(paths)}", soft_wrap=True, markup=False)
    for path in removed:
        say(f"removed, as it would be read along with '{done.paths[0].name}': {path}", style="yellow")
    say_notes(notes)
    for lost in done.dropped:
        say(f"left behind, as the format cannot hold it: {lost}", style="yellow")


@app.command("fetch")
def fetch_datasets(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Published datasets, or 'all'.")],
    *,
    data_dir: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is there already.")] = False,
    as_json: Json = False,
) -> None:
    """Download published datasets, check their content against recorded hashes, and convert them."""
    wanted = list(published_datasets()) if names == ["all"] else names
    specifications = [published_dataset(name) for name in wanted]
    folder = data_dir or cache_folder()
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for specification in specifications:
        fetch(specification, folder / specification.name, force=force)
        rows.append({"name": specification.name, "folder": str(folder / specification.name)})
        if not as_json:
            console().print(f"{specification.name}: {folder / specification.name}", soft_wrap=True, markup=False)
    if as_json:
        print_json(rows)


def print_report(console: Console, diagnosis: Diagnosis, forecast: Forecast) -> None:
    """Print the whole report.

    Args:
        console: Where to; colours appear on a terminal only.
        diagnosis: What `examine` found.
        forecast: What `forecast` expects.
    """
    console.print(facts_table(str(diagnosis.facts["name"]), list(_fact_rows(diagnosis.facts))))
    console.print()
    console.print(_summary(diagnosis))
    for finding in diagnosis.findings:
        console.print(Padding(_finding_text(finding), (0, 0, 0, 2)))
        if finding.remedy:
            console.print(Padding(Text(finding.remedy, style="italic"), (0, 0, 0, 6)))
    console.print()
    console.print(_forecast_title(forecast))
    console.print(_forecast_table(forecast))
    for line in _forecast_remarks(forecast):
        console.print(line)


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
    words = Text("Findings: ", style="bold")
    for place, (part, style) in enumerate(parts):
        words.append(", " if place else "").append(part, style=style)
    return words


def _finding_text(finding: Finding) -> Text:
    words = Text()
    words.append(finding.severity, style=STYLES[finding.severity]).append(f" {finding.code}: ", style="bold")
    words.append(finding.message)
    if finding.examples:
        more = ", ..." if finding.count > len(finding.examples) else ""
        words.append(f" First: {', '.join(repr(name) for name in finding.examples)}{more}", style="dim")
    return words


def _forecast_title(forecast: Forecast) -> Text:
    size = forecast.size
    words = f"{size.num_iterations} iterations, {size.epochs} epochs, {size.splits} splits"
    return Text(f"Training ED-HNN (width {size.hidden}, {words})", style="bold")


def _forecast_table(forecast: Forecast) -> Table:
    part = "the whole dataset" if forecast.timed_share > 0.99 else f"{forecast.timed_share:.1%} of the dataset"
    return facts_table(
        "",
        [
            ("parameters", number(forecast.parameters)),
            ("peak memory", size_in_words(forecast.peak_bytes)),
            ("a training step", duration_in_words(forecast.seconds_per_step)),
            ("the whole run", duration_in_words(forecast.seconds_per_run)),
            ("timed on this machine", f"steps on {part}, {forecast.flops_per_second / 1e9:.0f} GFLOP/s"),
        ],
    )


def _forecast_remarks(forecast: Forecast) -> Iterator[Text]:
    if forecast.machine_bytes is None:
        return
    memory = size_in_words(forecast.machine_bytes)
    if forecast.fits:
        yield Text(f"It fits in this machine's memory, {memory}.", style="green")
    else:
        yield Text(f"It does not fit in this machine's memory, {memory}: take a narrower model.", style="bold red")


def duration_in_words(seconds: float) -> str:
    """A duration for people: ``12 ms``, ``3.4 s``, ``5.0 min``, ``2.1 h``, ``3.0 days``."""
    for bound, divisor, unit in ((1, 1e-3, "ms"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < bound:
            value = seconds / divisor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
