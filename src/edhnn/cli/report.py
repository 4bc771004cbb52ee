"""`edhnn report`: the paper's tables and figures from the records, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.options import Json
from edhnn.cli.output import console, facts_table, print_json, say
from edhnn.cli.run import Results
from edhnn.experiments.records import Records
from edhnn.experiments.report.choose import make_content
from edhnn.experiments.report.data import report_data
from edhnn.experiments.report.plots import plotly_available


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
    from edhnn.experiments.report.write import write_report  # loads matplotlib

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
