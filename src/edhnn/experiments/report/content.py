"""Which experiments a report shows, in which order, with their notes and the claims about them."""

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
    """What a report is made from.

    Attributes:
        views: The experiments that have records, in order.
        notes: The notes under each, by its name.
        claims: The claims about the experiments.
        absent: Headings of experiments without records.
        records: All records.
        others: Experiments that records were made for and that were neither named nor come with the package.
    """

    views: Sequence[View]
    notes: Mapping[str, Sequence[str]]
    claims: Sequence[Claim]
    absent: Sequence[str]
    records: Sequence[JsonObject]
    others: Sequence[str]


def make_content(records: Records, names: Sequence[str] = ()) -> Content:
    """Gather the records of experiments.

    An experiment that is named is shown with whatever there is of it. Without names, those are shown that have records
    of a network: floors are shared among experiments, and those of one would bring in all.

    Args:
        records: The records.
        names: Experiments, groups or TOML files; all that come with the package if empty.

    Returns:
        The content.

    Raises:
        UsageError: if there are no records for any of the experiments.
    """
    everything = records.read()
    index = RecordIndex(everything)
    grids = {experiment.name: gather(experiment, index) for experiment in _chosen(names)}
    shown = {name: grid for name, grid in grids.items() if (_has_records(grid) if names else grid.begun)}
    made_for = sorted({str(record["experiment"]) for record in everything if "experiment" in record})
    if not shown:
        raise _nothing_to_show(records, names, made_for)
    real = {name: grid for name, grid in grids.items() if grid.experiment.paper != "none"}
    views = [make_view(grid) for grid in shown.values()]
    return Content(
        views=views,
        notes={view.name: notes_of(view) for view in views},
        claims=check_claims({name: grid for name, grid in real.items() if _is_packaged(grid.experiment)}),
        absent=[_heading(grid) for name, grid in real.items() if name not in shown],
        records=everything,
        others=[] if names else [name for name in made_for if name not in grids],
    )


def _chosen(names: Sequence[str]) -> list[Experiment]:
    if names:
        return choose_experiments(names)
    packaged = [packaged_experiment(name) for name in experiment_names()]
    return sorted(packaged, key=lambda one: (one.paper == "none", one.show == "lines", one.name))


def _has_records(grid: Grid) -> bool:
    """Return whether a row of its own has a number or a failure; rows that are lent to it do not count."""
    own = {row.label for row in grid.experiment.row}
    return any(cell.state != "not run" for (row, _), cell in grid.cells.items() if row in own)


def _nothing_to_show(records: Records, names: Sequence[str], made_for: Sequence[str]) -> UsageError:
    """Make the error that says which records there are, and what to do."""
    if names or not made_for:
        return UsageError(
            f"A report needs records of {', '.join(names) if names else 'an experiment'}. There are none in "
            f"'{records.folder}'. Make some with: edhnn run {names[0] if names else 'smoke'} --results {records.folder}"
        )
    first = made_for[0] if made_for[0] in experiment_names() else f"{made_for[0]}.toml"
    return UsageError(
        "Without names, a report shows experiments that come with the package and have records of a network. The "
        f"records in '{records.folder}' are of {', '.join(made_for)}. Name what to show, an experiment of your own by "
        f"its file: edhnn report {first} --results {records.folder}"
    )


def _is_packaged(experiment: Experiment) -> bool:
    """Return whether it is the packaged experiment of its name, not a user's of the same name."""
    return experiment.name in experiment_names() and experiment.text == packaged_text(experiment.name)


def _heading(grid: Grid) -> str:
    return f"{grid.experiment.paper}: {grid.experiment.title} ({grid.experiment.name})"
