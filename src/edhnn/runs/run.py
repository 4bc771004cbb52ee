"""A run: a model trained on several splits, in this process or in several, resumable at every moment.

`train` is the whole run, `train_split` one split, which is checkpointed every few seconds and finished by its
``result.json``. With several jobs, `work` runs in worker processes (`edhnn.parallel.run_processes`). A worker locks
unfinished splits one after another, and exits when none is left or its parent is gone. A lock is released when its
process ends, so two processes never train the same split, not even after the parent was killed and the run resumed.

Number of jobs: splits share nothing, threads within a step share everything. So there are as many processes as cores,
each with one thread, as long as there are splits and enough memory. A single split uses all cores, and so does work
that takes less time than the start of a second Python.

Measured in turns on two idle cores, including the start of the processes (`benchmarks/jobs.py`, record
``benchmarks/results/jobs.json``): two processes of one thread take 1.11 times less time than one process of two threads
on Cora, and the same time on Senate (0.98). On busy cores the advantage is much larger, because threads wait for each
other.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import torch

from edhnn.data.dataset import NodeDataset
from edhnn.data.fingerprints import NodeHashes, node_hashes
from edhnn.data.splits import Split
from edhnn.doctor.cost import PROCESS_BYTES, count, total_memory
from edhnn.errors import DivergedError, StoppedError, UsageError
from edhnn.io.files import DelayedBar
from edhnn.io.json_files import finite, json_line, write_json
from edhnn.io.tensors import read_training_data, write_training_data
from edhnn.parallel import catch_signals, locked, run_processes
from edhnn.runs.environment import describe_environment
from edhnn.runs.folder import RunFolder, SplitFolder, TrainedSplit, read_metrics, read_split, write_nodes
from edhnn.runs.plan import Plan, make_plan
from edhnn.runs.results import RunSummary, write_results
from edhnn.runs.tensorboard import check_tensorboard, tensorboard_events
from edhnn.runtime import runtime_settings
from edhnn.training.beliefs import learn_knowledge
from edhnn.training.checkpoint import FitState, read_state, write_state
from edhnn.training.inputs import Device, Inputs, find_device, make_inputs, measure_range
from edhnn.training.loop import EpochRecord, fit_inputs
from edhnn.training.objective import Objective, check_split, check_trainable, labels_of, make_objective
from edhnn.training.pretrained import Pretrained, is_pretrained, model_sha256
from edhnn.training.structural_features import with_features
from edhnn.typing import JsonObject

CHECKPOINT_SECONDS: Final = 5.0
_FOREVER: Final = 1e9
_BUSY: Final = "is being trained by another process. Wait until it ends, or stop it."
_SHARE_OF_MEMORY = 0.6
_SHORT_WORK = 7e8

Watcher = Callable[[JsonObject], None]
"""Called with a line of ``metrics.jsonl``."""


def train(
    dataset: NodeDataset,
    plan: Plan | None = None,
    *,
    out: Path | str,
    resume: bool = False,
    jobs: int | None = None,
    splits: list[Split] | None = None,
    tensorboard: bool = False,
    device: Device = "cpu",
) -> RunSummary:
    """Train a model on several splits into a run folder (`edhnn.runs.folder`). Return the summary. Paper: Appendix F.3.

    Args:
        dataset: Hypergraph, features and labels.
        plan: Model, sizes, training, splits and seed; by default that of `make_plan`.
        out: The run folder.
        resume: Resume the run in the folder. It must have the same settings. Finished splits are not trained again.
        jobs: Number of splits trained at the same time, each in a process of one thread; by default `choose_jobs`
            decides. With 1 this process trains them, with all threads of torch.
        splits: The splits; by default those of the plan. A note about them, such as classes with few nodes, is a
            warning.
        tensorboard: Write events for TensorBoard during training, in the run folder's ``tensorboard``.
        device: The device: ``cpu``, ``cuda``, ``mps``, ... or ``auto``. It is not part of the plan: a run may be
            resumed on another device, and its files can be read on every machine.

    Raises:
        DataError: if the dataset cannot be trained on.
        UsageError: if the model cannot be built from its options, the folder holds another run, or the device is not
            available.
        MissingDependencyError: if ``tensorboard`` is set and TensorBoard is not installed.
        StoppedError: after Ctrl-C or termination; ``resume=True`` continues.
    """
    start = time.perf_counter()
    target = find_device(device)
    if tensorboard:
        check_tensorboard()
    dataset = with_features(dataset)
    plan = plan or make_plan(dataset)
    check_trainable(dataset)
    notes: tuple[str, ...] = ()
    if splits is None:
        splits, notes = plan.draw_splits(dataset)
        for note in notes:
            warnings.warn(note, stacklevel=2)
    if len(splits) != plan.num_splits:
        raise UsageError(f"The plan needs {plan.num_splits} splits. Got {len(splits)}.")
    for number, split in enumerate(splits):
        check_split(dataset, split, number, every_class=plan.protocol == "splits")
    if jobs is not None and jobs < 1:
        raise UsageError(f"`jobs=` must be at least 1. Got {jobs}.")
    inputs = make_inputs(dataset, plan.train).to(target)
    objectives = [make_objective(dataset, split.train, plan.train.regression_loss) for split in splits]
    plan.make_model(dataset, objectives[0], 0)  # a model that cannot be built raises before the folder exists
    nodes = node_hashes(dataset)
    folder, record = RunFolder(Path(out)), plan.to_json(dataset, splits, nodes)
    folder.begin(record, splits, resume=resume)
    with locked(folder.path / "lock") as acquired:
        if not acquired:
            raise UsageError(f"The run in '{folder.path}' {_BUSY}")
        folder.inputs.unlink(missing_ok=True)  # a killed parent does not delete it
        write_nodes(nodes, folder.nodes)
        unfinished = [number for number in range(plan.num_splits) if not folder.split(number).finished]
        workers = min(jobs or choose_jobs(dataset, plan, len(unfinished), target), max(len(unfinished), 1))
        environment = describe_environment(workers, 1 if workers > 1 else torch.get_num_threads(), target)
        write_json({**environment, "settings": runtime_settings()}, folder.path / "environment.json")
        trained: dict[int, TrainedSplit] = {}
        run = folder.sha256()
        events = tensorboard_events(folder, plan.num_splits) if tensorboard else nullcontext(lambda: None)
        with catch_signals() as stop, events as poll, _progress(plan, len(unfinished), poll) as show:
            if workers > 1:
                _train_in_processes(folder, dataset, workers, target, stop, show)
                unfinished = []
            for number in unfinished:
                files = folder.split(number)
                with locked(files.path / "lock", wait=60.0) as acquired:  # a worker of a killed parent exits soon
                    if not acquired:
                        raise UsageError(f"Split {number} in '{folder.path}' {_BUSY}")
                    if not files.finished:
                        objective, split = objectives[number], splits[number]
                        trained[number] = train_split(
                            files, number, plan, dataset, inputs, split, objective,
                            run=run, watch=show, should_stop=stop, nodes=nodes,
                        )  # fmt: skip
        everything = [
            trained.get(number) or read_split(folder, number, inputs, dataset, nodes) for number in range(len(splits))
        ]
        return write_results(folder, plan, record, environment, dataset, splits, everything, notes, start=start)


def train_split(
    folder: SplitFolder,
    number: int,
    plan: Plan,
    dataset: NodeDataset,
    inputs: Inputs,
    split: Split,
    objective: Objective,
    *,
    run: str | None = None,
    watch: Watcher | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    nodes: NodeHashes | None = None,
) -> TrainedSplit:
    """Train a split to its end, from the checkpoint in its folder if there is one.

    Args:
        folder: The split's files.
        number: The split's number.
        plan: The plan of the run.
        dataset: The dataset.
        inputs: Its transformed hypergraph and features, on the training device.
        split: The parts.
        objective: The task, its targets scaled by the split's training nodes.
        run: The hash of the run (`RunFolder.sha256`), which the result records; ``None`` if there is no run.
        watch: Called after every epoch.
        should_stop: Called after every epoch. If it returns true, the state is saved and `StoppedError` is raised.
        nodes: The hashes of the dataset's nodes; made here if a model keeps those of its training nodes.

    Raises:
        StoppedError: if ``should_stop`` returned true.
        DivergedError: if the loss stops being finite; the best model so far is in the folder.
    """
    assert dataset.x is not None
    folder.path.mkdir(parents=True, exist_ok=True)
    model = plan.make_model(dataset, objective, number)
    state = read_state(folder.state, model) if folder.state.exists() else None
    folder.cut_metrics(0 if state is None else state.epoch)
    seed = plan.split_seed(number)
    knowledge = learn_knowledge(plan.train, inputs, split, labels_of(dataset), objective, seed)
    if knowledge is not None:
        hashes = node_hashes(dataset) if nodes is None else nodes
        knowledge = replace(knowledge, hashes=hashes[split.train.numpy()])
    pretrained = Pretrained(
        name=plan.model,
        model=model,
        objective=objective,
        config=plan.train,
        class_names=dataset.class_names,
        feature_names=dataset.feature_names,
        scaling=inputs.scaling,
        reading=dataset.reading,
        feature_range=measure_range(dataset.x),
        knowledge=knowledge,
    )
    epochs = [] if state is None else read_metrics(folder, objective.metric)
    saved = time.monotonic()
    with folder.metrics.open("a", encoding="utf-8") as log:

        def each_epoch(record: EpochRecord, snapshot: Callable[[], FitState]) -> None:
            nonlocal saved
            line: JsonObject = finite({"split": number, **asdict(record)})
            epochs.append(line)
            log.write(json_line(line))
            log.flush()
            stop = should_stop()
            if stop or time.monotonic() - saved >= CHECKPOINT_SECONDS:
                os.fsync(log.fileno())  # the lines of all epochs must be on the disk before their checkpoint
                write_state(snapshot(), folder.state)
                saved = time.monotonic()
            if watch is not None:
                watch(line)
            if stop:
                raise StoppedError(f"Stopped at split {number}, epoch {record.epoch}. All epochs are saved.")

        try:
            fitted = fit_inputs(
                model, inputs, dataset, split, objective, plan.train,
                seed=seed, watch=each_epoch, state=state, knowledge=knowledge,
            )  # fmt: skip
        except DivergedError as error:
            if error.best_epoch:
                _save(pretrained, folder.model)
            raise
    _save(pretrained, folder.model)
    result: JsonObject = finite(
        {
            "split": number,
            "best_epoch": fitted.best_epoch,
            "epochs": fitted.epochs,
            **({} if plan.train.patience is None else {"cut": plan.train.was_cut(fitted.best_epoch, fitted.epochs)}),
            "metric": objective.metric,
            "train": fitted.train,
            "valid": fitted.valid,
            "test": fitted.test,
            "num_parameters": model.num_parameters(),
            "seconds": round(fitted.seconds, 3),
            **({} if fitted.parts is None else {"parts": fitted.parts}),
            "peak_memory": peak_memory(),
            "run_sha256": run,
            "model_sha256": model_sha256(folder.model),
        }
    )
    write_json(result, folder.result)
    folder.state.unlink(missing_ok=True)
    return TrainedSplit(pretrained, result, epochs, fitted.outputs)


def _save(pretrained: Pretrained, target: Path) -> None:
    """Save a split's model. A folder without weights, which a killed run leaves, is removed first."""
    if not is_pretrained(target):
        shutil.rmtree(target, ignore_errors=True)
    pretrained.save_pretrained(target, overwrite=True)


