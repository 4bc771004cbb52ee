"""One split of a run: trained, checkpointed every few seconds, and finished by its ``result.json``."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import EdhnnError
from edhnn.training.divergence import DivergedError
from edhnn.training.fit import EpochRecord, fit_inputs
from edhnn.training.inputs import Inputs
from edhnn.training.json_file import write_json
from edhnn.training.plan import Plan
from edhnn.training.pretrained import Pretrained, is_pretrained
from edhnn.training.run_folder import SplitFolder, finite, json_line
from edhnn.training.state import FitState, read_state, write_state
from edhnn.training.tasks import make_objective
from edhnn.typing import JsonObject

CHECKPOINT_SECONDS: Final = 5.0

Watcher = Callable[[JsonObject], None]
"""Sees every line of ``metrics.jsonl``."""


class StoppedError(EdhnnError):
    """Training was asked to stop, and has saved what is needed to go on."""

    exit_code = 130


def train_split(
    folder: SplitFolder,
    number: int,
    plan: Plan,
    dataset: NodeDataset,
    inputs: Inputs,
    split: Split,
    *,
    watch: Watcher | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train a split from where its folder says it is to its end.

    Args:
        folder: The split's files.
        number: Of the split.
        plan: What to train.
        dataset: The dataset.
        inputs: Its transformed hypergraph and features.
        split: The parts.
        watch: Sees every epoch.
        should_stop: Asked after every epoch; if so, the state is saved and `StoppedError` raised.

    Raises:
        StoppedError: if asked to stop.
        DivergedError: if the loss stops being finite; the best model so far is in the folder.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    state = read_state(folder.state) if folder.state.is_file() else None
    folder.cut_metrics(0 if state is None else state.epoch)
    objective = make_objective(dataset, split.train, plan.train.regression_loss)
    model = plan.make_model(dataset, objective, number)
    pretrained = Pretrained(
        name=plan.model,
        model=model,
        objective=objective,
        config=plan.train,
        class_names=dataset.class_names,
        feature_names=dataset.feature_names,
        scaling=inputs.scaling,
        reading=dataset.reading,
    )
    saved = time.monotonic()
    with folder.metrics.open("a", encoding="utf-8") as log:

        def each_epoch(record: EpochRecord, snapshot: Callable[[], FitState]) -> None:
            nonlocal saved
            line = {"split": number, **asdict(record)}
            log.write(json_line(line))
            log.flush()
            stop = should_stop()
            if stop or time.monotonic() - saved >= CHECKPOINT_SECONDS:
                os.fsync(log.fileno())  # the checkpoint may not be ahead of the lines it counts on
                write_state(snapshot(), folder.state)
                saved = time.monotonic()
            if watch is not None:
                watch(line)
            if stop:
                raise StoppedError(f"Stopped at split {number}, epoch {record.epoch}; all of it is saved.")

        try:
            result = fit_inputs(
                model, inputs, dataset, split, plan.train, seed=plan.split_seed(number), watch=each_epoch, state=state
            )
        except DivergedError as error:
            if error.best_epoch:
                _save(pretrained, folder.model)
            raise
    _save(pretrained, folder.model)
    facts = {
        "split": number,
        "best_epoch": result.best_epoch,
        "epochs": result.epochs,
        "metric": objective.metric,
        "train": result.train,
        "valid": result.valid,
        "test": result.test,
        "num_parameters": model.num_parameters(),
        "seconds": round(result.seconds, 3),
        "peak_memory": peak_memory(),
    }
    write_json(finite(facts), folder.result)
    folder.state.unlink(missing_ok=True)


def _save(pretrained: Pretrained, target: Path) -> None:
    """Save a split's model; what is left there of one without its weights is the run's own."""
    if not is_pretrained(target):
        shutil.rmtree(target, ignore_errors=True)
    pretrained.save_pretrained(target, overwrite=True)


def forget_peak_memory() -> None:
    """Count the most memory from here on, where the system can: what a process did before is not the next job's."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> int | None:
    """The most memory this process has held, in bytes; ``None`` where the system does not say."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
