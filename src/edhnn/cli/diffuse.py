"""`edhnn diffuse`: classical diffusion from seeds, with a certificate."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import pyarrow as pa
import torch
import typer

from edhnn.cli.options import ReadOptions, Source, SpreadsheetSafe, check_targets, with_read_options
from edhnn.cli.output import Json, console, facts_table, print_json, print_message, print_notes
from edhnn.data.dataset import NodeDataset
from edhnn.diffusion.diffusion import SOLVERS, Scaling, diffuse
from edhnn.diffusion.solver import Outcome, Solution, StepRecord
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import DelayedBar
from edhnn.io.tables.reader import read_seeds
from edhnn.io.tables.writer import id_column, write_table
from edhnn.potentials.registry import POTENTIALS

if TYPE_CHECKING:
    PotentialName: TypeAlias = str
    SolverName: TypeAlias = str
else:
    PotentialName, SolverName = (Literal[tuple(names)] for names in (POTENTIALS, SOLVERS))


@with_read_options
def diffuse_command(
    source: Source,
    *,
    seeds: Annotated[Path, typer.Option("--seeds", help="Table with columns node and value; other nodes have 0.")],
    potential: Annotated[PotentialName, typer.Option("--potential", help="Potential g of a hyperedge.")] = "tv",
    power: Annotated[int, typer.Option("--power", min=1, help="Power p of the potential.")] = 2,
    strength: Annotated[float, typer.Option("--strength", min=0.0, help="Weight of the potentials.")] = 1.0,
    scaling: Annotated[
        Scaling | None,
        typer.Option("--scaling", help="Divide the strength by the mean degree; default: degree for tv and lec."),
    ] = None,
    solver: Annotated[SolverName, typer.Option("--solver", help="Solver; auto: by the potential.")] = "auto",
    step_size: Annotated[float | None, typer.Option("--step-size", help="Step size; default: automatic.")] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", min=0.0, help="Relative duality gap to stop at.")] = 1e-8,
    max_steps: Annotated[int, typer.Option("--max-steps", min=0, help="Largest number of steps.")] = 10_000,
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="Ignore weights of memberships, which no potential uses.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write scores here, columns node and score.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the states and the gap at each step into this PNG.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Diffuse seed values over a hypergraph: minimise sum (h - x)^2 + strength * sum g(H_e)."""
    check_targets(table=out, picture=picture, overwrite=force)
    dataset = options.read(source, keep_missing=True)
    print_notes(dataset.provenance.notes)
    hypergraph = _without_incidence_weights(dataset.hypergraph, ignore_weights=ignore_weights)
    x = read_seeds(seeds, dataset, options.limits)
    started = time.perf_counter()
    bar = DelayedBar("Diffusing", max_steps, in_bytes=False)
    frames: list[tuple[StepRecord, torch.Tensor]] = []

    def watch(record: StepRecord, state: torch.Tensor) -> None:
        bar.show(record.step, f", gap {record.gap:.1e}")
        if picture is not None:
            frames.append((record, state[:, 0]))

    solution = diffuse(
        hypergraph,
        x[:, None],
        potential=potential,
        power=power,
        strength=strength,
        scaling=scaling,
        solver=solver,
        step_size=step_size,
        tolerance=tolerance,
        max_steps=max_steps,
        throw=False,
        watch=watch,
    )
    bar.close()
    seconds = time.perf_counter() - started
    if out is not None:
        write_scores(dataset, solution.value[:, 0], out, spreadsheet_safe=spreadsheet_safe)
    if picture is not None:
        draw(dataset, frames, f"{potential}, power {power}, strength {strength:g}: {solution.outcome.value}", picture)
    _report(solution, seconds, out, picture, as_json=as_json)
    if solution.outcome is not Outcome.CONVERGED:
        raise typer.Exit(1)


def _without_incidence_weights(hypergraph: Hypergraph, *, ignore_weights: bool) -> Hypergraph:
    if hypergraph.incidence_weight is None:
        return hypergraph
    if not ignore_weights:
        raise UsageError(
            "The memberships of this hypergraph have weights, and a hyperedge potential cannot use them (it uses only "
            "weights of hyperedges). Ignore them with --ignore-weights."
        )
    return replace(hypergraph, incidence_weight=None)


def write_scores(dataset: NodeDataset, scores: torch.Tensor, target: Path, *, spreadsheet_safe: bool = False) -> None:
    """Write the scores with the original node ids."""
    table = pa.table({"node": id_column(dataset.node_ids), "score": scores.numpy()})
    write_table(table, target, spreadsheet_safe=spreadsheet_safe)


def draw(dataset: NodeDataset, frames: list[tuple[StepRecord, torch.Tensor]], title: str, target: Path) -> None:
    """Draw the steps of the solver on one page, as a PNG."""
    from edhnn.plotting.diffusion import Look, diffusion_picture  # matplotlib takes half a second to import
    from edhnn.plotting.style import save_figure

    names = [str(name) for name in dataset.node_ids.to_list()]
    figure = diffusion_picture(dataset.hypergraph, [Look(*look) for look in frames], title=title, names=names)
    save_figure(figure, target, dpi=150)


def _finite(value: float) -> float | None:
    """Replace infinity and NaN, which JSON cannot represent, by ``None``."""
    return value if math.isfinite(value) else None


def _report(solution: Solution, seconds: float, out: Path | None, picture: Path | None, *, as_json: bool) -> None:
    last = solution.last
    facts = {
        "objective": _finite(last.objective),
        "gap": _finite(last.gap),
        "residual": _finite(last.residual),
        "steps": solution.steps,
        "outcome": solution.outcome.name.lower(),
        "certified_by": solution.certified_by,
        "seconds": round(seconds, 4),
        "scores": None if out is None else str(out),
        "picture": None if picture is None else str(picture),
    }
    if as_json:
        print_json(facts)
    else:
        rows = [(name, f"{value:.9g}" if isinstance(value, float) else str(value)) for name, value in facts.items()]
        console().print(facts_table("diffusion", rows))
    if solution.outcome is not Outcome.CONVERGED:
        print_message(f"Error: {solution.outcome.value}", style="red")
