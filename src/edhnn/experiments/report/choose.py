"""Which experiments a report shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from edhnn.errors import UsageError
from edhnn.experiments.claim_checks import check_claims
from edhnn.experiments.claims import Claim
from edhnn.experiments.gathered import Grid, RecordIndex, gather
from edhnn.experiments.records import Records
from edhnn.experiments.report.view import View, make_view
from edhnn.experiments.spec import Experiment, choose_experiments, experiment_names, packaged_experiment
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a report is made from.

    Attributes:
        views: The experiments that have records, in order.
        claims: The claims about the experiments.
        absent: Headings of experiments without records.
        records: All records.
    """

    views: Sequence[View]
    claims: Sequence[Claim]
    absent: Sequence[str]
    records: Sequence[JsonObject]


def make_content(records: Records, names: Sequence[str] = ()) -> Content:
    """Gather the records of experiments.

    Args:
        records: The records.
        names: Experiments, groups or TOML files; all that come with the package if empty.

    Returns:
        The content.

    Raises:
        UsageError: if there are no records for any of the experiments.
    """
    found = records.read()
    index = RecordIndex(found)
    grids = {experiment.name: gather(experiment, index) for experiment in _chosen(names)}
    views = [make_view(grid) for grid in grids.values() if grid.begun]
    if not views:
        raise UsageError(
            f"A report needs records of {', '.join(names) if names else 'an experiment'}. There are none in "
            f"'{records.folder}'. Make some with: edhnn run {names[0] if names else 'smoke'} --results {records.folder}"
        )
    real = {name: grid for name, grid in grids.items() if grid.experiment.paper != "none"}
    return Content(
        views=views,
        claims=check_claims({name: grid for name, grid in real.items() if _is_packaged(grid.experiment)}),
        absent=[_heading(grid) for grid in real.values() if not grid.begun],
        records=found,
    )


def _chosen(names: Sequence[str]) -> list[Experiment]:
    if names:
        return choose_experiments(names)
    everything = [packaged_experiment(name) for name in experiment_names()]
    return sorted(everything, key=lambda one: (one.paper == "none", one.show == "lines", one.name))


def _is_packaged(experiment: Experiment) -> bool:
    """Whether it is the paper's table of its name, and no other that a user named so."""
    return experiment.name in experiment_names() and experiment == packaged_experiment(experiment.name)


def _heading(grid: Grid) -> str:
    return f"{grid.experiment.paper}: {grid.experiment.title} ({grid.experiment.name})"
