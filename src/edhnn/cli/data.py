"""`edhnn data`: list, info, doctor, convert, fetch."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.doctor_report import print_report
from edhnn.cli.options import DataDir, Json, ReadOptions, Source, with_read_options
from edhnn.cli.output import console, facts_table, number, print_json, say, say_notes
from edhnn.cli.targets import check_targets
from edhnn.data.catalog import cache_folder, catalog, find_published
from edhnn.data.doctor.examine import examine
from edhnn.data.doctor.facts import facts
from edhnn.data.doctor.forecast import forecast
from edhnn.data.doctor.training_cost import ModelSize
from edhnn.data.download.fetch import fetch
from edhnn.data.download.sources import published_dataset, published_datasets
from edhnn.data.files import open_existing
from edhnn.data.readers import Format, format_by_name
from edhnn.data.readers.hif import read_hif
from edhnn.data.readers.legacy_pickle import read_legacy_pickle
from edhnn.data.writers import Written, refuse_existing, write_dataset
from edhnn.data.writers.hif import write_hif
from edhnn.errors import UsageError

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
        from edhnn.data.doctor.picture import draw  # matplotlib takes half a second to import

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
        _refuse_all_but_limits(options, "--legacy-pickle")
        dataset = read_legacy_pickle(Path(source), options.limits)
    elif options.is_plain_hif(source) and (to or format_by_name(target, writing=True)) == "hif":
        _refuse_all_but_limits(replace(options, format=None), f"the HIF file '{source}', which is copied as it is")
        refuse_existing([target], overwrite=force)
        write_hif(read_hif(Path(source), options.limits), target)
        _report_conversion(Written([target], []), (), begun, as_json=as_json)
        return
    else:
        dataset = options.read(source, keep_missing=True)
    written = write_dataset(dataset, target, format=to, overwrite=force)
    _report_conversion(written, dataset.provenance.notes, begun, as_json=as_json)


def _refuse_all_but_limits(options: ReadOptions, where: str) -> None:
    """A usage error if an option says how to read something that this is not."""
    names = (field.name for field in fields(options) if field.name not in ("max_bytes", "max_nodes"))
    given = [name for name in names if getattr(options, name) not in (None, [])]
    if given:
        shown = ", ".join("--" + name.replace("edge_", "hyperedge_").replace("_", "-") for name in given)
        raise UsageError(f"{shown} cannot be used with {where}.")


def _report_conversion(done: Written, notes: Iterable[str], begun: float, *, as_json: bool) -> None:
    paths, removed = ([str(path) for path in found] for found in (done.paths, done.removed))
    if as_json:
        said = {"written": paths, "removed": removed, "left_behind": done.left_behind, "notes": list(notes)}
        print_json({**said, "seconds": round(time.perf_counter() - begun, 3)})
        return
    console().print(f"Written: {', '.join(paths)}", soft_wrap=True, markup=False)
    for path in removed:
        say(f"removed, as it would be read along with '{done.paths[0].name}': {path}", style="yellow")
    say_notes(notes)
    for lost in done.left_behind:
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"'{folder}' must be a folder, or not exist yet. It is a file, or lies in one.") from error
    rows = []
    for specification in specifications:
        fetch(specification, folder / specification.name, force=force)
        rows.append({"name": specification.name, "folder": str(folder / specification.name)})
        if not as_json:
            console().print(f"{specification.name}: {folder / specification.name}", soft_wrap=True, markup=False)
    if as_json:
        print_json(rows)
