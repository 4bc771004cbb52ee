"""`edhnn run` and `edhnn report`: the paper's tables and figures, cell by cell, and on one page from the records."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.options import Json
from edhnn.cli.output import console, facts_table, print_json, say
from edhnn.errors import StoppedError, UsageError
from edhnn.experiments.jobs import Job, jobs_of
from edhnn.experiments.records import Records
from edhnn.experiments.runner import RunCounts, run_jobs
from edhnn.experiments.spec import Experiment, choose_experiments, experiment_names, packaged_experiment
from edhnn.parallel import catch_signals

Results = Annotated[Path, typer.Option("--results", help="The folder of records.")]


def run_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments, groups, or TOML files; none: a list.")
    ] = None,
    *,
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset; repeat it.")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="Only this model; repeat it.")] = None,
    splits: Annotated[int | None, typer.Option("--splits", min=1, help="Splits in place of the experiment's.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Epochs in place of the experiment's.")] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, help="Minutes after which to stop; run again to go on.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; one per core if not given.")] = None,
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Run experiments: every cell without a record. Interrupted, run it again; `edhnn report` shows the records."""
    records = Records(results)
    if not names:
        if dataset or model or splits or epochs or budget is not None or jobs:
            raise UsageError("An experiment must be named. Got options only; `edhnn run` lists the names.")
        _list([packaged_experiment(name) for name in experiment_names()], records, as_json)
        return
    chosen = choose_experiments(names)
    todo = jobs_of(chosen, datasets=dataset or (), models=model or (), splits=splits, epochs=epochs)
    if not as_json:
        say(f"{', '.join(one.name for one in chosen)}: {len(todo)} jobs, of which {_done(todo, records)} have a record")
    try:
        with catch_signals() as stop:
            outcome = run_jobs(todo, records, workers=jobs, budget=budget, should_stop=stop)
    except StoppedError as stopped:
        say(f"{stopped} Go on with the same command.")
        raise typer.Exit(StoppedError.exit_code) from stopped
    _print(outcome, results, as_json)


def _done(jobs: list[Job], records: Records) -> int:
    known = records.keys()
    return sum(job.key in known for job in jobs)


def _print(outcome: RunCounts, results: Path, as_json: bool) -> None:
    if as_json:
        print_json(asdict(outcome))
        return
    say(f"{outcome.done} done in {outcome.seconds:.0f} s, {outcome.before} before, {outcome.left} left")
    if outcome.failed:
        say(f"{outcome.failed} could not be done; their records in '{results}' say why")


def _list(experiments: list[Experiment], records: Records, as_json: bool) -> None:
    rows = []
    for experiment in experiments:
        todo = jobs_of([experiment])
        rows.append(
            {
                "name": experiment.name,
                "paper": experiment.paper,
                "title": experiment.title,
                "jobs": len(todo),
                "done": _done(todo, records),
            }
        )
    if as_json:
        print_json(rows)
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "paper", "jobs", "done", "what"):
        table.add_column(heading, justify="right" if heading in ("jobs", "done") else "left")
    for row in rows:
        table.add_row(*(str(row[key]) for key in ("name", "paper", "jobs", "done", "title")))
    console().print(table)


def report_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, groups, or TOML files; none: all that have records."),
    ] = None,
    *,
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option("--out", help="The folder of the report.")] = Path("report"),
    as_json: Json = False,
) -> None:
    """Write a page with the tables and figures beside the paper's, from the records of `edhnn run` alone."""
    # here, because they load matplotlib
    from edhnn.experiments.report.content import make_content
    from edhnn.experiments.report.figures import plotly_available
    from edhnn.experiments.report.render import report_data, write_report

    content = make_content(Records(results), names or [])
    written = write_report(content, out)
    if content.others:
        say(
            f"note: there are records of {', '.join(content.others)} too; to show them, give the file of the experiment"
        )
    if as_json:
        print_json({**report_data(content), "written": [str(path) for path in written]})
        return
    if content.claims:
        rows: list[tuple[str, str]] = [
            (f"{claim.experiment}: {claim.statement}", claim.verdict) for claim in content.claims
        ]
        console().print(facts_table("claims", rows))
    if not plotly_available():
        say("Figures are still pictures: for interactive ones, pip install 'edhnn[report]'.")
    say(f"report: {written[0]}")
