"""Compare the behaviour of two states of the source, bit by bit, on one machine.

    python -m tests.golden.exact --save before.json
    python -m tests.golden.exact --compare before.json

Run it from the root of a checkout; PYTHONPATH chooses the source. Frozen are: the `--json` of every verb, every file
that the verbs write (run folders, converted data, scores, records, reports), outputs and gradients of every model in
both precisions, solutions of the diffusion, the tables of the evidence, and the number of records that `edhnn run`
finds. Facts of a machine or a moment are masked. `--tolerance` allows small differences of numbers.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edhnn

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
edhnn.configure_runtime()

from tests.golden.cases import (  # noqa: E402
    CASES,
    DONE,
    alone_in,
    answer,
    call,
    differences,
    mask,
    model_options,
    model_tensors,
    small_options,
    tiny_hypergraph,
    write_data,
)

ROOT = Path(__file__).parents[2]
SAMPLES = 24

Item = dict[str, Any]

_MOMENTS = (
    (re.compile(r"(<td>\d+</td>(?:<td>[^<]*</td>){3}<td>)[\d.]+(</td></tr>)"), r"\1<masked>\2"),  # seconds of a split
    (re.compile(r"Training: [^<]*"), "Training: <masked>"),
    (
        re.compile(r"(<tr><td>(?:processor_cores|kernels|threads|python|torch|numpy|platform)</td><td>)[^<]*"),
        r"\1<masked>",
    ),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:+]+"), "<moment>"),
    (re.compile(r"(?<=base64,)[A-Za-z0-9+/=]+"), "<picture>"),  # the pictures' own files are compared
    (re.compile(r"\d+(\.\d+)? (s|min|h|seconds?|minutes?|hours?|MiB|GiB)\b"), "<masked>"),
)


def of_bytes(data: bytes) -> Item:
    """Record the hash of bytes."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def of_json(value: Any) -> Item:
    """Record a JSON value with its hash, to show what differs."""
    return {"sha256": hashlib.sha256(json.dumps(value).encode()).hexdigest(), "json": value}


