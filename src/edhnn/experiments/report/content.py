"""The content of a report: experiments in order, with their notes and the claims about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from edhnn.errors import UsageError
from edhnn.experiments.analysis.claims import Claim, check_claims
from edhnn.experiments.analysis.grid import Grid, RecordIndex, gather
from edhnn.experiments.records import Records
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.view import View, make_view
from edhnn.experiments.spec import (
    Experiment,
    choose_experiments,
    experiment_names,
    packaged_experiment,
    packaged_text,
)
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a report.

    Attributes:
        views: The experiments that have records, in order.
        notes: The notes by the name of the experiment.
        claims: The claims about the experiments.
        absent: Headings of experiments without records.
        records: All records.
        others: Names of experiments that have records and are neither packaged nor requested.
    """

    views: Sequence[View]
    notes: Mapping[str, Sequence[str]]
    claims: Sequence[Claim]
    absent: Sequence[str]
    records: Sequence[JsonObject]
    others: Sequence[str]


def make_content(records: Records, names: Sequence[str] = ()) -> Content:
    """Collect the records of experiments.

    A requested experiment is shown if any of its rows has a record. Without names, an experiment is shown only if a
    network has a record: experiments share floors, so the floors of one would show them all.

    Args:
        records: The records.
        names: Names of experiments or groups, or TOML files; all packaged experiments if empty.

    Raises:
        UsageError: if none of the experiments has records.
    """
    everything = records.read()
    index = RecordIndex(everything)
    grids = {experiment.name: gather(experiment, index) for experiment in _choose(names)}
    shown = {name: grid for name, grid in grids.items() if (_has_records(grid) if names else grid.has_network_records)}
    recorded = sorted({str(record["experiment"]) for record in everything if "experiment" in record})
    if not shown:
        raise _no_records_error(records, names, recorded)
    of_paper = {name: grid for name, grid in grids.items() if grid.experiment.paper != "none"}
    views = [make_view(grid) for grid in shown.values()]
    return Content(
        views=views,
        notes={view.name: notes_of(view) for view in views},
        claims=check_claims({name: grid for name, grid in of_paper.items() if _is_packaged(grid.experiment)}),
        absent=[_heading(grid.experiment) for name, grid in of_paper.items() if name not in shown],
        records=everything,
        others=[] if names else [name for name in recorded if name not in grids],
    )


def _choose(names: Sequence[str]) -> list[Experiment]:
    if names:
        return choose_experiments(names)
    packaged = [packaged_experiment(name) for name in experiment_names()]
    return sorted(packaged, key=lambda one: (one.paper == "none", one.show == "lines", one.name))


def _has_records(grid: Grid) -> bool:
    """Return whether a row of the experiment has a score or a failure; added floors do not count."""
    rows = {row.label for row in grid.experiment.row}
    return any(cell.state != "not run" for (row, _), cell in grid.cells.items() if row in rows)


def _no_records_error(records: Records, names: Sequence[str], recorded: Sequence[str]) -> UsageError:
    """Return an error with the experiments that have records, and what to do."""
    if names or not recorded:
        return UsageError(
            f"No records of {', '.join(names) or 'any experiment'} in '{records.folder}'. "
            f"Run an experiment first: `edhnn run {names[0] if names else 'smoke'}`."
        )
    first = recorded[0] if recorded[0] in experiment_names() else f"{recorded[0]}.toml"
    return UsageError(
        "Without names, a report shows packaged experiments that have records of a network. The records in "
        f"'{records.folder}' are of {', '.join(recorded)}. Name the experiments to show, your own by their files: "
        f"`edhnn report {first}`."
    )


def _is_packaged(experiment: Experiment) -> bool:
    """Return whether an experiment is the packaged one, not a user's of the same name."""
    return experiment.name in experiment_names() and experiment.text == packaged_text(experiment.name)


def _heading(experiment: Experiment) -> str:
    return f"{experiment.paper}: {experiment.title} ({experiment.name})"
