"""Run broken inputs through the command, each in its own process with limited time and memory, and judge the outcome.

The processes are forks of this one, which has imported everything, so an input takes milliseconds and a hang, a crash
or too much memory ends one process only. Input ``n`` depends on the seed and ``n`` alone.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import faulthandler
import gc
import importlib
import io
import json
import math
import os
import pickle
import random
import re
import resource
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import torch

from edhnn.cli.main import VERBS, load_verb, main
from edhnn.doctor import cost
from tests.fuzz.examples import KINDS, Example, Words
from tests.fuzz.mutations import break_example, options

SECONDS = 10.0
"""An input that takes longer, and then again three times longer, is a hang."""
MEMORY = 2**30
ADDRESS_SPACE = 2 * 2**30
"""What a process may map beyond what it has mapped at its start."""
PRELOADED = ("matplotlib.pyplot", "optuna", "plotly", "pyarrow.parquet", "sklearn.linear_model", "scipy.stats")
FOREIGN, UNUSABLE = 70, 99
"""Exit codes of a process: an exception left `main`; the fuzzer itself failed."""
EXIT_CODES = frozenset({0, 1, 2, 130})
PROBLEMS = ("foreign exception", "crash", "hang", "memory", "control characters", "non-finite number")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
NON_FINITE = re.compile(r"(?i)[│┃|]\s*[-+]?(nan|inf)\b")
NO_MEMORY = "Not enough memory"


@dataclass(frozen=True)
class Finding:
    """An input with a wrong outcome.

    Attributes:
        number: The number of the input.
        kind: Its kind.
        problem: One of `PROBLEMS`.
        detail: The exception, the code, the memory or the text.
        words: The command.
    """

    number: int
    kind: str
    problem: str
    detail: str
    words: Words


@dataclass
class Tally:
    """What happened to the inputs of one kind."""

    inputs: int = 0
    accepted: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    peak: int = 0


@dataclass
class Outcome:
    """The tallies by kind, and the findings."""

    tallies: dict[str, Tally]
    findings: list[Finding]


@dataclass
class Running:
    """A process and its input."""

    number: int
    kind: str
    folder: Path
    deadline: float
    limit: float


def input_of(examples: dict[str, list[Example]], seed: int, number: int) -> tuple[str, Example, random.Random]:
    """Return kind, example and generator of input ``number``."""
    kinds = list(examples)
    kind = kinds[number % len(kinds)]
    dice = random.Random(f"{seed} {number}")
    return kind, dice.choice(examples[kind]), dice


def write_input(examples: dict[str, list[Example]], seed: int, number: int, folder: Path) -> Words:
    """Write the files of an input into a new folder, which becomes the current one, and return its command."""
    _, example, dice = input_of(examples, seed, number)
    folder.mkdir(parents=True)
    os.chdir(folder)
    files, words = break_example(example, dice)
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    return words


def make_examples(kinds: Sequence[str]) -> dict[str, list[Example]]:
    """Make the examples of these kinds in another process, because this one must not start threads."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "examples")

        def make() -> None:
            examples = {}
            for kind in kinds:
                place = Path(folder, kind)
                place.mkdir()
                os.chdir(place)
                examples[kind] = list(KINDS[kind].examples())
            target.write_bytes(pickle.dumps(examples))

        pid = fork(make, Path(folder, "output"))
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"the examples cannot be made:\n{read_text(Path(folder, 'output.errors'))}")
        return pickle.loads(target.read_bytes())  # written above


