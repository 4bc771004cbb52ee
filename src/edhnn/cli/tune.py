"""`edhnn tune`: search the settings of a model for a dataset by validation scores."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.flags import translate_arguments
from edhnn.cli.options import (
    DeviceName,
    FoldCount,
    GroupColumn,
    ReadOptions,
    SplitColumn,
    check_targets,
    is_catalogue_name,
    with_read_options,
)
from edhnn.cli.output import Json, print_json, print_message, print_notes, print_table, warnings_as_notes
from edhnn.errors import StoppedError, UsageError
from edhnn.io.files import check_folder, refuse_broken_link
from edhnn.parallel import catch_signals
from edhnn.runs.plan import columns_of_splits, make_plan, parse_settings
from edhnn.training.structural_features import with_features
from edhnn.tuning.run import tune
from edhnn.tuning.search import Search, Space, TuningResult, write_winner

_BEST = 8
_CATALOGUE_SPLITS = 3


@with_read_options
def tune_command(
    source: Annotated[str, typer.Argument(metavar="DATASET_OR_FILE", help="A catalogue name, a file or a folder.")],
    *,
    model: Annotated[str, typer.Option("--model", help="Model name; `edhnn models` lists them.")] = "ed-hnn",
    trials: Annotated[
        int, typer.Option("--trials", min=1, help="Trials, including those of earlier calls; the paper's grid has 20.")
    ] = 20,
    space: Annotated[
        Space,
        typer.Option("--space", help="Rates, dropout, scaling and sizes; the paper's grid of sizes; or all settings."),
    ] = "default",
    splits: Annotated[
        int | None,
        typer.Option("--splits", min=1, help="Random splits to average the score over; default: 3 for the catalogue."),
    ] = None,
    folds: FoldCount = None,
    group: GroupColumn = None,
    split_column: SplitColumn = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Largest number of epochs per split; default: the preset's.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of trials, weights and dropout masks.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix an option, which is then not searched; repeatable."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Stop a trial when a split is worse than the median of the others.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Trials to run in parallel; default: automatic, 1 for wide.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", help="SQLite file of the study, new or to be resumed; default: tune/DATASET-MODEL.db."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the best settings for `edhnn train --config`.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    device: DeviceName = "cpu",
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Search settings of a model by validation scores; test labels are not read. The same command resumes a search."""
    check_targets(out, overwrite=force)
    dataset = with_features(options.read(source, attributes=columns_of_splits(None, group, split_column)))
    print_notes(dataset.provenance.notes)
    if (splits, folds, group, split_column) == (None,) * 4 and is_catalogue_name(source):
        splits = _CATALOGUE_SPLITS
    fixed = parse_settings(settings or [])
    training = {} if epochs is None else {"epochs": epochs}
    plan = make_plan(
        dataset,
        model,
        splits=splits,
        folds=folds,
        group=group,
        split_column=split_column,
        seed=seed,
        settings=training | fixed,
    )
    search = Search(plan=plan, trials=trials, space=space, fixed=tuple(sorted(fixed)), prune=prune)
    study = storage or str(Path("tune") / f"{dataset.name}-{plan.model}.db".replace("/", "-"))
    _check_storage(study)
    old = Path(study).with_suffix(".journal")
    if storage is None and old.is_file() and not Path(study).is_file():
        print_message(f"note: '{old}' is a study of an earlier version and is not read; a new study starts")
    if not as_json:
        print_message(
            f"{plan.model} on {dataset.name}, space {space}, {plan.protocol_words}, {plan.train.epochs} epochs; "
            f"in {study}"
        )
    try:
        with catch_signals() as stop, warnings_as_notes():
            result = tune(dataset, search, storage=study, jobs=jobs, should_stop=stop, device=device)
    except StoppedError as stopped:
        print_message(f"{stopped} Resume with: {shlex.join(['edhnn', *sys.argv[1:]])}")
        raise typer.Exit(StoppedError.exit_code) from stopped
    if out is not None:
        write_winner(result, out)
    if as_json:
        content = result.to_json()
        for trial in content["trials"]:
            trial["reason"] = trial["reason"] and translate_arguments(trial["reason"])
        print_json({**content, "config": None if out is None else str(out)})
    else:
        _print_search(result, out)


def _check_storage(storage: str) -> None:
    """Check that the study can be a file there."""
    path = Path(storage.removeprefix("sqlite:///"))
    if path.is_dir():
        raise UsageError(f"--storage must be a file or sqlite:///FILE, not a folder. Got '{storage}'.")
    check_folder(path.parent)
    refuse_broken_link(path)


def _print_search(result: TuningResult, out: Path | None) -> None:
    unit = "" if result.minimise else " %"
    title = f"{result.search.plan.model} on {result.dataset}: the best of {len(result.ranking)} trials"
    numbers = ("trial", f"validation {result.metric.replace('_', ' ')}{unit}", "of each split")
    rows = []
    for trial in result.ranking[:_BEST]:
        scores = " ".join(f"{score:.4g}" for score in trial.scores)
        params = " ".join(f"{name}={value}" for name, value in trial.params.items())
        rows.append((trial.number, f"{trial.score:.4g}", scores, params))
    print_table((*numbers, "settings"), rows, right=numbers, title=title)
    counts = {
        label: sum(trial.state == state for trial in result.trials)
        for label, state in (("failed", "fail"), ("stopped early", "pruned"))
    }
    if any(counts.values()):
        reasons = [trial.reason for trial in result.trials if trial.reason]
        shown = ", ".join(f"{count} {label}" for label, count in counts.items() if count)
        print_message(f"{shown}{f'; the last failure: {reasons[-1]}' if reasons else ''}")
    if result.importance:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in result.importance.items())
        print_message(f"importance of the settings: {shares}")
    print_message(f"study: {result.storage}" + ("" if out is None else f"; best settings: {out}"))
