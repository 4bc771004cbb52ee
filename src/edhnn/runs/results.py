"""The results of a run as files: predictions, pictures, a summary and a page.

The summary has the mean and the sample standard deviation over the splits (Paper: Table 2's entries), the score over
all test nodes with an interval, floors beside it, and precision and recall by class (`edhnn.runs.scores`).
"""

from __future__ import annotations

import base64
import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from edhnn import kernels, notebook
from edhnn.data.dataset import UNLABELLED, NodeDataset
from edhnn.data.limits import size_in_words
from edhnn.data.splits import Split
from edhnn.io.files import atomic_file
from edhnn.io.json_files import finite, write_json
from edhnn.io.tables.writer import id_column, write_table
from edhnn.runs.folder import RunFolder, TrainedSplit
from edhnn.runs.plan import Plan
from edhnn.runs.predict import mean_of
from edhnn.runs.scores import FLOOR_WORDS, ClassScore, FloorScore, Score, Scores, score_run, verdict_words
from edhnn.training.objective import labels_of
from edhnn.training.pretrained import Pretrained
from edhnn.typing import IntArray, JsonObject

_YES = 0.5
_MANY_NAMES = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartScore:
    """What a part of a model is worth by itself, as means over the splits.

    Attributes:
        name: The name of the part.
        weight: Its weight in the answer.
        unused: The number of splits in which it has no weight, because it adds nothing.
        valid: Its validation metric.
        test: Its test metric.
    """

    name: str
    weight: float
    unused: int
    valid: float
    test: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The results of a run.

    Attributes:
        dataset: Name of the dataset.
        model: Name of the model.
        task: The task.
        metric: Metric of the values below: accuracy, micro-F1 (both in percent), or an error in units of the labels.
        test_mean: Mean over the splits of the test metric at the selected epoch.
        test_std: Its sample standard deviation; ``None`` with one split.
        test: The test metric of each split.
        valid: The validation metric of each split at that epoch.
        best_epoch: The selected epoch of each split.
        cut: How many splits ended at the last epoch allowed while they were still improving.
        split_seconds: Training time of each split.
        seconds: Wall time of this call.
        num_parameters: Number of learned parameters.
        peak_memory: Largest memory of a training process, in bytes.
        jobs: Number of training processes.
        threads: Threads of each process.
        kernels: The kernels that ran.
        origin: Source of the model's sizes.
        run: The run folder.
        protocol: ``splits`` (random), ``folds`` or ``given``.
        score: The metric over all test nodes, with an interval if each is a test node of one split only.
        floors: The same for the majority class, the features alone and a vote of the neighbours.
        classes: Precision and recall by class.
        notes: What the user should know about the splits.
        parts: The worth of each part of a model of several parts (``auto``); empty for other models.
    """

    dataset: str
    model: str
    task: str
    metric: str
    test_mean: float
    test_std: float | None
    test: list[float]
    valid: list[float]
    best_epoch: list[int]
    cut: int
    split_seconds: list[float]
    seconds: float
    num_parameters: int
    peak_memory: int | None
    jobs: int
    threads: int
    kernels: str
    origin: str
    run: str
    protocol: str
    score: Score
    floors: list[FloorScore]
    classes: list[ClassScore]
    notes: list[str]
    parts: list[PartScore] = field(default_factory=list)

    def shown(self, value: float) -> str:
        """Format a value of the metric: two decimals of a percentage, four digits of an error."""
        return f"{value:.4g}" if self.task == "regression" else f"{value:.2f}"

    @property
    def unit(self) -> str:
        """The unit of the metric."""
        return "" if self.task == "regression" else " %"

    @property
    def headline(self) -> str:
        """The score in words: over all test nodes of folds, else the mean and the deviation over splits."""
        if self.protocol == "folds":
            return f"{self.shown(self.score.value)}{self.unit}"
        deviation = "" if self.test_std is None else f" ± {self.shown(self.test_std)}"
        return f"{self.shown(self.test_mean)}{deviation}{self.unit}"

    @property
    def interval(self) -> str | None:
        """The interval of the score in words, if there is one."""
        if self.score.low is None or self.score.high is None:
            return None
        return f"{self.shown(self.score.low)} to {self.shown(self.score.high)}{self.unit}"

    @property
    def verdict(self) -> str:
        """What the comparisons with the floors show."""
        return verdict_words(self.floors, self.score.num_nodes)

    @property
    def piece(self) -> str:
        """The word for one of the splits: split or fold."""
        return "fold" if self.protocol == "folds" else "split"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [(self.metric.replace("_", " "), self.headline)]
        if self.interval is not None:
            rows.append(("95 % interval", self.interval))
        rows += [
            (FLOOR_WORDS[floor.name][0], f"{self.shown(floor.value)}{self.unit}")
            for floor in self.floors
            if floor.value is not None
        ]
        rows += [
            (f"{self.piece}s", f"{len(self.test)}: {', '.join(map(self.shown, self.test))}"),
            ("selected epochs", ", ".join(map(str, self.best_epoch))),
            ("parameters", self.num_parameters),
            ("seconds", f"{self.seconds:.1f}"),
            ("folder", self.run),
        ]
        rows += [("in words", self.verdict)] if self.verdict else []
        return notebook.table(f"{self.model} on {self.dataset}", rows + [("note", note) for note in self.notes])

    def to_json(self) -> JsonObject:
        """Return the summary as JSON."""
        content: JsonObject = finite(asdict(self))
        if not self.parts:
            del content["parts"]
        return content


def write_results(
    folder: RunFolder,
    plan: Plan,
    record: JsonObject,
    environment: JsonObject,
    dataset: NodeDataset,
    splits: Sequence[Split],
    trained: Sequence[TrainedSplit],
    notes: Sequence[str] = (),
    *,
    start: float,
) -> RunSummary:
    """Write the results of a finished run: all epochs, predictions, pictures, summary and page.

    With folds, ``out-of-fold.csv`` has every labelled node with the answer of the model that has not seen it.

    Args:
        folder: The run's folder.
        plan: The plan of the run.
        record: The content of ``config.json``.
        environment: The content of ``environment.json``.
        dataset: The dataset.
        splits: The splits.
        trained: The trained splits.
        notes: Notes about the splits.
        start: Start of the call, by `time.perf_counter`.
    """
    with atomic_file(folder.path / "metrics.jsonl") as temporary, temporary.open("wb") as stream:
        for number in range(len(splits)):
            stream.write(folder.split(number).metrics.read_bytes())
    answers = [split.model.objective.answers(split.outputs) for split in trained]
    first, held_out = trained[0].model, _held_out(answers, splits)
    table = prediction_table(dataset, mean_of(answers), first, held_out=held_out, labels=True)
    write_table(table, folder.path / "predictions.csv")
    if plan.protocol == "folds":
        write_table(_out_of_fold_table(dataset, held_out, first, splits), folder.path / "out-of-fold.csv")
    objectives = [split.model.objective for split in trained]
    scores = score_run(dataset, splits, objectives, answers, class_names(first), group=plan.group)
    pictures = _write_pictures(folder, f"{plan.model} on {dataset.name}", dataset, splits, trained, answers)
    summary = _summarise(
        folder,
        plan,
        dataset,
        [split.result for split in trained],
        environment,
        scores,
        notes,
        time.perf_counter() - start,
    )
    _write_page(summary, record, environment, pictures, folder.path / "report.html")
    write_json(summary.to_json(), folder.path / "summary.json")
    return summary


def _summarise(
    folder: RunFolder,
    plan: Plan,
    dataset: NodeDataset,
    results: Sequence[JsonObject],
    environment: JsonObject,
    scores: Scores,
    notes: Sequence[str],
    seconds: float,
) -> RunSummary:
    task, metric = str(dataset.task), results[0]["metric"]
    factor = 1.0 if task == "regression" else 100.0
    test, valid = (
        [factor * (math.nan if result[part][metric] is None else result[part][metric]) for result in results]
        for part in ("test", "valid")
    )
    peaks = [result["peak_memory"] for result in results if result["peak_memory"] is not None]
    return RunSummary(
        dataset=dataset.name,
        model=plan.model,
        task=task,
        metric=metric,
        test_mean=statistics.fmean(test),
        test_std=statistics.stdev(test) if len(test) > 1 else None,
        test=test,
        valid=valid,
        best_epoch=[result["best_epoch"] for result in results],
        cut=sum(bool(result.get("cut", False)) for result in results),
        split_seconds=[result["seconds"] for result in results],
        seconds=round(seconds, 3),
        num_parameters=results[0]["num_parameters"],
        peak_memory=max(peaks) if peaks else None,
        jobs=environment["jobs"],
        threads=environment["threads"],
        kernels=kernels.active(),
        origin=plan.origin,
        run=str(folder.path),
        protocol=plan.protocol,
        score=scores.score,
        floors=scores.floors,
        classes=scores.classes,
        notes=list(notes),
        parts=_part_scores(results, metric, factor),
    )


def _part_scores(results: Sequence[JsonObject], metric: str, factor: float) -> list[PartScore]:
    """Average the worth of each part over the splits."""
    parts = zip(*(result["parts"]["each"] for result in results if "parts" in result), strict=True)

    def mean(values: Iterable[float | None]) -> float:
        return factor * statistics.fmean(math.nan if value is None else value for value in values)

    return [
        PartScore(
            name=part[0]["name"],
            weight=statistics.fmean(one["weight"] for one in part),
            unused=sum(not one["weight"] for one in part),
            valid=mean(one["valid"][metric] for one in part),
            test=mean(one["test"][metric] for one in part),
        )
        for part in parts
    ]


def _held_out(answers: Sequence[Tensor], splits: Sequence[Split]) -> Tensor:
    """Average the answers over the splits in which a node is a test node; NaN if there is no such split."""
    total = torch.zeros_like(answers[0], dtype=torch.float64)
    times = torch.zeros(len(total), 1, dtype=torch.float64)
    for answer, split in zip(answers, splits, strict=True):
        total[split.test] += answer[split.test].double()
        times[split.test] += 1
    return torch.where(times > 0, total / times, torch.nan)


def _out_of_fold_table(dataset: NodeDataset, held_out: Tensor, model: Pretrained, splits: Sequence[Split]) -> pa.Table:
    """Make a table with a row per labelled node: the answer of the model that has not seen it, and its fold."""
    fold = torch.full((dataset.hypergraph.num_nodes,), -1)
    for number, split in enumerate(splits):
        fold[split.test] = number
    table = prediction_table(dataset, held_out, model, labels=True)
    return table.append_column("fold", pa.array(fold.numpy())).filter(pa.array((fold >= 0).numpy()))


def _write_pictures(
    folder: RunFolder,
    title: str,
    dataset: NodeDataset,
    splits: Sequence[Split],
    trained: Sequence[TrainedSplit],
    answers: Sequence[Tensor],
) -> list[Path]:
    """Draw the learning curves, and the errors or the confusion of all test nodes."""
    from edhnn.plotting import training as pictures  # matplotlib takes half a second to import
    from edhnn.plotting.style import save_figure

    model = trained[0].model
    curves = pictures.learning_curve([split.epochs for split in trained], model.objective.metric, title)
    y = labels_of(dataset)
    if dataset.task == "regression":
        true = torch.cat([y[split.test].ravel() for split in splits])
        predicted = torch.cat([answer[split.test].ravel() for split, answer in zip(splits, answers, strict=True)])
        known = ~true.isnan()
        errors = pictures.error_picture(true[known].tolist(), predicted[known].tolist(), title)
    else:
        names = class_names(model)
        counts = _confusion(answers, splits, y, len(names))
        errors = pictures.confusion_picture(counts, names, f"{title}: all test nodes")
    files = [folder.path / "learning-curve.png", folder.path / "confusion.png"]
    for figure, path in zip((curves, errors), files, strict=True):
        save_figure(figure, path)
    return files


def _confusion(answers: Sequence[Tensor], splits: Sequence[Split], y: Tensor, classes: int) -> IntArray:
    """Count test nodes by true and predicted class; for several labels at once, by true and predicted label."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for answer, split in zip(answers, splits, strict=True):
        true, predicted = y[split.test], answer[split.test]
        if true.dim() == 1:
            known = true != UNLABELLED
            np.add.at(counts, (true[known].numpy(), predicted.argmax(dim=1)[known].numpy()), 1)
        else:
            counts += ((true == 1).double().T @ (predicted >= _YES).double()).long().numpy()
    return counts