def fork(work: Callable[[], None], output: Path) -> int:
    """Run ``work`` in a fork whose standard output and error are files: ``output``, ``output.errors``."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Python versions warn if there are threads
        pid = os.fork()
    if pid:
        return pid
    code = UNUSABLE
    try:
        os.setsid()
        faulthandler.disable()
        for target, path in ((0, os.devnull), (1, output), (2, f"{output}.errors")):
            flags = os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            opened = os.open(path, flags, 0o600)
            os.dup2(opened, target)
            os.close(opened)
        sys.stdout, sys.stderr = (io.TextIOWrapper(open(each, "wb", closefd=False), "utf-8") for each in (1, 2))  # noqa: SIM115
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    raise AssertionError


def refuse_network(*_: object) -> NoReturn:
    raise OSError(errno.ENETUNREACH, "the fuzzer has no network")


def one_second(work: Callable[[], None], threads: set[int]) -> float:
    """Do the work once instead of measuring it for two seconds, as the forecast of `edhnn data doctor` does."""
    work()
    return 1.0


def use_input(
    examples: dict[str, list[Example]], seed: int, number: int, folder: Path, command: Callable[[], None]
) -> None:
    """Write an input and run its command, with limited memory and without a network."""
    words = write_input(examples, seed, number, folder / "input")
    (folder / "words").write_bytes(pickle.dumps(words))
    shutil.copytree(folder / "input", folder / "work")
    os.chdir(folder / "work")
    for name in [name for name in os.environ if name.startswith(("EDHNN_", "XDG_"))]:
        del os.environ[name]
    os.environ |= {"HOME": str(folder / "work"), "COLUMNS": "120", "PYTHONWARNINGS": "ignore"}
    socket.socket.connect = socket.getaddrinfo = refuse_network  # type: ignore[assignment, method-assign]
    torch.set_num_threads(1)
    cost._best_seconds = one_second  # type: ignore[attr-defined]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["edhnn", *words]
    try:
        command()
    except Exception:
        traceback.print_exc()
        sys.exit(FOREIGN)


def judge(kind: str, words: Words, folder: Path, code: int | None, peak: int) -> Iterator[tuple[str, str]]:
    """Yield each problem of an outcome with its detail. ``code`` is negative for a signal, none for a hang."""
    output, errors = (read_text(folder / name) for name in ("output", "output.errors"))
    if code is None:
        yield "hang", "no end in time, twice"
    elif code == UNUSABLE:
        raise RuntimeError(f"the fuzzer failed on an input of kind {kind}:\n{errors}")
    elif code == FOREIGN or "Traceback (most recent call last)" in errors:
        yield "foreign exception", last_frame(errors)
    elif code not in EXIT_CODES:
        yield "crash", f"signal {-code}" if code < 0 else f"exit code {code}"
    too_much = peak > MEMORY or (NO_MEMORY in errors and code == 1)
    if too_much and not (KINDS[kind].may_ask_for_memory and NO_MEMORY in errors):
        yield "memory", f"{peak / 2**20:.0f} MiB; {errors.strip()[-200:]}"
    for name, text in (("output", output), ("errors", errors)):
        if code in EXIT_CODES and (found := CONTROL.search(text)):
            around = text[max(found.start() - 30, 0) : found.end() + 30]
            yield "control characters", f"{name}: {around!r}"
            break
    if code == 0 and (where := non_finite_answer(words, output, folder)):
        yield "non-finite number", where


def read_text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""


def last_frame(errors: str) -> str:
    """Return the exception and the last line of this package that a traceback names."""
    lines = errors.strip().splitlines() or ["nothing"]
    frames = [line.strip() for line in lines if "edhnn/" in line and line.lstrip().startswith("File ")]
    place = frames[-1].split("edhnn/")[-1].replace('", line ', ":") if frames else "?"
    exception = next(
        (line for line in reversed(lines) if re.match(r"[A-Za-z_.]+(Error|Exception|Warning)?\b", line)), ""
    )
    return f"{place}: {exception[:160]}"


def non_finite_answer(words: Words, output: str, folder: Path) -> str:
    """Return where an answer has a number that is not finite; nothing if it has none."""

    def refuse(constant: str) -> NoReturn:
        raise ArithmeticError(constant)

    if "--json" not in words and (found := NON_FINITE.search(output)):
        return f"standard output: {found[0]!r}"
    documents = {"standard output": output} if "--json" in words else {}
    for path in sorted((folder / "work").rglob("*")):
        before = folder / "input" / path.relative_to(folder / "work")
        if not path.is_file() or (before.is_file() and before.read_bytes() == path.read_bytes()):
            continue
        if path.suffix == ".json":
            documents[path.name] = read_text(path)
        elif path.suffix == ".csv":
            for row in csv.DictReader(io.StringIO(read_text(path))):
                for column, cell in row.items():
                    if column and (column == "score" or column.startswith("p(")) and not is_finite(cell):
                        return f"{path.name}, {column}: {cell}"
    for name, text in documents.items():
        try:
            json.loads(text, parse_constant=refuse)
        except ArithmeticError as error:
            return f"{name}: {error}"
        except ValueError:
            continue
    return ""


def is_finite(cell: Any) -> bool:
    try:
        return math.isfinite(float(cell))
    except (TypeError, ValueError):
        return False


def preload() -> None:
    """Import what the command imports late, so that no input has to."""
    for verb in VERBS:
        load_verb(verb)
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def fuzz(
    kinds: Sequence[str],
    *,
    seconds: float = math.inf,
    inputs: float = math.inf,
    seed: int = 0,
    out: Path,
    processes: int = 2,
    first: int = 0,
    limit: float = SECONDS,
    command: Callable[[], None] = main,
) -> Outcome:
    """Try inputs until time or number is reached, and save those with a wrong outcome.

    Args:
        kinds: The kinds of input, taken in turn.
        seconds: When to start no more inputs.
        inputs: How many inputs to try.
        seed: The seed of the inputs.
        out: Folder of the findings; ``KIND-NUMBER`` holds the files and ``command.txt``.
        processes: How many inputs to run at the same time.
        first: The number of the first input.
        limit: Seconds for an input.
        command: What to run with ``sys.argv``.
    """
    preload()
    options()
    examples = make_examples(kinds)
    outcome = Outcome({kind: Tally() for kind in kinds}, [])
    running: dict[int, Running] = {}
    again: list[int] = []
    number, end = first, time.monotonic() + seconds
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        while True:
            started = number - first < inputs and time.monotonic() < end
            while len(running) < processes and (again or started):
                chosen, allowed = (again.pop(), 3 * limit) if again else (number, limit)
                number += chosen == number
                kind, *_ = input_of(examples, seed, chosen)
                folder = Path(temporary, f"{chosen}-{allowed:g}")
                folder.mkdir()
                work = lambda: use_input(examples, seed, chosen, folder, command)  # noqa: B023, E731  # run at once
                pid = fork(work, folder / "output")
                running[pid] = Running(chosen, kind, folder, time.monotonic() + allowed, allowed)
                started = number - first < inputs and time.monotonic() < end
            if not running:
                return outcome
            for pid in list(running):
                one = running[pid]
                ended, status, usage = os.wait4(pid, os.WNOHANG)
                code: int | None = None
                if not ended:
                    if time.monotonic() < one.deadline:
                        continue
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                    _, status, usage = os.wait4(pid, 0)
                else:
                    code = os.waitstatus_to_exitcode(status)
                del running[pid]
                if code is None and one.limit == limit:  # another program may have used the processor
                    again.append(one.number)
                    continue
                record(outcome, one, code, usage.ru_maxrss * 1024, out)
                shutil.rmtree(one.folder, ignore_errors=True)
            time.sleep(0.002)


def record(outcome: Outcome, one: Running, code: int | None, peak: int, out: Path) -> None:
    """Count an input, and save it if its outcome is wrong."""
    stored = one.folder / "words"
    words: Words = pickle.loads(stored.read_bytes()) if stored.is_file() else ()  # written by `use_input`
    tally = outcome.tallies[one.kind]
    tally.inputs += 1
    tally.accepted += code == 0
    tally.peak = max(tally.peak, peak)
    for problem, detail in judge(one.kind, words, one.folder, code, peak):
        tally.problems[problem] += 1
        outcome.findings.append(Finding(one.number, one.kind, problem, detail, words))
        target = out / f"{one.kind.replace(' ', '-')}-{one.number}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(one.folder / "input", target)
        shown = shlex.join(["edhnn", *words]).encode("utf-8", "surrogateescape")
        (target / "command.txt").write_bytes(shown + f"\n{problem}: {detail}\n".encode("utf-8", "backslashreplace"))
        shutil.copy(one.folder / "output.errors", target / "errors.txt")