def of_tensor(value: Any) -> Item:
    """Record the hash of a tensor and some of its numbers, to show how much they differ."""
    if value is None:
        return {"sha256": "none"}
    flat = value.detach().contiguous().flatten()
    head = f"{value.dtype} {tuple(value.shape)}".encode()
    step = max(1, len(flat) // SAMPLES)
    samples = [*flat[::step][:SAMPLES].tolist(), float(flat.double().norm())]
    return {"sha256": hashlib.sha256(head + flat.numpy().tobytes()).hexdigest(), "json": [str(head), *samples]}


def of_file(path: Path, folder: Path) -> Item:
    """Record a file without facts of a machine or a moment."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        return of_json(mask(json.loads(data), folder))
    if name.endswith(".jsonl"):
        lines = [mask(json.loads(line), folder) for line in data.splitlines()]
        return of_json(sorted(lines, key=json.dumps) if "key" in (lines or [{}])[0] else lines)
    if name.endswith((".safetensors", ".npy", ".npz")):
        return {**of_bytes(data), "json": _samples(path)}
    if name.endswith((".html", ".md", ".tex")):
        text = data.decode().replace(str(folder), "<folder>")
        for pattern, instead in _MOMENTS:
            text = pattern.sub(instead, text)
        return of_json(text.splitlines())
    if name.endswith((".csv", ".tsv", ".txt", ".toml", ".hgr")):
        return {**of_bytes(data), "json": [_words(line) for line in data.decode().splitlines()]}
    return of_bytes(data)


def _words(line: str) -> list[Any]:
    """Split a line into words and numbers, which are compared with a tolerance."""
    words: list[Any] = []
    for word in re.split(r"[,\t ]", line):
        try:
            words.append(float(word))
        except ValueError:
            words.append(word)
    return words


def _samples(path: Path) -> Any:
    import numpy as np
    from safetensors.numpy import load_file

    if path.suffix == ".safetensors":
        arrays = load_file(path)
    else:
        found = np.load(path, allow_pickle=False)
        arrays = dict(found) if path.suffix == ".npz" else {"": found}
    return {
        key: [str(value.dtype), str(value.shape), *value.ravel()[:: max(1, value.size // SAMPLES)][:SAMPLES].tolist()]
        for key, value in sorted(arrays.items())
    }


def verbs() -> Iterator[tuple[str, Item]]:
    """Run every verb, then record all files that they wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_data(folder)
        given = {path for path in folder.rglob("*") if path.is_file()}
        with alone_in(folder):
            for case in CASES:
                yield f"verb {case.name}", of_json(answer(case, folder))
        for path in sorted(folder.rglob("*")):
            if (
                path.is_file()
                and path not in given
                and path.suffix not in (".journal", ".db")
                and "cache" not in path.parts
            ):
                yield f"file {path.relative_to(folder)}", of_file(path, folder)


def models() -> Iterator[tuple[str, Item]]:
    """Run every model, narrow and with its defaults, with each kind of weights, in both precisions."""
    import torch

    from edhnn import contextual_sbm

    known = model_options()
    for name, options in known.items():
        for weights in ("none", "hyperedges", "memberships"):
            for dtype in (torch.float32, torch.float64):
                where = f"model {name}, weights: {weights}, {str(dtype).removeprefix('torch.')}"
                try:
                    found = model_tensors(name, tiny_hypergraph(weights), dtype=dtype, **small_options(options))
                except Exception as error:
                    yield f"{where}: refused", {"sha256": type(error).__name__}
                    continue
                for key, value in found.items():
                    yield f"{where}: {key}", of_tensor(value)
    larger = contextual_sbm(0, nodes_per_class=60, num_hyperedges=100, edge_size=5).hypergraph
    changed: dict[str, dict[str, Any]] = {
        "ed-hnn": {"tied": False, "update": "concat", "aggregate": "sum", "num_iterations": 3, "hidden": 40},
        "ed-hnn-ii": {"tied": False, "norm": "none", "phi_layers": 1, "hidden": 72},
        "invariant": {"rho_layers": 3, "activation": "prelu"},
        "hcha": {"attention": True, "heads": 4},
    }
    for name in known:
        for options in ({}, changed[name]) if name in changed else ({},):
            try:
                found = model_tensors(name, larger, dtype=torch.float32, seed=5, **options)
            except Exception as error:
                yield f"larger model {name} {options or ''}: refused", {"sha256": type(error).__name__}
                continue
            for key, value in found.items():
                yield f"larger model {name} {options or ''}: {key}", of_tensor(value)


def solutions() -> Iterator[tuple[str, Item]]:
    """Solve diffusion problems with each potential and solver."""
    import torch

    from edhnn import contextual_sbm, diffuse

    hypergraph = contextual_sbm(1, nodes_per_class=60, num_hyperedges=100, edge_size=5).hypergraph
    x = (torch.arange(2 * hypergraph.num_nodes, dtype=torch.float64) * 0.6180339887498949 % 1.0).reshape(-1, 2)
    for potential in ("tv", "lec", "ce", "divergence"):
        solvers = ("cg", "admm", "gradient") if potential == "ce" else ("admm", "gradient")
        for solver in solvers:
            for power in (2,) if potential == "ce" else (1, 2):
                for dtype in (torch.float32, torch.float64):
                    where = f"diffusion {potential}, power {power}, {solver}, {str(dtype).removeprefix('torch.')}"
                    try:
                        found = diffuse(
                            hypergraph, x.to(dtype), potential=potential, power=power, solver=solver, max_steps=60,
                            throw=False,
                        )  # fmt: skip
                    except Exception as error:
                        yield f"{where}: refused", {"sha256": type(error).__name__}
                        continue
                    yield f"{where}: value", of_tensor(found.value)
                    yield f"{where}: steps", of_json([found.steps, found.outcome.name])


def evidence() -> Iterator[tuple[str, Item]]:
    """Write the report of the committed records, and count the records that `edhnn run` finds."""
    results = ROOT / "results"
    for case in DONE:
        yield case.name, of_json(mask(json.loads(call(f"{case.words} --results {results}")[1]), ROOT))
    yield "run: the list", of_json(json.loads(call(f"run --results {results} --json")[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        code, output, errors = call(f"report --results {results} --out {folder} --json")
        assert code == 0, errors
        yield "report: json", of_json(mask(json.loads(output), folder))
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found = of_file(path, folder)
                yield f"report: {path.relative_to(folder)}", {k: v for k, v in found.items() if k != "json"}


PARTS = {"verbs": verbs, "models": models, "solutions": solutions, "evidence": evidence}


def main() -> int:
    """Record everything, and save it or print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="write the record to this file")
    parser.add_argument(
        "--compare", type=Path, help="print what differs from a saved record; exit with 1 if anything does"
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; repeatable")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="allowed relative and absolute difference of numbers"
    )
    chosen = parser.parse_args()
    import torch

    import edhnn

    torch.set_num_threads(1)
    print(f"source: {Path(edhnn.__file__).parent}", file=sys.stderr)
    parts = chosen.only or list(PARTS)
    found: dict[str, dict[str, Item]] = {part: dict(PARTS[part]()) for part in parts}
    if chosen.save:
        chosen.save.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{sum(map(len, found.values()))} items", file=sys.stderr)
    if chosen.compare is None:
        return 0
    before = json.loads(chosen.compare.read_text())
    lines = [
        line for part in parts for line in compare(before[part], json.loads(json.dumps(found[part])), chosen.tolerance)
    ]
    print("\n".join(lines) or "nothing differs")
    return 1 if any(not line.startswith("(") for line in lines) else 0


def compare(before: dict[str, Item], after: dict[str, Item], tolerance: float) -> Iterator[str]:
    """Yield a line for each difference; those within the tolerance are in brackets."""
    for name, old in before.items():
        if name not in after:
            yield f"gone: {name}"
        elif after[name]["sha256"] != old["sha256"]:
            if "json" not in old or "json" not in after[name]:
                yield f"differs: {name}"
                continue
            every = differences(old["json"], after[name]["json"])
            far = differences(old["json"], after[name]["json"], rtol=tolerance, atol=tolerance) if tolerance else every
            shown = "; ".join((far or every)[:4]) or "in bits that are not shown"
            near = bool(tolerance) and not far
            yield f"(near: {name}: {shown})" if near else f"differs: {name}: {shown}"
    for name in after:
        if name not in before:
            yield f"new: {name}"


if __name__ == "__main__":
    sys.exit(main())
