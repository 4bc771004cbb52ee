"""`edhnn diffuse`: classical diffusion from seeds, PageRank, local clusters and label spreading, with a certificate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, final

import numpy as np
import pyarrow as pa
import torch
import typer

from edhnn.cli.options import ReadOptions, Source, SpreadsheetSafe, check_targets, with_read_options
from edhnn.cli.output import Json, console, facts_table, print_json, print_message, print_notes, print_table
from edhnn.data.dataset import UNLABELLED, NodeDataset
from edhnn.diffusion.diffusion import SOLVERS, Scaling, diffuse, make_solver
from edhnn.diffusion.pagerank import pagerank_problem, sweep_cut
from edhnn.diffusion.solver import Outcome, Solution, StepRecord, Watch, solve
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import DelayedBar
from edhnn.io.tables.reader import read_seed_classes, read_seeds
from edhnn.io.tables.writer import id_column, write_table
from edhnn.potentials.registry import POTENTIALS, make_potential
from edhnn.typing import FloatArray, IntArray, JsonObject

Method = Literal["values", "pagerank", "labels"]
if TYPE_CHECKING:
    PotentialName: TypeAlias = str
    SolverName: TypeAlias = str
else:
    PotentialName, SolverName = (Literal[tuple(names)] for names in (POTENTIALS, SOLVERS))
_SHOWN = 10  # nodes shown without --top


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """The options of the solve."""

    potential: str
    power: int
    strength: float
    scaling: Scaling | None
    solver: str
    step_size: float | None
    tolerance: float
    max_steps: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The columns of the table of scores, and what is printed of them."""

    columns: dict[str, Any]
    top: list[JsonObject]
    clusters: list[JsonObject]
    classes: list[JsonObject]


@with_read_options
def diffuse_command(
    source: Source,
    *,
    method: Annotated[
        Method, typer.Option("--method", help="values: diffuse numbers; pagerank; labels: spread classes.")
    ] = "values",
    seeds: Annotated[
        Path | None, typer.Option("--seeds", help="Table with columns node and value (or class); others have 0 (none).")
    ] = None,
    seed_column: Annotated[
        list[str] | None,
        typer.Option("--seed-column", help="Column of --seeds; default: value, or class. Repeatable for numbers."),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=0, help="Number of nodes to show; default: 10, or all if fewer.")
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Find the local cluster: the sweep cut of the positive scores.")
    ] = False,
    max_cluster: Annotated[int | None, typer.Option("--max-cluster", min=1, help="Most nodes of the cluster.")] = None,
    restart: Annotated[
        float | None, typer.Option("--restart", help="Restart probability of PageRank; default: 0.15.")
    ] = None,
    potential: Annotated[
        PotentialName | None, typer.Option("--potential", help="Potential g of a hyperedge; default: tv, labels: ce.")
    ] = None,
    power: Annotated[int, typer.Option("--power", min=1, help="Power p of the potential.")] = 2,
    strength: Annotated[
        float | None, typer.Option("--strength", min=0.0, help="Weight of the potentials; default: 1.")
    ] = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option("--scaling", help="Divide the strength by the mean degree; default: degree for tv and lec."),
    ] = None,
    solver: Annotated[SolverName, typer.Option("--solver", help="Solver; auto: by the potential.")] = "auto",
    step_size: Annotated[float | None, typer.Option("--step-size", help="Step size; default: automatic.")] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", min=0.0, help="Relative duality gap to stop at; default: 1e-8, labels: 1e-6."),
    ] = None,
    max_steps: Annotated[int, typer.Option("--max-steps", min=0, help="Largest number of steps.")] = 10_000,
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="Ignore weights of memberships, which no potential uses.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write scores here, a row per node.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the states and the gap at each step into this PNG.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Diffuse seed values over a hypergraph: minimise sum (h - x)^2 + strength * sum g(H_e)."""
    labels = method == "labels"
    _check_request(method, seeds, seed_column, cluster, max_cluster, restart, strength, scaling, picture, step_size)
    check_targets(table=out, picture=picture, overwrite=force)
    dataset = options.read(source, keep_missing=True)
    print_notes(dataset.provenance.notes)
    hypergraph = _without_incidence_weights(dataset.hypergraph, ignore_weights=ignore_weights)
    nodes = hypergraph.num_nodes
    if top is not None and top > nodes:
        raise UsageError(f"`top=` must be at most the number of nodes, {nodes}. Got {top}.")
    count = min(_SHOWN, nodes) if top is None else top
    wish = _Wish(
        potential=potential or ("ce" if labels else "tv"),
        power=power,
        strength=1.0 if strength is None else strength,
        scaling=scaling,
        solver=solver,
        step_size=step_size,
        tolerance=(1e-6 if labels else 1e-8) if tolerance is None else tolerance,
        max_steps=max_steps,
    )
    frames: list[tuple[StepRecord, torch.Tensor]] = []
    if labels:
        known, names = _known_classes(dataset, seeds, seed_column, options)
        solution, answer = _spread(hypergraph, dataset, known, names, wish, count)
    else:
        assert seeds is not None
        columns = tuple(seed_column or ("value",))
        x = read_seeds(seeds, dataset, options.limits, columns)
        bar = DelayedBar("Diffusing", max_steps, in_bytes=False)

        def watch(record: StepRecord, state: torch.Tensor) -> None:
            bar.show(record.step, f", gap {record.gap:.1e}")
            if picture is not None:
                frames.append((record, state[:, 0]))

        if method == "pagerank":
            solution, scores = _pagerank(hypergraph, x, columns, 0.15 if restart is None else restart, wish, watch)
        else:
            solution = _diffused(hypergraph, x, wish, watch)
            scores = solution.value
        bar.close()
        answer = _scored(dataset, columns, scores, solution.value, count, max_cluster, find_clusters=cluster)
    if out is not None:
        write_scores(dataset, answer.columns, out, spreadsheet_safe=spreadsheet_safe)
    if picture is not None:
        title = f"{wish.potential}, power {power}, strength {wish.strength:g}: {solution.outcome.value}"
        draw(dataset, frames, title, picture)
    _report(solution, answer, out, picture, as_json=as_json)
    if solution.outcome is not Outcome.CONVERGED:
        raise typer.Exit(1)


