"""`edhnn run` and `edhnn report`: compute the paper's tables and figures, and compare them with the paper's."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.output import Json, console, facts_table, print_json, print_message, print_table
from edhnn.errors import StoppedError, UsageError
from edhnn.experiments.jobs import Job, jobs_of
from edhnn.experiments.records import Records
from edhnn.experiments.runner import RunCounts, run_jobs
from edhnn.experiments.spec import Experiment, choose_experiments, experiment_names, packaged_experiment
from edhnn.parallel import catch_signals

Results = Annotated[Path, typer.Option("--results", help="Folder of the records.")]


def run_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, groups or TOML files; default: list them."),
    ] = None,
    *,
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="Only this model; repeatable.")] = None,
    splits: Annotated[int | None, typer.Option("--splits", min=1, help="Splits instead of the experiment's.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Epochs instead of the experiment's.")] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, help="Minutes after which to stop; the same command resumes.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; default: one per core.")] = None,
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Run the cells of experiments that have no record. The same command resumes an interrupted run."""
    records = Records(results)
    if not names:
        if dataset or model or splits or epochs or budget is not None or jobs:
            raise UsageError("Options need the name of an experiment. `edhnn run` lists the names.")
        _list([packaged_experiment(name) for name in experiment_names()], records, as_json)
        return
    chosen = choose_experiments(names)
    todo = jobs_of(chosen, datasets=dataset or (), models=model or (), splits=splits, epochs=epochs)
    if not as_json:
        print_message(
            f"{', '.join(one.name for one in chosen)}: {len(todo)} jobs, of which {_done(todo, records)} have a record"
        )
    try:
        with catch_signals() as stop:
            outcome = run_jobs(todo, records, workers=jobs, budget=budget, should_stop=stop)
    except StoppedError as stopped:
        print_message(f"{stopped} Resume with the same command.")
        raise typer.Exit(StoppedError.exit_code) from stopped
    _print(outcome, results, as_json)


def _done(jobs: list[Job], records: Records) -> int:
    known = records.keys()
    return sum(job.key in known for job in jobs)


def _print(outcome: RunCounts, results: Path, as_json: bool) -> None:
    if as_json:
        print_json(asdict(outcome))
        return
    print_message(f"{outcome.done} done in {outcome.seconds:.0f} s, {outcome.before} before, {outcome.left} left")
    if outcome.failed:
        print_message(f"{outcome.failed} failed; their records in '{results}' contain the reason")


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
    headings = ("name", "paper", "jobs", "done", "title")
    print_table(headings, ([row[heading] for heading in headings] for row in rows), right=("jobs", "done"))


def report_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, groups or TOML files; default: all with records."),
    ] = None,
    *,
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("report"),
    as_json: Json = False,
) -> None:
    """Write a page that compares the records of `edhnn run` with the paper's tables and figures."""
    # these modules load matplotlib, which takes half a second
    from edhnn.experiments.report.content import make_content
    from edhnn.experiments.report.figures import plotly_available
    from edhnn.experiments.report.render import report_data, write_report

    content = make_content(Records(results), names or [])
    written = write_report(content, out)
    if content.others:
        print_message(
            f"note: records of {', '.join(content.others)} are not shown; to show them, name the experiment's file"
        )
    if as_json:
        print_json({**report_data(content), "written": [str(path) for path in written]})
        return
    if content.claims:
        rows = [(f"{claim.experiment}: {claim.statement}", str(claim.verdict)) for claim in content.claims]
        console().print(facts_table("claims", rows))
    if not plotly_available():
        print_message("The figures are static. For interactive ones: pip install 'edhnn[report]'.")
    print_message(f"report: {written[0]}")
