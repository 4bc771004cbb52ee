"""`edhnn tune`: sizes of a model for a dataset, chosen by validation."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from edhnn.cli.options import DeviceName, Json, ReadOptions, check_targets, with_read_options
from edhnn.cli.output import console, print_json, say, say_notes
from edhnn.errors import StoppedError, UsageError
from edhnn.io.files import check_folder
from edhnn.parallel import catch_signals
from edhnn.runs.plan import make_plan, parse_settings
from edhnn.tuning.run import tune
from edhnn.tuning.search import Search, Space, TuningResult, write_winner

_BEST = 8


@with_read_options
def tune_command(
    source: Annotated[str, typer.Argument(metavar="DATASET_OR_FILE", help="A catalogue name, a file or a folder.")],
    *,
    model: Annotated[str, typer.Option("--model", help="The model; `edhnn models` lists them.")] = "ed-hnn",
    trials: Annotated[
        int, typer.Option("--trials", min=1, help="Trials, those of earlier calls included; the grid has 20.")
    ] = 20,
    space: Annotated[
        Space, typer.Option("--space", help="The paper's grid of depth and width, or all sizes, dropout and rates.")
    ] = "paper",
    splits: Annotated[int, typer.Option("--splits", min=1, help="Splits whose validation scores are averaged.")] = 3,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Epochs; 500 if nothing else says so.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of trials, weights and dropout masks.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an option, which is then not searched; repeat it."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Give a trial up when a split is worse than the median of the others'.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Trials at a time; chosen for the grid, 1 for the wide space.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option("--storage", help="SQLite file of the study; an existing one is resumed [tune/DATASET-MODEL.db]."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the winner for `edhnn train --config`.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace that file if it exists.")] = False,
    device: DeviceName = "cpu",
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Search a model's sizes by validation scores; test labels are never read. Interrupted, run it again."""
    check_targets(out, overwrite=force)
    dataset = options.read(source)
    say_notes(dataset.provenance.notes)
    named = parse_settings(settings or [])
    asked = {} if epochs is None else {"epochs": epochs}
    plan = make_plan(dataset, model, splits=splits, seed=seed, settings=asked | named)
    fixed = tuple(sorted(named))
    search = Search(plan=plan, trials=trials, space=space, fixed=fixed, prune=prune)
    place = storage or str(Path("tune") / f"{dataset.name}-{plan.model}.db".replace("/", "-"))
    _check_storage(place)
    old = Path(place).with_suffix(".journal")
    if storage is None and old.is_file() and not Path(place).is_file():
        say(f"note: '{old}' is a study of an earlier version, which this one does not read; a new one begins")
    if not as_json:
        say(f"{plan.model} on {dataset.name}, space {space}, {splits} splits, {plan.train.epochs} epochs; in {place}")
    try:
        with catch_signals() as stop:
            result = tune(dataset, search, storage=place, jobs=jobs, should_stop=stop, device=device)
    except StoppedError as stopped:
        say(f"{stopped} Go on with: {shlex.join(['edhnn', *sys.argv[1:]])}")
        raise typer.Exit(StoppedError.exit_code) from stopped
    if out is not None:
        write_winner(result, out)
    if as_json:
        print_json({**result.to_json(), "config": None if out is None else str(out)})
    else:
        _print_search(result, out)


def _check_storage(storage: str) -> None:
    """Refuse a place where the study cannot be a file."""
    path = Path(storage.removeprefix("sqlite:///"))
    if path.is_dir():
        raise UsageError(f"--storage takes a file or sqlite:///FILE, not a folder. Got '{storage}'.")
    check_folder(path.parent)


def _print_search(result: TuningResult, out: Path | None) -> None:
    unit = "" if result.minimise else " %"
    title = f"{result.search.plan.model} on {result.dataset}: the best of {len(result.ranking)} trials"
    table = Table(title=escape(title), box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for heading in ("trial", f"validation {result.metric.replace('_', ' ')}{unit}", "of each split"):
        table.add_column(heading, justify="right")
    table.add_column("with")
    for trial in result.ranking[:_BEST]:
        each = " ".join(f"{score:.4g}" for score in trial.scores)
        chosen = " ".join(f"{name}={value}" for name, value in trial.params.items())
        table.add_row(str(trial.number), f"{trial.score:.4g}", each, chosen)
    console().print(table)
    lost = {"failed": "fail", "given up": "pruned"}
    counts = {word: sum(trial.state == state for trial in result.trials) for word, state in lost.items()}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    if said:
        reasons = [trial.reason for trial in result.trials if trial.reason]
        say(f"{said}{f'; the last failure: {reasons[-1]}' if reasons else ''}")
    if result.importance:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in result.importance.items())
        say(f"what mattered: {shares}")
    say(f"study: {result.storage}" + ("" if out is None else f"; winner: {out}"))