def _check_request(
    method: Method,
    seeds: Path | None,
    seed_column: Sequence[str] | None,
    cluster: bool,
    max_cluster: int | None,
    restart: float | None,
    strength: float | None,
    scaling: Scaling | None,
    picture: Path | None,
    step_size: float | None,
) -> None:
    """Raise a usage error for options that do not belong together."""
    if method != "labels" and seeds is None:
        raise UsageError(f"The method {method} needs `seeds=`: a table with columns node and value.")
    if method == "labels":
        wrong = {"cluster": cluster, "picture": picture is not None, "step_size": step_size is not None}
        for name in (name for name, given in wrong.items() if given):
            raise UsageError(f"`{name}=` cannot be used with `method='labels'`.")
        if len(seed_column or ()) > 1:
            raise UsageError("`method='labels'` has one `seed_column=`, that of the classes.")
    if seed_column and seeds is None:
        raise UsageError("`seed_column=` is a column of `seeds=`, which is not given.")
    columns = ["node", *(seed_column or ())]
    for name in (name for name in columns if columns.count(name) > 1):
        raise UsageError(f"`seed_column=` must name each column once, and not 'node'. Got '{name}' again.")
    if restart is not None and method != "pagerank":
        raise UsageError("`restart=` is for `method='pagerank'` only.")
    if method == "pagerank" and (strength is not None or scaling is not None):
        raise UsageError("PageRank has `restart=` in place of `strength=` and `scaling=`.")
    if max_cluster is not None and not cluster:
        raise UsageError("`max_cluster=` needs `cluster=`.")


def _without_incidence_weights(hypergraph: Hypergraph, *, ignore_weights: bool) -> Hypergraph:
    if hypergraph.incidence_weight is None:
        return hypergraph
    if not ignore_weights:
        raise UsageError(
            "The memberships of this hypergraph have weights, and a hyperedge potential cannot use them (it uses only "
            "weights of hyperedges). Ignore them with --ignore-weights."
        )
    return replace(hypergraph, incidence_weight=None)


def _diffused(hypergraph: Hypergraph, x: torch.Tensor, wish: _Wish, watch: Watch) -> Solution:
    return diffuse(
        hypergraph,
        x,
        potential=wish.potential,
        power=wish.power,
        strength=wish.strength,
        scaling=wish.scaling,
        solver=wish.solver,
        step_size=wish.step_size,
        tolerance=wish.tolerance,
        max_steps=wish.max_steps,
        throw=False,
        watch=watch,
    )


