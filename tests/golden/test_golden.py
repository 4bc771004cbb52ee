"""The behaviour is frozen: the JSON of every verb, the files of a run, every model, the tables of the evidence.

Record an intended change in the CHANGELOG. Then

    EDHNN_UPDATE_GOLDEN=1 python -m pytest -n 0 tests/golden -m "slow or not slow"

writes the golden files again. Tolerances allow for another processor; `python -m tests.golden.exact` compares bits on
one machine.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch

from tests.golden.cases import (
    ALL_RECORDS,
    CASES,
    DONE,
    Case,
    alone_in,
    answer,
    call,
    differences,
    files_in,
    model_numbers,
    model_options,
    model_tensors,
    small_options,
    tiny_hypergraph,
    write_data,
)

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "files"
UPDATE = bool(os.environ.get("EDHNN_UPDATE_GOLDEN"))

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


def hold(name: str, found: object, **tolerances: object) -> None:
    """Compare with the golden file, or write it."""
    path = GOLDEN / f"{name}.json"
    if UPDATE:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = differences(json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(found)), **tolerances)
    assert not lines, "\n".join([f"'{path.name}' differs:", *lines[:20]])


def test_every_verb_gives_the_same_json(tmp_path):
    folder = tmp_path.resolve()
    write_data(folder)
    wrong = []
    with alone_in(folder):
        for case in CASES:
            if not case.slow:
                found = answer(case, folder)
                try:
                    hold(f"verb-{case.name}", found, rtol=case.rtol, atol=case.atol, free=case.free)
                except AssertionError as error:
                    wrong.append(str(error))
    assert not wrong, "\n\n".join(wrong)
    hold("files-of-a-run", {name: files_in(folder / name) for name in ("run", "run-hgnn", "report", "made-folder")})


@pytest.mark.slow
def test_every_slow_verb_gives_the_same_json(tmp_path):
    folder = tmp_path.resolve()
    write_data(folder)
    with alone_in(folder):
        for case in CASES:
            if case.slow:
                hold(f"verb-{case.name}", answer(case, folder), rtol=case.rtol, atol=case.atol, free=case.free)


def test_every_verb_of_the_command_has_a_case():
    words = {" ".join(case.words.split()[: 2 if case.words.startswith("data") else 1]) for case in CASES}
    verbs = {"models", "presets", "diffuse", "train", "tune", "predict", "evaluate", "run", "report"}
    assert words == verbs | {f"data {verb}" for verb in ("list", "info", "doctor", "clean", "convert", "fetch")}


def test_every_model_gives_the_same_outputs_and_gradients():
    hypergraph = tiny_hypergraph()
    found = {
        name: model_numbers(model_tensors(name, hypergraph, dtype=torch.float64, **small_options(options)))
        for name, options in model_options().items()
    }
    hold("models", found, rtol=1e-4, atol=1e-5)


def test_run_finds_every_record_done():
    found = {case.name: json.loads(call(f"{case.words} --results {ROOT / 'results'}")[1]) for case in DONE}
    assert sum(one["before"] for one in found.values()) == ALL_RECORDS
    assert all(one["done"] == one["failed"] == 0 for one in found.values())


@pytest.mark.slow
def test_the_report_of_the_records_is_the_committed_one(tmp_path):
    code, _, errors = call(f"report --results {ROOT / 'results'} --out {tmp_path}")
    assert code == 0, errors
    new, committed = (
        hashlib.sha256((folder / "tables.md").read_bytes()).hexdigest()
        for folder in (tmp_path, ROOT / "docs" / "evidence")
    )
    assert new == committed, "run: make evidence"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"b": 1.0, "a": [1]}, "order of keys"),
        ({"a": [1], "b": 1.1}, "$.b: was 1.0, is 1.1"),
        ({"a": [1, 2], "b": 1.0}, "had 1 items, has 2"),
        ({"a": [True], "b": 1.0}, "$.a[0]"),
        ({"a": [2], "b": 1.0}, "$.a[0]"),
        ({"a": [1]}, "'b' is gone"),
        ({"a": [1], "b": "1.0"}, "$.b"),
    ],
)
def test_a_difference_is_found(new, message):
    assert message in "\n".join(differences({"a": [1], "b": 1.0}, new, rtol=1e-3))
    assert differences({"a": [1], "b": 1.0}, {"a": [1], "b": 1.0001}, rtol=1e-3) == []


def test_another_exit_code_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="exited with 2 instead of 0"):
        answer(Case("x", "data info nothing-here --json"), tmp_path)
