"""The frozen cases: tiny data, every verb with `--json`, every model, and the comparison of two answers.

They use only the command and public names of `edhnn`, so that they run on any layout of the source.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import pickle
import random
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VOLATILE = frozenset(
    [
        "seconds",
        "split_seconds",
        "peak_memory",
        "threads",
        "kernels",
        "machine",
        "finished",
        "processor_cores",
        "processes",
        "run_bytes",
        "python",
        "torch",
        "numpy",
        "platform",
        "edhnn_version",
        "train_seconds",
        "rates",
        "machine_bytes",
        "seconds_per_step",
        "seconds_per_run",
        "activation_bytes",
        "peak_bytes",
    ]
)
"""Fields that are facts about a machine or a moment."""

MASKED = "<masked>"
KINDS = ("drink", "food", "tool")
NODES, HYPEREDGES = 48, 40

SMALL = "--set hidden=8 --set classifier_hidden=8"
TRAIN = f"--epochs 4 --splits 2 {SMALL} --jobs 1 --json"
LABEL = "--label kind --features size,age"

GRID = """
title = "t"
paper = "none"
kind = "accuracy"
splits = 2
train = { epochs = 2 }
[[row]]
label = "floor"
model = "class-means"
[[row]]
label = "ED-HNN"
model = "ed-hnn"
options = { hidden = 4, classifier_hidden = 4 }
[[column]]
label = "one"
dataset = "csbm-1"
"""


@dataclass(frozen=True)
class Case:
    """A call of the command.

    Attributes:
        name: Name of the golden file.
        words: The arguments.
        code: Exit code.
        rtol: Largest allowed relative difference of numbers on another processor.
        atol: Largest allowed absolute difference.
        free: Fields of which only the type is compared, because a single node can change them.
        slow: Whether only the exact comparison runs it.
    """

    name: str
    words: str
    code: int = 0
    rtol: float = 1e-6
    atol: float = 1e-9
    free: frozenset[str] = frozenset()
    slow: bool = False


def trained(name: str, words: str, *, atol: float = 20.0, slow: bool = False) -> Case:
    """Make a case of training, whose percentages may differ by a few nodes on another processor."""
    free = frozenset({"best_epoch", "importance", "params", "best", "verdict", "classes"})
    return Case(name, words, rtol=0.2, atol=atol, free=free, slow=slow)


def diffused(name: str, words: str, *, code: int = 0) -> Case:
    """Make a case of a solver, which may stop a few steps earlier on another processor."""
    return Case(
        name,
        f"diffuse baskets.csv --seeds seeds.csv {words} --json",
        code,
        free=frozenset({"steps", "gap", "residual", "top"}),  # equal scores may change places
    )


CASES: tuple[Case, ...] = (
    Case("models", "models --json"),
    Case("presets", "presets --json"),
    Case("presets-hgnn", "presets --model hgnn --json"),
    Case("data-list", "data list --json"),
    Case("data-info", f"data info baskets.csv {LABEL} --json"),
    Case("data-info-guessed", "data info baskets.csv --json"),
    Case("data-info-weighted", "data info weighted.csv --weight-column amount --json"),
    Case("data-info-catalogue", "data info csbm-1 --json"),
    Case("data-doctor", f"data doctor baskets.csv {LABEL} --json"),
    Case("data-doctor-picture", f"data doctor baskets.csv {LABEL} --picture doctor.png --json", slow=True),
    Case("data-doctor-regression", "data doctor baskets.csv --label age --task regression --json"),
    Case("data-doctor-dirty", "data doctor dirty.csv --json"),
    Case("data-clean", "data clean dirty.csv clean.csv --drop-bad-lines --drop-empty --merge-ids zeros:item --json"),
    Case("data-convert-hif", f"data convert baskets.csv made.hif.json {LABEL} --json"),
    Case("data-convert-hif-gz", f"data convert baskets.csv made.hif.json.gz {LABEL} --json"),
    Case("data-convert-hif-hif", "data convert made.hif.json copy.hif.json --json"),
    Case("data-convert-csv", "data convert made.hif.json made.csv --json --label kind"),
    Case("data-convert-tsv", f"data convert baskets.csv made.tsv {LABEL} --json"),
    Case("data-convert-parquet", f"data convert baskets.csv made.parquet {LABEL} --json"),
    Case("data-convert-folder", f"data convert baskets.csv made-folder --to folder {LABEL} --json"),
    Case("data-convert-hmetis", f"data convert baskets.csv made.hgr {LABEL} --json"),
    Case("data-convert-cornell", "data convert baskets.csv hyperedges-made.txt --label warm --json"),
    Case("data-convert-weighted", "data convert weighted.csv weighted.hif.json --weight-column amount --json"),
    Case("data-convert-pickles", "data convert --legacy-pickle pickles from-pickles.hif.json --json"),
    Case("data-convert-exists", "data convert baskets.csv made.hgr --json", code=2),
    Case("data-convert-to-pickle", "data convert baskets.csv made.pickle --json", code=2),
    Case("data-info-hif", "data info made.hif.json --label kind --json"),
    Case("data-info-parquet", "data info made.parquet --json"),
    Case("data-info-folder", "data info made-folder --json"),
    Case("data-info-hmetis", "data info made.hgr --json"),
    Case("data-info-cornell", "data info hyperedges-made.txt --json"),
    Case("data-info-pickles", "data info from-pickles.hif.json --json"),
    Case("data-info-nothing", "data info nothing.csv --json", code=2),
    Case("data-info-limit", "data info baskets.csv --max-nodes 3 --json", code=1),
    Case("data-fetch-unknown", "data fetch nothing --json", code=2),
    diffused("diffuse-tv", "--out tv.csv"),
    diffused("diffuse-tv-1", "--power 1"),
    diffused("diffuse-lec", "--potential lec --out lec.csv"),
    diffused("diffuse-ce", "--potential ce --out ce.csv"),
    diffused("diffuse-divergence", "--potential divergence"),
    diffused("diffuse-gradient", "--potential divergence --solver gradient --out gradient.csv"),
    diffused("diffuse-unfinished", "--max-steps 3", code=1),
    Case("diffuse-weighted", "diffuse weighted.csv --weight-column amount --seeds seeds.csv --json", code=2),
    trained("train", f"train baskets.csv {LABEL} {TRAIN} --out run"),
    trained("train-workers", f"train baskets.csv {LABEL} {TRAIN} --jobs 2 --out run-workers", slow=True),
    trained("train-again", f"train baskets.csv {LABEL} {TRAIN} --out run --resume"),
    Case("train-exists", f"train baskets.csv {LABEL} {TRAIN} --out run", code=2),
    trained(
        "train-hgnn",
        "train weighted.csv --weight-column amount --nodes baskets.nodes.csv --label kind --features size,age "
        "--model hgnn --set hidden=8 --epochs 3 --splits 2 --jobs 1 --seed 3 --json --out run-hgnn",
    ),
    trained(
        "train-regression",
        f"train baskets.csv --label age --task regression --features size {TRAIN} --out run-regression",
        slow=True,
    ),
    trained("train-multilabel", f"train baskets.csv --label warm --label red {TRAIN} --out run-multilabel", slow=True),
    trained("train-catalogue", f"train csbm-1 --model ed-hnn-ii {TRAIN} --out run-csbm", slow=True),
    trained("train-folds", f"train baskets.csv {LABEL} {TRAIN.replace('--splits 2', '--folds 3')} --out run-folds"),
    trained("evaluate-folds", "evaluate run-folds baskets.csv --json", atol=0.2),
    Case("train-unknown-option", f"train baskets.csv {LABEL} --set nothing=3 --json", code=2),
    Case("predict", "predict run grown.csv --out grown-predictions.csv --json"),
    Case("predict-split", "predict run baskets.csv --split 1 --out split-1.csv --json"),
    trained("evaluate", "evaluate run baskets.csv --json", atol=0.2),
    trained("evaluate-grown", "evaluate run grown.csv --split 0 --json", atol=0.2),
    trained("evaluate-regression", "evaluate run-regression grown.csv --json", slow=True),
    trained(
        "tune",
        f"tune baskets.csv {LABEL} --epochs 2 --splits 2 --trials 2 {SMALL} --jobs 1 --out best.toml --json",
    ),
    trained(
        "tune-wide",
        f"tune baskets.csv {LABEL} --epochs 2 --splits 1 --trials 3 --space wide --storage wide.db --json",
        slow=True,
    ),
    Case("run-list", "run --results none --json"),
    Case("run", "run grid.toml --results results --jobs 1 --splits 1 --json"),
    Case("run-again", "run grid.toml --results results --jobs 1 --splits 1 --json"),
    Case("run-unknown", "run tabel3 --results none --json", code=2),
    trained("report", "report grid.toml --results results --out report --json"),
)


def write_data(folder: Path) -> None:
    """Write the tiny tables, seeds, pickles and the grid of an experiment."""
    chance = random.Random(17)
    kinds = [chance.choice(KINDS) for _ in range(NODES)]
    members = [
        chance.sample([v for v in range(NODES) if kinds[v] == kind or chance.random() < 0.3], chance.randint(2, 6))
        for kind in (KINDS[e % 3] for e in range(HYPEREDGES))
    ]
    sizes = [KINDS.index(kind) + chance.random() for kind in kinds]
    ages = [20 + 10 * (kind == "food") + chance.randint(0, 9) for kind in kinds]
    pairs = [(f"n{v}", f"b{e}") for e, found in enumerate(members) for v in found]
    rows = [(f"n{v}", kinds[v] if v % 7 else "", round(sizes[v], 3), ages[v]) for v in range(NODES)]
    marks = [(int(kind != "tool"), chance.randint(0, 1)) for kind in kinds]
    head = ("id", "kind", "size", "age", "warm", "red")
    nodes = [head, *(row + mark for row, mark in zip(rows, marks, strict=True))]
    _write(folder / "baskets.csv", [("item", "basket"), *pairs])
    _write(folder / "baskets.nodes.csv", nodes)
    amounts = [(*pair, chance.randint(1, 9) / 4) for pair in pairs]
    _write(folder / "weighted.csv", [("item", "basket", "amount"), *amounts])
    new = [(f"m{v}", "food", 1.5, 33, 1, 0) for v in range(4)]
    more = [(f"m{v}", "more") for v in range(4)] + [("n1", "more"), ("m0", "b3")]
    _write(folder / "grown.csv", [("item", "basket"), *pairs, *more])
    _write(folder / "grown.nodes.csv", [*nodes, *new])
    _write(folder / "seeds.csv", [("node", "value"), *((f"n{v}", (-1) ** v * (1 + v / 8)) for v in range(0, NODES, 5))])
    (folder / "dirty.csv").write_text("item;basket\n007;b1\n12;b1\n7;b2\n007;b2\n12\n\n;b2\n")
    (folder / "grid.toml").write_text(GRID)
    _write_pickles(folder / "pickles")


def _write(path: Path, rows: list[Any]) -> None:
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def _write_pickles(folder: Path) -> None:
    """Write a dataset as HyperGCN released its own."""
    import numpy as np
    import scipy.sparse as sp

    folder.mkdir()
    matrix = sp.csr_matrix(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3], [0, 0, 1], [1, 1, 1]], dtype=np.float32))
    content = {
        "hypergraph": {"paper a": [0, 2, 3], "paper é": [3, 1], 7: [4], "none": []},
        "labels": [0, 1, 2, 1, 0],
        "features": matrix,
    }
    for name, value in content.items():
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(value, 4))


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder, with an empty cache and without published datasets."""
    before, environment = Path.cwd(), dict(os.environ)
    os.environ.pop("EDHNN_DATA", None)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def call(words: str) -> tuple[int, str, str]:
    """Run the entry point in this process and return exit code, output and errors."""
    from edhnn.cli.main import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2)]
    arguments, sys.argv = sys.argv, ["edhnn", *words.split()]
    code: object = 0
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                main()
            except SystemExit as error:
                code = error.code
            except Exception:  # an unexpected failure: show it
                traceback.print_exc()
                code = "exception"
    finally:
        sys.argv = arguments
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return (code if isinstance(code, int) else 0 if code is None else 99), texts[0], texts[1]