def _pagerank(
    hypergraph: Hypergraph, x: torch.Tensor, columns: Sequence[str], restart: float, wish: _Wish, watch: Watch
) -> tuple[Solution, torch.Tensor]:
    r"""Return the solution $h$ of the PageRank problem and the PageRank $d_v h_v$ of each node."""
    for number, name in enumerate(columns):
        if bool((x[:, number] < 0).any()) or not bool((x[:, number] > 0).any()):
            raise DataError(
                f"The seeds of PageRank must be 0 or more, and one must be positive. The column {name!r} is not so."
            )
    potential = make_potential(wish.potential, wish.power)
    problem = pagerank_problem(hypergraph, x / x.sum(0), restart=restart, potential=potential)
    solver = make_solver(
        wish.solver, potential, step_size=wish.step_size, tolerance=wish.tolerance, max_steps=wish.max_steps
    )
    solution = solve(problem, solver, throw=False, watch=watch)
    return solution, _weighted_degree(hypergraph)[:, None] * solution.value


def _weighted_degree(hypergraph: Hypergraph) -> torch.Tensor:
    weight = hypergraph.edge_weight
    at_members = torch.ones(hypergraph.num_incidences, dtype=torch.float64)
    if weight is not None:
        at_members = weight.double()[hypergraph.edge_index]
    return torch.zeros(hypergraph.num_nodes, dtype=torch.float64).index_add(0, hypergraph.node_index, at_members)


def _scored(
    dataset: NodeDataset,
    columns: Sequence[str],
    scores: torch.Tensor,
    ranking: torch.Tensor,
    count: int,
    max_cluster: int | None,
    *,
    find_clusters: bool,
) -> _Answer:
    """Rank the nodes by each column of scores, and find the cluster of each if asked."""
    single = len(columns) == 1
    table = {"score" if single else name: scores[:, k].numpy() for k, name in enumerate(columns)}
    ids = dataset.node_ids.to_list()
    top, clusters = [], []
    for number, name in enumerate(columns):
        order = torch.sort(scores[:, number], descending=True, stable=True).indices[:count].tolist()
        top += [{"column": name, "node": ids[v], "score": _finite(float(scores[v, number]))} for v in order]
        if find_clusters:
            members, conductance = _cluster(dataset.hypergraph, ranking[:, number], name, max_cluster)
            inside = np.zeros(len(ids), dtype=np.int64)
            inside[members] = 1
            heading = "cluster" if single else f"{name}.cluster"
            if heading in table:
                raise UsageError(f"The table of scores has two columns {heading!r}. Rename that of `seeds=`.")
            table[heading] = inside
            chosen = [ids[v] for v in members]
            clusters.append({"column": name, "size": len(members), "conductance": conductance, "members": chosen})
    return _Answer(columns=table, top=top, clusters=clusters, classes=[])


def _cluster(
    hypergraph: Hypergraph, ranking: torch.Tensor, name: str, max_cluster: int | None
) -> tuple[list[int], float]:
    """Return the prefix of the nodes with positive scores that has the least conductance."""
    positive = int((ranking > 0).sum())
    if not bool(ranking.isfinite().all()) or not positive or hypergraph.num_nodes < 2:
        raise DataError(f"The cluster of {name!r} is empty: no node has a positive score.")
    cut = sweep_cut(hypergraph, ranking, max_size=min(positive, max_cluster or positive))
    if not math.isfinite(cut.conductance):
        raise DataError(
            f"The cluster of {name!r} is empty: no set of nodes around the seeds has hyperedges on both sides."
        )
    return cut.members.tolist(), cut.conductance


