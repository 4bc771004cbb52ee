"""Which experiments a report shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import final

from edhnn.errors import UsageError
from edhnn.experiments.claims import Claim, check_claims
from edhnn.experiments.gathered import Grid, RecordIndex, gather
from edhnn.experiments.records import Records
from edhnn.experiments.report.view import View, make_view
from edhnn.experiments.spec import Experiment, experiment_names, find_experiments, packaged_experiment
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
    texts = _texts(names)
    grids = {experiment.name: gather(experiment, index) for experiment in _chosen(names)}
    views = [make_view(grid, texts[name]) for name, grid in grids.items() if grid.begun]
    if not views:
        raise UsageError(
            f"A report needs records of {', '.join(names) if names else 'an experiment'}. There are none in "
            f"'{records.folder}'. Make some with: edhnn run {names[0] if names else 'smoke'} --results {records.folder}"
        )
    real = {name: grid for name, grid in grids.items() if grid.experiment.paper != "none"}
    return Content(
        views=views,
        claims=check_claims(real),
        absent=[_heading(grid) for grid in real.values() if not grid.begun],
        records=found,
    )


def _chosen(names: Sequence[str]) -> list[Experiment]:
    if names:
        return list({one.name: one for name in names for one in find_experiments(name)}.values())
    everything = [packaged_experiment(name) for name in experiment_names()]
    return sorted(everything, key=lambda one: (one.paper == "none", one.show == "lines", one.name))


def _texts(names: Sequence[str]) -> dict[str, str]:
    """The TOML of every experiment, by name; a file given wins over one that comes with the package."""
    specs = resources.files("edhnn.experiments").joinpath("specs")
    texts = {name: specs.joinpath(f"{name}.toml").read_text("utf-8") for name in experiment_names()}
    files = [Path(name) for name in names if name.endswith(".toml")]
    return texts | {path.stem: path.read_text(encoding="utf-8") for path in files if path.is_file()}


def _heading(grid: Grid) -> str:
    return f"{grid.experiment.paper}: {grid.experiment.title} ({grid.experiment.name})"