def answer(case: Case, folder: Path) -> dict[str, Any]:
    """Run a case and return its exit code and its JSON, without facts of this machine and moment."""
    code, output, errors = call(case.words)
    if code != case.code:
        raise AssertionError(f"`edhnn {case.words}` exited with {code} instead of {case.code}:\n{errors}")
    return {"exit": code, "json": mask(json.loads(output), folder) if output.strip() else None}


def mask(value: Any, folder: Path) -> Any:
    """Hide facts of a machine or a moment."""
    if isinstance(value, dict):
        return {key: MASKED if key in VOLATILE and one is not None else mask(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [mask(one, folder) for one in value]
    return value.replace(str(folder), "<folder>") if isinstance(value, str) else value


def files_in(folder: Path) -> list[str]:
    """List the files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def differences(
    old: Any, new: Any, *, rtol: float = 0.0, atol: float = 0.0, free: frozenset[str] = frozenset(), at: str = "$"
) -> list[str]:
    """List where two JSON values differ: structure, text, or numbers beyond the tolerances."""
    if isinstance(old, dict) and isinstance(new, dict):
        lines = [f"{at}: '{key}' is gone" for key in old if key not in new]
        lines += [f"{at}: '{key}' is new" for key in new if key not in old]
        if not lines and list(old) != list(new):
            lines = [f"{at}: the order of keys was {list(old)}, is {list(new)}"]
        for key in old:
            if key in new:
                inside = f"{at}.{key}"
                if key in free:
                    alike = type(old[key]) is type(new[key])
                    lines += [] if alike else [f"{inside}: was {old[key]!r}, is {new[key]!r}"]
                else:
                    lines += differences(old[key], new[key], rtol=rtol, atol=atol, free=free, at=inside)
        return lines
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return [f"{at}: had {len(old)} items, has {len(new)}"]
        pairs = enumerate(zip(old, new, strict=True))
        return [
            line
            for index, (one, other) in pairs
            for line in differences(one, other, rtol=rtol, atol=atol, free=free, at=f"{at}[{index}]")
        ]
    if _is_number(old) and _is_number(new):
        counts = isinstance(old, int) and isinstance(new, int)
        near = old == new or (not counts and math.isclose(old, new, rel_tol=rtol, abs_tol=atol))
        return [] if near else [f"{at}: was {old!r}, is {new!r}"]
    return [] if type(old) is type(new) and old == new else [f"{at}: was {old!r}, is {new!r}"]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


ALL_RECORDS = 2668
"""Records in `results/` at the commit whose behaviour is frozen."""

DONE: tuple[Case, ...] = (
    Case(
        "records",
        "run figure2 figure3 figure5 smoke smoke-depth table1 table2 table2-large table2-times table3 table4 table7 "
        "table8 table9 --budget 0 --json",
    ),
    Case(
        "records-with-other-epochs",
        "run table2 --model invariant --dataset senate --dataset house --splits 3 --epochs 150 --budget 0 --json",
    ),
)
"""Calls that do no work and count every record of `results/` once, as done before."""


def model_options() -> dict[str, dict[str, Any]]:
    """List the models of the registry with their options and defaults."""
    return {row["name"]: row["options"] for row in json.loads(call("models --json")[1])}


def small_options(options: dict[str, Any]) -> dict[str, Any]:
    """Choose narrow layers where a model has such options."""
    return {name: 8 for name in ("hidden", "classifier_hidden") if name in options}


def tiny_hypergraph(weights: str = "none") -> Any:
    """Make a hypergraph with an empty hyperedge, a singleton, a repeated one and two isolated nodes."""
    import torch

    from edhnn import Hypergraph

    edges = [[0, 1, 2], [2, 3], [4], [1, 2, 3, 5], [], [0, 5, 6], [0, 1, 2]]
    pairs = torch.tensor([(v, e) for e, members in enumerate(edges) for v in members]).T
    weight: dict[str, Any] = {}
    if weights == "hyperedges":
        weight["edge_weight"] = torch.arange(1, len(edges) + 1) / 4
    if weights == "memberships":
        weight["incidence_weight"] = torch.arange(1, pairs.shape[1] + 1) / 8
    return Hypergraph(pairs[0], pairs[1], 9, len(edges), **weight)


def model_tensors(name: str, hypergraph: Any, *, dtype: Any, seed: int = 0, **options: Any) -> dict[str, Any]:
    """Run a model once in training, with dropout, back to its parameters and features, and once in evaluation."""
    import torch

    from edhnn import make_model

    def grid(columns: int) -> Any:
        """Make numbers in (0, 1) without a random generator, which depends on a library's version."""
        steps = torch.arange(hypergraph.num_nodes * columns, dtype=torch.float64)
        return (steps * 0.6180339887498949 % 1.0).reshape(hypergraph.num_nodes, columns)

    model = make_model(name, in_features=5, num_classes=3, seed=seed, **options).to(dtype)
    x = (grid(5) + 0.1).to(dtype).requires_grad_(True)
    out = model(x, hypergraph)
    (out * (grid(3) - 0.3).to(dtype)).sum().backward()
    found = {"training": out.detach(), "features": x.grad}
    found |= {f"parameter {key}": value.grad for key, value in model.named_parameters()}
    model.eval()
    with torch.no_grad():
        return found | {"evaluation": model(x.detach(), hypergraph)}


def model_numbers(tensors: dict[str, Any]) -> dict[str, Any]:
    """Summarise a model's tensors: counts, sums, sums of magnitudes and norms of outputs and gradients."""
    import torch

    gradients = [value for key, value in tensors.items() if key.startswith("parameter ") and value is not None]
    groups = {
        "training": tensors["training"],
        "evaluation": tensors["evaluation"],
        "features": tensors["features"],
        "parameters": torch.cat([value.flatten() for value in gradients]) if gradients else None,
    }
    return {
        "tensors": [key for key in tensors if key.startswith("parameter ")],
        **{
            key: None
            if value is None
            else {
                "count": value.numel(),
                "sum": float(value.sum()),
                "sizes": float(value.abs().sum()),
                "norm": float(value.norm()),
            }
            for key, value in groups.items()
        },
    }