def _known_classes(
    dataset: NodeDataset, seeds: Path | None, seed_column: Sequence[str] | None, options: ReadOptions
) -> tuple[IntArray, list[Any]]:
    """Return the number of the class of each node, -1 if unknown, and the names of the classes."""
    if seeds is not None:
        given = read_seed_classes(seeds, dataset, options.limits, *(seed_column or ()))
        names: list[Any] = sorted({name for name in given if name is not None})
        number = {name: k for k, name in enumerate(names)}
        known = np.array([UNLABELLED if name is None else number[name] for name in given], dtype=np.int64)
    elif dataset.y is None or dataset.task != "classification":
        raise UsageError(
            "`method='labels'` needs classes: name their column with `label=`, or give a table with the columns "
            "node and class as `seeds=`."
        )
    else:
        known = dataset.y.numpy().astype(np.int64)
        names = list(dataset.class_names or range(int(known.max(initial=-1)) + 1))
    if (known == UNLABELLED).all():
        raise DataError("No node has a class, so there is nothing to spread.")
    if not (known == UNLABELLED).any():
        raise DataError("Every node has a class already. Leave the classes to be found empty, or give `seeds=`.")
    return known, names


def _spread(
    hypergraph: Hypergraph, dataset: NodeDataset, known: IntArray, names: list[Any], wish: _Wish, count: int
) -> tuple[Solution, _Answer]:
    """Spread classes, as `HypergraphLabelSpreading` does, and list the surest new answers."""
    from edhnn.estimators.label_spreading import HypergraphLabelSpreading  # scikit-learn takes a second to import

    model = HypergraphLabelSpreading(
        wish.potential,
        power=wish.power,
        strength=wish.strength,
        scaling=wish.scaling,
        solver=wish.solver,
        tolerance=wish.tolerance,
        max_steps=wish.max_steps,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the outcome says whether it converged
        model.fit(hypergraph, known)
    distribution: FloatArray = model.label_distributions_
    found, sure = model.transduction_, distribution.max(axis=1)
    new = np.flatnonzero(known == UNLABELLED)
    best = new[np.argsort(-sure[new], kind="stable")][:count]
    ids = dataset.node_ids.to_list()
    top = [{"node": ids[v], "class": names[found[v]], "probability": float(sure[v])} for v in best]
    classes: list[JsonObject] = [
        {"class": names[k], "known": int((known == k).sum()), "found": int((found[new] == k).sum())}
        for k in model.classes_.tolist()
    ]
    table = {
        "class": pa.array([str(names[k]) for k in found]),
        "probability": sure,
        "known": (known != UNLABELLED).astype(np.int64),
    }
    return model.solution_, _Answer(columns=table, top=top, clusters=[], classes=classes)


def write_scores(
    dataset: NodeDataset, columns: dict[str, Any], target: Path, *, spreadsheet_safe: bool = False
) -> None:
    """Write columns of scores with the original node ids."""
    table = pa.table({"node": id_column(dataset.node_ids), **columns})
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


def _report(solution: Solution, answer: _Answer, out: Path | None, picture: Path | None, *, as_json: bool) -> None:
    last = solution.last
    facts = {
        "objective": _finite(last.objective),
        "gap": _finite(last.gap),
        "residual": _finite(last.residual),
        "steps": solution.steps,
        "outcome": solution.outcome.name.lower(),
        "certified_by": solution.certified_by,
        "seconds": round(last.seconds, 4),
        "scores": None if out is None else str(out),
        "picture": None if picture is None else str(picture),
    }
    if as_json:
        print_json({**facts, "top": answer.top, "clusters": answer.clusters, "classes": answer.classes})
    else:
        rows = [(name, f"{value:.9g}" if isinstance(value, float) else str(value)) for name, value in facts.items()]
        console().print(facts_table("diffusion", rows))
        _print_rows("classes", answer.classes)
        _print_rows("surest new answers" if answer.classes else "highest scores", answer.top)
        for found in answer.clusters:
            names = ", ".join(str(name) for name in found["members"][:_SHOWN])
            more = ", ..." if found["size"] > _SHOWN else ""
            rows = [("nodes", str(found["size"])), ("conductance", f"{found['conductance']:.4g}")]
            console().print(facts_table(f"cluster of {found['column']}", [*rows, ("members", names + more)]))
    if solution.outcome is not Outcome.CONVERGED:
        print_message(f"Error: {solution.outcome.value}", style="red")


def _print_rows(title: str, rows: list[JsonObject]) -> None:
    """Print records as a table, if there are any."""
    if rows:
        cells = [[f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in rows]
        numeric = [name for name in ("score", "probability", "known", "found") if name in rows[0]]
        print_table(list(rows[0]), cells, right=numeric, title=title)