def _train_in_processes(
    folder: RunFolder,
    dataset: NodeDataset,
    count: int,
    device: torch.device,
    should_stop: Callable[[], bool],
    show: Watcher,
) -> None:
    """Train the unfinished splits in worker processes of one thread each, and show the last line of each split."""

    def poll() -> None:
        for path in sorted((folder.path / "splits").glob("*/metrics.jsonl")):
            with path.open("rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - 2000))
                lines = stream.read().split(b"\n")[:-1]
            with suppress(ValueError, IndexError):  # no line yet, or a line longer than the bytes read
                show(json.loads(lines[-1]))

    write_training_data(dataset, folder.inputs)
    try:
        run_processes(
            "edhnn.runs.run:work",
            [str(folder.path), str(device)],
            count=count,
            threads=1,
            should_stop=should_stop,
            look=poll,
        )
    finally:
        folder.inputs.unlink(missing_ok=True)


def work(path: str, device: str, should_stop: Callable[[], bool]) -> None:
    """Train splits that no other process has locked until none is left (the worker of `parallel.run_processes`)."""
    torch.set_num_threads(1)
    folder = RunFolder(Path(path))
    plan, _ = folder.plan()
    dataset, splits = read_training_data(folder.inputs), folder.read_splits()
    inputs, run = make_inputs(dataset, plan.train).to(find_device(device)), folder.sha256()
    nodes = folder.read_nodes()  # the dataset in the file has no ids
    for wait in (0.0, _FOREVER):  # first the free splits, then those that another process may give up
        for number, split in enumerate(splits):
            files = folder.split(number)
            if files.finished:
                continue
            with locked(files.path / "lock", wait=wait) as acquired:
                if acquired and not should_stop() and not files.finished:  # another process may have finished it
                    objective = make_objective(dataset, split.train, plan.train.regression_loss)
                    train_split(
                        files, number, plan, dataset, inputs, split, objective,
                        run=run, should_stop=should_stop, nodes=nodes,
                    )  # fmt: skip


@contextmanager
def _progress(plan: Plan, splits: int, poll: Callable[[], None]) -> Iterator[Watcher]:
    """Show a bar over all epochs of all unfinished splits, with the last loss and validation score; call ``poll``."""
    bar = DelayedBar("Training", splits * plan.train.epochs, in_bytes=False)
    done: dict[int, int] = {}

    def show(line: JsonObject) -> None:
        done[line["split"]] = line["epoch"]
        name, value = next(iter(line["valid"].items()))
        score = "" if value is None else f", validation {name} {value:.3g}"
        note = f" split {line['split']}, epoch {line['epoch']}, loss {line['loss']:.3g}{score}"
        bar.show(min(sum(done.values()), splits * plan.train.epochs), note)  # `auto` has the epochs of three networks
        poll()

    try:
        yield show
    finally:
        bar.close()


def choose_jobs(dataset: NodeDataset, plan: Plan, unfinished: int, device: torch.device | None = None) -> int:
    """Choose the number of processes. With 1 this process does the work, with all threads."""
    if device is not None and device.type != "cpu":  # processes would share the device's memory
        return 1
    counts = count(dataset)
    step = counts.step_bytes(int(plan.options.get("hidden", 64)), int(plan.options.get("num_iterations", 2)))
    work = unfinished * plan.train.epochs * step
    if unfinished < 2 or work < _SHORT_WORK:  # starting Python and torch again takes longer than that
        return 1
    memory = total_memory()
    each = PROCESS_BYTES + 2 * step + 4 * counts.nodes * counts.features  # 2: gradients and temporary tensors
    fitting = unfinished if memory is None else int(_SHARE_OF_MEMORY * memory) // each
    return max(1, min(cores(), fitting, unfinished))


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def forget_peak_memory() -> None:
    """Reset the peak of this process's memory if the system supports it, so that the next job is measured alone."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; ``None`` on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
