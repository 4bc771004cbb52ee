"""The fuzzer finds planted faults of every sort, and none in a short run over all kinds of input."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz import fuzzer
from tests.fuzz.examples import KINDS
from tests.fuzz.fuzzer import PROBLEMS, fuzz, make_examples, write_input

ROOT = Path(__file__).parents[2]
EVERYDAY = 2 * len(KINDS)
"""Inputs of the everyday run, which takes about five seconds on an idle machine."""


def describe(outcome):
    return "\n".join(f"{one.kind} {one.number}: {one.problem}: {one.detail}" for one in outcome.findings)


def test_no_broken_input_has_a_wrong_outcome(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", str(EVERYDAY), "--out", str(tmp_path / "found")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    total = next(line for line in done.stdout.splitlines() if line.startswith("│ all"))
    inputs, accepted = (int(cell) for cell in total.split("│")[2:4])
    assert inputs == EVERYDAY
    assert 0 < accepted < EVERYDAY


def faulty():
    """Have another fault in each input, none in the last."""
    fault = dict(enumerate(PROBLEMS)).get(int(Path.cwd().parent.name.partition("-")[0]))
    if fault == "foreign exception":
        raise ZeroDivisionError
    if fault == "crash":
        os.abort()
    elif fault == "hang":
        time.sleep(60)
    elif fault == "memory":
        b"x" * (900 * 2**20)  # a fork shares the libraries, so that it starts with less than its parent has
    elif fault == "control characters":
        sys.stderr.write("\x1b[31m")
    elif fault == "non-finite number":
        Path("scores.csv").write_text("node,score\na,nan\n")
    sys.exit(0 if fault == "non-finite number" else 1)


def test_planted_faults_are_found_and_their_inputs_saved(tmp_path, monkeypatch):
    fuzzer.preload()
    now = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    monkeypatch.setattr(fuzzer, "MEMORY", now + 200 * 2**20)
    outcome = fuzz(["seed table"], inputs=len(PROBLEMS) + 1, out=tmp_path, limit=1.5, command=faulty)
    found = sorted((one.number, one.problem) for one in outcome.findings)
    assert found == list(enumerate(PROBLEMS)), describe(outcome)
    assert {path.name for path in tmp_path.iterdir()} == {f"seed-table-{number}" for number, _ in found}
    for saved in tmp_path.iterdir():
        assert (saved / "command.txt").read_text().startswith("edhnn diffuse t.csv --seeds")
        assert (saved / "t.csv").is_file()


def test_the_inputs_depend_on_seed_and_number_only(tmp_path, monkeypatch):
    kinds = ["CSV", "HIF", "legacy pickle", "experiment"]
    examples = make_examples(kinds)

    def inputs(name, seed):
        found = []
        for number in range(12):
            monkeypatch.chdir(tmp_path)
            folder = tmp_path / f"{name}-{number}"
            words = write_input(examples, seed, number, folder)
            found.append((words, {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}))
        return found

    assert inputs("one", 0) == inputs("two", 0) != inputs("three", 1)