def prediction_table(
    dataset: NodeDataset, answers: Tensor, model: Pretrained, *, held_out: Tensor | None = None, labels: bool = False
) -> pa.Table:
    """Make a table with a row per node: ``node``, ``prediction``, and the probability of each class (or label).

    Args:
        dataset: The dataset, with ids and labels.
        answers: Probabilities or values, a row per node.
        model: A model, with the task and the class names.
        held_out: Answers of the models that were not trained on the node; NaN if there is no such model.
        labels: Whether the table also has the known labels.
    """
    columns: dict[str, Any] = {"node": id_column(dataset.node_ids)}
    names = class_names(model)
    if labels and dataset.y is not None:
        columns |= answer_columns(dataset.y, "label", model, names)
    columns |= answer_columns(answers, "prediction", model, names)
    if held_out is not None:
        columns |= answer_columns(held_out, "held_out_prediction", model, names)
    if model.objective.task != "regression":
        columns |= {f"p({name})": pa.array(answers[:, k].numpy()) for k, name in enumerate(names)}
    return pa.table(columns)


def class_names(model: Pretrained) -> list[str]:
    """Return the class names as text, or the class numbers if there are no names."""
    return [str(name) for name in model.class_names or range(model.model.num_classes)]


def answer_columns(values: Tensor, title: str, model: Pretrained, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return answers or labels as table columns, in the values of the training data; empty if unknown."""
    task = model.objective.task
    if task == "regression":
        table = values[:, None] if values.dim() == 1 else values
        numbers = [[None if value != value else value for value in column] for column in table.T.tolist()]
        targets = model.label_names or range(len(numbers))
        return {
            f"{title}_{name}" if len(numbers) > 1 else title: pa.array(column, pa.float64())
            for name, column in zip(targets, numbers, strict=True)
        }
    if task == "multilabel":
        rows = [
            None if all(value != value for value in row) else ";".join(
                name for name, value in zip(names, row, strict=True) if value >= _YES
            )
            for row in values.tolist()
        ]  # fmt: skip
        return {title: pa.array(rows, pa.string())}
    if values.is_floating_point():
        unknown = values.isnan().any(dim=1)
        values = values.nan_to_num().argmax(dim=1).masked_fill(unknown, UNLABELLED)
    originals = model.class_names or tuple(range(model.model.num_classes))
    if all(isinstance(name, int) for name in originals):
        return {title: pa.array([None if k < 0 else originals[k] for k in values.tolist()], pa.int64())}
    return {title: pa.array([None if k < 0 else names[k] for k in values.tolist()], pa.string())}


def _write_page(
    summary: RunSummary, record: JsonObject, environment: JsonObject, pictures: Sequence[Path], path: Path
) -> None:
    """Write the page: the result, the pictures, the splits, and the settings that repeat the run."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("edhnn.runs", ""), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    page = templates.get_template("report.html.j2").render(
        summary=summary,
        unit=summary.unit,
        floor_words=FLOOR_WORDS,
        memory="-" if summary.peak_memory is None else size_in_words(summary.peak_memory),
        pictures={picture.stem: base64.b64encode(picture.read_bytes()).decode() for picture in pictures},
        splits=list(zip(summary.test, summary.valid, summary.best_epoch, summary.split_seconds, strict=True)),
        data={name: value for name, value in record["dataset"].items() if name != "class_names"},
        options=record["options"],
        train={**record["train"], "seed": record["seed"]},
        environment=environment,
        shown=_shown,
    )
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _shown(value: object) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    more = f", ... ({len(value):,} in all)" if len(value) > _MANY_NAMES else ""
    return ", ".join(map(str, value[:_MANY_NAMES])) + more
