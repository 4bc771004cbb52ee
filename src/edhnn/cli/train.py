"""`edhnn train`: train a model on a catalogue dataset or a file, and write a run folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.options import DeviceName, FoldCount, GroupColumn, ReadOptions, SplitColumn, with_read_options
from edhnn.cli.output import (
    Json,
    console,
    facts_table,
    print_json,
    print_line,
    print_message,
    print_notes,
    print_table,
    warnings_as_notes,
)
from edhnn.data.limits import size_in_words
from edhnn.errors import MachineError, StoppedError, machine_errors
from edhnn.io.files import check_folder
from edhnn.runs.folder import RunFolder
from edhnn.runs.plan import columns_of_splits, make_plan, parse_settings
from edhnn.runs.presets import PresetName
from edhnn.runs.results import RunSummary
from edhnn.runs.run import train
from edhnn.runs.scores import FLOOR_WORDS
from edhnn.training.structural_features import with_features

_RUNS = Path("runs")
_CLASSES, _WORST = 8, 5


@with_read_options
def train_command(
    source: Annotated[
        str, typer.Argument(metavar="[DATASET_OR_FILE]", help="A catalogue name, a file or a folder.")
    ] = "csbm-4",
    *,
    model: Annotated[
        str | None, typer.Option("--model", help="Model; `edhnn models` lists them; default: ed-hnn.")
    ] = None,
    preset: Annotated[
        PresetName | None,
        typer.Option("--preset", help="Settings of the paper, of its code, or by rule; default: paper if available."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="TOML file with model, options and train.")] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", min=1, help="Random splits of 50/25/25; default for the catalogue: 10.")
    ] = None,
    folds: FoldCount = None,
    group: GroupColumn = None,
    split_column: SplitColumn = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Largest number of epochs per split; default: the preset's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of weights and dropout masks; default: 0.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an option of the model or of training; repeatable."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Splits to train in parallel; default: automatic.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder; default: runs/DATASET-MODEL.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in the folder, if any.")] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard events into the run folder.")
    ] = False,
    device: DeviceName = "cpu",
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Train a model on several splits and write a run folder with its models, predictions and a report."""
    dataset = with_features(options.read(source, attributes=columns_of_splits(config, group, split_column)))
    print_notes(dataset.provenance.notes)
    chosen = {} if epochs is None else {"epochs": epochs}
    chosen |= parse_settings(settings or [])
    plan = make_plan(
        dataset,
        model,
        preset=preset,
        splits=splits,
        folds=folds,
        group=group,
        split_column=split_column,
        seed=seed,
        settings=chosen,
        file=config,
    )
    folder = out or _default_folder(f"{dataset.name}-{plan.model}", resume=resume)
    check_folder(folder)
    if not as_json:
        print_message(
            f"{plan.model} on {dataset.name}, {plan.protocol_words}, {plan.train.epochs} epochs; {plan.origin}"
        )
    try:
        with machine_errors(), warnings_as_notes():
            summary = train(dataset, plan, out=folder, resume=resume, jobs=jobs, tensorboard=tensorboard, device=device)
    except StoppedError as stopped:
        print_message(f"{stopped} Resume with: {_resume_command(folder)}")
        raise typer.Exit(StoppedError.exit_code) from stopped
    except MachineError as error:
        if not RunFolder(folder).config.is_file():  # training has not started
            raise
        raise MachineError(
            f"{error} What was saved before is intact. Resume with: {_resume_command(folder)}"
        ) from error
    if as_json:
        print_json(summary.to_json())
    else:
        _print(summary, plan.train.epochs)


def _default_folder(name: str, *, resume: bool) -> Path:
    """Return the first free name in ``runs/``; to resume, the last name taken."""
    name = name.replace("/", "-")
    taken = _RUNS / name
    number = 1
    while (free := _RUNS / (name if number == 1 else f"{name}-{number}")).exists():
        taken, number = free, number + 1
    return taken if resume else free


def _resume_command(folder: Path) -> str:
    words = [word for word in sys.argv[1:] if word != "--resume"]
    words += [] if any(word == "--out" or word.startswith("--out=") for word in words) else ["--out", str(folder)]
    return shlex.join(["edhnn", *words, "--resume"])


def _print(summary: RunSummary, max_epochs: int) -> None:
    memory = "-" if summary.peak_memory is None else size_in_words(summary.peak_memory)
    metric = summary.metric.replace("_", " ")
    scores = " ".join(f"{value:.1f}" if summary.unit else f"{value:.3g}" for value in summary.test)
    interval = [] if summary.interval is None else [("95 % interval", summary.interval)]
    floors = [
        (
            FLOOR_WORDS[floor.name][0],
            "skipped" if floor.value is None else f"{summary.shown(floor.value)}{summary.unit}",
        )
        for floor in summary.floors
    ]
    rows = [
        (f"test {metric}", summary.headline),
        *interval,
        *([] if len(summary.test) == 1 else [(f"of each {summary.piece}", scores)]),
        *floors,
        ("selected epochs", " ".join(map(str, summary.best_epoch))),
        ("parameters", f"{summary.num_parameters:,}"),
        ("time", f"{summary.seconds:.1f} s, {summary.jobs} at a time"),
        ("peak memory", memory),
        ("run", summary.run),
    ]
    console().print(facts_table(f"{summary.model} on {summary.dataset}", rows))
    _print_classes(summary)
    _print_parts(summary)
    for line in (summary.verdict, *(f"{FLOOR_WORDS[floor.name][0]} skipped: {floor.skipped}" for floor in summary.floors
                                    if floor.skipped)):  # fmt: skip
        if line:
            print_line(line)
    if summary.cut:
        print_message(
            f"note: training was cut at {max_epochs} epochs while the validation score was still improving in "
            f"{summary.cut} of {len(summary.test)} {summary.piece}s; allow more with --epochs"
        )
    print_message(f"report: {Path(summary.run) / 'report.html'}")


def _print_classes(summary: RunSummary) -> None:
    """Print precision and recall by class; of many classes those of the lowest recall."""
    classes, title = summary.classes, ""
    if len(classes) > _CLASSES:
        known = [one for one in classes if one.recall is not None]
        classes = sorted(known, key=lambda one: one.recall or 0.0)[:_WORST]
        title = f"{len(classes)} classes of the lowest recall, of {len(summary.classes)}"
    if classes:
        numbers = ("precision %", "recall %", "nodes")
        rows = [(one.name, _percent(one.precision), _percent(one.recall), one.support) for one in classes]
        print_table(("class", *numbers), rows, right=numbers, title=title or None)


def _print_parts(summary: RunSummary) -> None:
    """Print what each part of a model of several parts is worth by itself, and its weight in the answer."""
    if summary.parts:
        numbers = ("weight", f"validation{summary.unit}", f"test{summary.unit}")
        rows = [
            (part.name, f"{part.weight:.2f}", summary.shown(part.valid), summary.shown(part.test))
            for part in summary.parts
        ]
        print_table(("part", *numbers), rows, right=numbers)
        for part in summary.parts:
            if part.unused == len(summary.test):
                print_line(f"{part.name} adds nothing to the other parts")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
