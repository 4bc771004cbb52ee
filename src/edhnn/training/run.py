"""A whole run: splits trained, one after another or side by side, then put together; resumable at every moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from edhnn.data.atomic import atomic_file
from edhnn.data.dataset import NodeDataset
from edhnn.data.progress import DelayedBar
from edhnn.data.splits import Split
from edhnn.data.writers.tables import write_table
from edhnn.errors import UsageError
from edhnn.training.checks import check_splits, check_trainable
from edhnn.training.dataset_file import write_training_data
from edhnn.training.ensemble import load_models, mean_of
from edhnn.training.environment import describe_environment
from edhnn.training.inputs import check_scaling, make_inputs
from edhnn.training.jobs import choose_jobs
from edhnn.training.json_file import write_json
from edhnn.training.locks import locked
from edhnn.training.plan import Plan, choose_splits
from edhnn.training.predictions import class_names, prediction_table
from edhnn.training.run_folder import RunFolder
from edhnn.training.seen_nodes import write_nodes
from edhnn.training.split_records import read_metrics
from edhnn.training.split_run import train_split
from edhnn.training.stopping import Wish, listening
from edhnn.training.summary import RunSummary, summarise
from edhnn.training.tasks import labels_of, make_objective
from edhnn.training.tensorboard_events import check_tensorboard, tensorboard_events
from edhnn.training.workers import run_workers
from edhnn.typing import IntArray, JsonObject

_BUSY = "is being trained by another process. Wait for it, or stop it."


def train(
    dataset: NodeDataset,
    plan: Plan | None = None,
    *,
    out: Path | str,
    resume: bool = False,
    jobs: int | None = None,
    splits: list[Split] | None = None,
    tensorboard: bool = False,
) -> RunSummary:
    """Train a model on several splits and leave a run folder (`edhnn.training.run_folder`). Paper: Appendix F.3.

    Args:
        dataset: Hypergraph, features and labels.
        plan: Model, sizes, training, number of splits and seed; ED-HNN and the paper's protocol if not given.
        out: The run folder.
        resume: Go on with the run that is there; it must be the same one. Finished splits are kept.
        jobs: Splits at a time, each in a process of one thread; by rule (`edhnn.training.jobs`) if not given. With 1
            this process trains them, with the threads torch has.
        splits: The splits; the default ones (`choose_splits`) if not given.
        tensorboard: Write events for TensorBoard while training, in the run folder's ``tensorboard``.

    Returns:
        The numbers.

    Raises:
        DataError: if the dataset cannot be trained on.
        UsageError: if the model cannot be built from its options, or the folder holds another run.
        MissingDependencyError: if events are asked for and TensorBoard is not installed.
        StoppedError: after Ctrl-C or termination; ``resume=True`` goes on.
    """
    begun = time.perf_counter()
    plan = plan or Plan()
    if tensorboard:
        check_tensorboard()
    check_trainable(dataset)
    splits = choose_splits(dataset, plan.num_splits) if splits is None else splits
    if len(splits) != plan.num_splits:
        raise UsageError(f"There must be {plan.num_splits} splits. Got {len(splits)}.")
    check_splits(dataset, splits)
    if jobs is not None and jobs < 1:
        raise UsageError(f"There must be at least 1 job. Got {jobs}.")
    check_scaling(dataset, plan.train)
    plan.make_model(dataset, make_objective(dataset, splits[0].train), 0)  # refused, if so, before there is a folder
    folder = RunFolder(Path(out))
    facts = plan.to_json(dataset, splits)
    folder.begin(facts, splits, resume=resume)
    with locked(folder.path / "lock") as mine:
        if not mine:
            raise UsageError(f"The run in '{folder.path}' {_BUSY}")
        write_nodes(dataset, folder)
        unfinished = [number for number in range(plan.num_splits) if not folder.split(number).finished]
        count = min(jobs or choose_jobs(dataset, plan, len(unfinished)), max(len(unfinished), 1))
        threads = 1 if count > 1 else torch.get_num_threads()
        environment = describe_environment(count, threads)
        write_json(environment, folder.path / "environment.json")
        events = tensorboard_events(folder, plan.num_splits) if tensorboard else nullcontext(lambda: None)
        with listening() as wish, events as look:
            _train_splits(folder, plan, dataset, splits, unfinished, count, wish, look)
        put_together(folder, dataset, splits)
        summary = summarise(folder, seconds=time.perf_counter() - begun, jobs=count, threads=threads)
        finish_report(folder, summary, facts, environment)
        return summary


def _train_splits(
    folder: RunFolder,
    plan: Plan,
    dataset: NodeDataset,
    splits: list[Split],
    unfinished: list[int],
    jobs: int,
    wish: Wish,
    look: Callable[[], None],
) -> None:
    if not unfinished:
        return
    show, close = _progress(plan, len(unfinished), look)
    try:
        if jobs > 1:
            write_training_data(dataset, folder.inputs)
            run_workers(folder, jobs, wish, show)
            return
        inputs = make_inputs(dataset, plan.train)
        for number in unfinished:
            files = folder.split(number)
            with locked(files.path / "lock", wait=60.0) as mine:  # a worker of a killed parent notices within an epoch
                if not mine:
                    raise UsageError(f"Split {number} in '{folder.path}' {_BUSY}")
                if not files.finished:
                    train_split(
                        files,
                        number,
                        plan,
                        dataset,
                        inputs,
                        splits[number],
                        watch=show,
                        should_stop=wish,
                    )
    finally:
        folder.inputs.unlink(missing_ok=True)
        close()


def _progress(
    plan: Plan, splits: int, look: Callable[[], None]
) -> tuple[Callable[[JsonObject], None], Callable[[], None]]:
    """A bar over all epochs of all unfinished splits, with the last loss and validation score; calls ``look`` too."""
    bar = DelayedBar("Training", splits * plan.train.epochs, in_bytes=False)
    done: dict[int, int] = {}

    def show(record: JsonObject) -> None:
        done[record["split"]] = record["epoch"]
        name, value = next(iter(record["valid"].items()))
        score = "" if value is None else f", validation {name} {value:.3g}"
        note = f" split {record['split']}, epoch {record['epoch']}, loss {record['loss']:.3g}{score}"
        bar.show(sum(done.values()), note)
        look()

    return show, bar.close


def put_together(folder: RunFolder, dataset: NodeDataset, splits: list[Split]) -> None:
    """All epochs in one file, predictions of all models, and the pictures."""
    from edhnn.training import pictures  # matplotlib takes half a second to import

    plan, facts = folder.plan()
    models = load_models(folder.path)
    metric = models.first.objective.metric
    finished = [folder.split(number) for number in range(plan.num_splits)]
    curves = [read_metrics(split, metric) for split in finished]
    with atomic_file(folder.path / "metrics.jsonl") as temporary, temporary.open("wb") as stream:
        for split in finished:
            stream.write(split.metrics.read_bytes())
    answers = [member.answers(dataset) for member in models.members]
    held_out = _held_out(answers, splits)
    table = prediction_table(dataset, mean_of(answers), models.first, held_out=held_out, labels=True)
    write_table(table, folder.path / "predictions.csv")
    title = f"{plan.model} on {facts['dataset']['name']}"
    pictures.save_figure(pictures.learning_curve(curves, metric, title), folder.path / "learning-curve.png")
    y = labels_of(dataset)
    if dataset.task == "regression":
        true = torch.cat([y[split.test].ravel() for split in splits])
        said = torch.cat([answer[split.test].ravel() for split, answer in zip(splits, answers, strict=True)])
        known = ~true.isnan()
        figure = pictures.error_picture(true[known].tolist(), said[known].tolist(), title)
    else:
        counts = _confusion(answers, splits, y, len(class_names(models.first)))
        figure = pictures.confusion_picture(counts, class_names(models.first), f"{title}: test nodes of all splits")
    pictures.save_figure(figure, folder.path / "confusion.png")


def _held_out(answers: list[torch.Tensor], splits: list[Split]) -> torch.Tensor:
    """The mean over the splits in which a node was a test node; NaN if it never was."""
    total = torch.zeros_like(answers[0], dtype=torch.float64)
    times = torch.zeros(len(total), 1, dtype=torch.float64)
    for answer, split in zip(answers, splits, strict=True):
        total[split.test] += answer[split.test].double()
        times[split.test] += 1
    return torch.where(times > 0, total / times, torch.nan)


def _confusion(answers: list[torch.Tensor], splits: list[Split], y: torch.Tensor, classes: int) -> IntArray:
    """Test nodes by true and predicted class; for several labels at once, by label: of those that hold, said or not."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for answer, split in zip(answers, splits, strict=True):
        true, said = y[split.test], answer[split.test]
        if true.dim() == 1:
            known = true >= 0
            np.add.at(counts, (true[known].numpy(), said.argmax(dim=1)[known].numpy()), 1)
        else:
            counts += ((true == 1).double().T @ (said >= 0.5).double()).long().numpy()
    return counts


def finish_report(folder: RunFolder, summary: RunSummary, facts: JsonObject, environment: JsonObject) -> None:
    """The summary and the page."""
    from edhnn.training.report import write_report

    pictures = [folder.path / "learning-curve.png", folder.path / "confusion.png"]
    write_report(summary, facts, environment, pictures, folder.path / "report.html")
    write_json(summary.to_json(), folder.path / "summary.json")
