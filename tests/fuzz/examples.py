"""Small valid inputs of every kind, and the commands that read them. The fuzzer breaks them.

A new kind of input is a function here with the decorator `kind`: it yields examples, which it may make with the command
itself in the current folder.
"""

from __future__ import annotations

import gzip
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from edhnn import NodeDataset, contextual_sbm, read_dataset, write_dataset
from edhnn.cli.main import main
from edhnn.errors import DataError
from edhnn.experiments.spec import parse_experiment
from tests.contract.test_formats import BASKETS, FOREIGN_HIF, ONLY_READ, dense_features, plain, simple_zoo, zoo
from tests.experiments.made import made_records, write_records

Words = tuple[str, ...]
SMALL: Words = ("--set", "hidden=8", "--set", "classifier_hidden=8", "--jobs", "1")
GRID = """title = "t"
paper = "none"
kind = "accuracy"
splits = 2
train = { epochs = 4 }
[[row]]
label = "net"
model = "ed-hnn"
options = { hidden = 8, classifier_hidden = 8 }
[[row]]
label = "floor"
model = "l1-logistic"
[[column]]
label = "one"
dataset = "csbm-1"
[[change]]
why = "a test"
rows = ["net"]
train = { learning_rate = 0.01 }
"""
CONFIGURATION = """model = "ed-hnn"
[options]
hidden = 8
num_iterations = 1
classifier_hidden = 8
dropout = 0.2
restart = 0.5
[train]
epochs = 2
learning_rate = 0.01
weight_decay = 0.0
"""
SEEDS = b"node,value\na,1\nb,-0.5\nc,0\n"


@dataclass(frozen=True)
class Example:
    """Valid files, the commands that read them, and the files to break.

    Attributes:
        files: Name and content of each file.
        commands: Commands that exit with 0; one of them is chosen for an input.
        breakable: The names of the files to break; none: the words of the command are broken.
    """

    files: dict[str, bytes]
    commands: tuple[Words, ...]
    breakable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        examples: Makes the examples, in the current folder.
        may_ask_for_memory: Whether an input may ask for much memory openly, as a model of width 10^9 does. Then the
            message that there is not enough memory is a right answer.
    """

    examples: Callable[[], Iterator[Example]]
    may_ask_for_memory: bool = False


KINDS: dict[str, Kind] = {}


def kind(name: str, *, may_ask_for_memory: bool = False) -> Callable[[Callable[[], Iterator[Example]]], None]:
    """Register a kind of input."""

    def register(examples: Callable[[], Iterator[Example]]) -> None:
        KINDS[name] = Kind(examples, may_ask_for_memory)

    return register


def run_command(words: Sequence[str], *, code: int = 0) -> None:
    """Run the command in this process; raise an error if it exits with another code."""
    sys.argv = ["edhnn", *words]
    try:
        main()
    except SystemExit as end:
        if (end.code or 0) != code:
            raise RuntimeError(f"{words} exits with {end.code}") from end


def files_in(folder: Path | str, *, without: tuple[str, ...] = ("lock", ".png", ".html")) -> dict[str, bytes]:
    """Return name and content of the files in a folder, with the folder's name."""
    return {
        str(path): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.name.endswith(without)
    }


def reading(target: str, seed: str | None = None) -> tuple[Words, ...]:
    """Return the commands that read a hypergraph; ``seed`` is a node of it."""
    commands: list[Words] = [
        ("data", "info", target, "--json"),
        ("data", "info", target),
        ("data", "doctor", target, "--json"),
        ("data", "doctor", target),
        ("data", "convert", target, "out.hif.json", "--json"),
        ("data", "convert", target, "out.parquet"),
    ]
    if seed is not None:
        diffuse = ("diffuse", target, "--seeds", "seeds.csv", "--ignore-weights", "--out", "scores.csv")
        commands += [(*diffuse, "--json"), (*diffuse, "--potential", "ce")]
    return tuple(commands)


def written(target: str, *datasets: NodeDataset) -> Iterator[Example]:
    """Yield an example for each dataset that the format of the target can store."""
    for dataset in datasets:
        folder = Path(f"{target}-{dataset.name}")
        folder.mkdir()
        try:
            write_dataset(dataset, folder / target)
        except DataError:
            continue
        files = {name.removeprefix(f"{folder}/"): content for name, content in files_in(folder).items()}
        seed = str(read_dataset(folder / target, keep_missing=True).node_ids.to_list()[0])
        seeds = {"seeds.csv": f'node,value\n"{seed}",1\n'.encode()}
        yield Example({**files, **seeds}, reading(target, seed), tuple(files))


def by_hand(target: str, content: bytes) -> Example:
    commands = [words for words in reading(target) if "out.parquet" not in words]  # ids of several types
    return Example({target: content}, tuple(commands), (target,))


@kind("CSV")
def csv() -> Iterator[Example]:
    yield from written("t.csv", zoo(), simple_zoo())
    yield by_hand("baskets.csv", BASKETS)


@kind("TSV")
def tsv() -> Iterator[Example]:
    yield from written("t.tsv", zoo(), simple_zoo())


@kind("Parquet")
def parquet() -> Iterator[Example]:
    yield from written("t.parquet", zoo(), simple_zoo())


@kind("HIF")
def hif() -> Iterator[Example]:
    yield from written("t.hif.json", zoo(), simple_zoo())
    yield by_hand("t.json", FOREIGN_HIF)


@kind("hMETIS")
def hmetis() -> Iterator[Example]:
    yield from written("t.hgr", simple_zoo(), plain())
    yield by_hand("t.hgr", b"% by hand\n3 5 11\n2 1 2\n% between\n1 2 3 4\n7 5\n1\n2\n3\n4\n5\n")


@kind("Cornell")
def cornell() -> Iterator[Example]:
    for example in written("hyperedges-t.txt", simple_zoo(), plain()):
        yield example
        names = {"node-names-t.txt": b"a\nb\nc\nd\ne\n"}
        if len(example.files) > 2:
            yield replace(example, files=example.files | names, commands=reading("hyperedges-t.txt"))


def only_read(name: str) -> Iterator[Example]:
    files, names, _ = ONLY_READ[name]
    for target in names:
        commands = tuple(words for words in reading(target) if "out.parquet" not in words)
        yield Example(files, commands, tuple(files))


@kind("workbook")
def workbook() -> Iterator[Example]:
    yield from only_read("xlsx")


@kind("Benson")
def benson() -> Iterator[Example]:
    yield from only_read("benson")


@kind("AllSet")
def allset() -> Iterator[Example]:
    yield from only_read("allset")


@kind("dirty table")
def dirty_table() -> Iterator[Example]:
    tables = {
        "dirty.csv": b"\xef\xbb\xbfsku;order;price\n007;1;1,5\n7;1;2\n\n"
        b'"8;2;3\n;2;1\n9,2,1\n9;2;1;;\nsku;order;price\nK\xe4;3;1\n',
        "baskets.csv": b"milk,bread,eggs\nmilk,beer\nbread\n",
        "wide.csv": "sku,order\nK\u00e4se,1\nBrot,1\n".encode("utf-16"),
        "bare.csv": b"1,2\n1,3\n2,3\n",
    }
    clean: dict[str, Words] = {
        "dirty.csv": (
            "--drop-bad-lines",
            "--drop-extra-fields",
            "--drop-empty",
            "--separator",
            ";",
            "--separator",
            ",",
        ),
        "baskets.csv": ("--one-basket-per-line", "--merge-ids", "case"),
        "wide.csv": ("--encoding", "utf-16", "--merge-ids", "zeros", "--merge-ids", "spaces:sku"),
        "bare.csv": ("--header", "node,hyperedge", "--dry-run"),
    }
    for name, content in tables.items():
        words = ("data", "clean", name, "out.csv", *clean[name])
        doctor = ("data", "doctor", name, "--epochs", "1", "--splits", "1")
        yield Example({name: content}, ((*words, "--json"), words, (*doctor, "--json"), doctor), (name,))


@kind("dataset folder")
def dataset_folder() -> Iterator[Example]:
    yield from written("t", zoo(), simple_zoo())
    for example in written("dense", replace(simple_zoo(), name="dense")):
        features = {"dense/features.npz": dense_features()}
        files = {**example.files, **features}
        yield Example(files, example.commands, tuple(name for name in files if name != "seeds.csv"))


@kind("legacy pickle")
def legacy_pickle() -> Iterator[Example]:
    content = {"hypergraph": {"paper a": [0, 2, 3], 7: [4], "none": []}, "labels": [0, 1, 2, 1, 0]}
    for protocol in (0, 2, 4):
        files = {f"old/{name}.pickle": pickle.dumps(value, protocol) for name, value in content.items()}
        command = ("data", "convert", "--legacy-pickle", "old", "out.hif.json", "--json")
        yield Example(files, (command,), tuple(files))


@kind("seed table")
def seed_table() -> Iterator[Example]:
    graph = {"t.csv": b"node,edge\na,1\nb,1\nc,1\nc,2\nd,2\n"}
    table = pa.table({"node": ["a", "b"], "value": [1.0, -0.5]})
    pq.write_table(table, "seeds.parquet")
    tables = {
        "seeds.csv": SEEDS,
        "seeds.tsv": SEEDS.replace(b",", b"\t"),
        "seeds.parquet": Path("seeds.parquet").read_bytes(),
        "seeds.csv.gz": gzip.compress(SEEDS, mtime=0),
    }
    for name, content in tables.items():
        words = ("diffuse", "t.csv", "--seeds", name, "--out", "scores.csv")
        yield Example({**graph, name: content}, ((*words, "--json"), words), (name,))


@kind("compressed text")
def compressed() -> Iterator[Example]:
    for target in ("t.csv.gz", "t.tsv.gz", "t.hif.json.gz", "t.hgr.gz", "hyperedges-t.txt.gz"):
        yield from written(target, *((simple_zoo(), plain()) if "hgr" in target or "hyper" in target else (zoo(),)))


def training_data() -> dict[str, bytes]:
    """Write a small dataset with two classes and six features; return its file."""
    dataset = contextual_sbm(1, nodes_per_class=20, num_hyperedges=16, edge_size=5)
    dataset = replace(dataset, name="tiny", x=dataset.x[:, :6].contiguous(), class_names=("blue", "red"))
    write_dataset(dataset, "data.hif.json", overwrite=True)
    return {"data.hif.json": Path("data.hif.json").read_bytes()}


TRAIN: Words = ("train", "data.hif.json", "--epochs", "3", "--splits", "2", *SMALL, "--out", "run")


def using(model: str) -> tuple[Words, ...]:
    """Return the commands that use a trained model."""
    return (
        ("predict", model, "data.hif.json", "--out", "p.csv", "--json"),
        ("evaluate", model, "data.hif.json", "--json"),
        ("evaluate", model, "data.hif.json"),
    )


@kind("run folder")
def run_folder() -> Iterator[Example]:
    data = training_data()
    run_command(TRAIN)
    files = files_in("run")
    resume: Words = (*TRAIN, "--resume", "--json")
    yield Example({**data, **files}, (*using("run"), resume), tuple(files))
    Path("run").rename("finished")
    unfinished = interrupted_run()
    yield Example({**data, **unfinished}, (resume,), tuple(unfinished))


def interrupted_run() -> dict[str, bytes]:
    """Train with Ctrl-C in the first epoch; return the files of the run, among them a checkpoint."""
    from edhnn.training import loop

    make = loop.EpochRecord

    def interrupt(**facts: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return make(**facts)  # type: ignore[arg-type]

    loop.EpochRecord = interrupt  # type: ignore[misc, assignment]
    run_command(TRAIN, code=130)
    loop.EpochRecord = make  # type: ignore[misc]
    return files_in("run")


@kind("model folder")
def model_folder() -> Iterator[Example]:
    data = training_data()
    for name in ("ed-hnn", "hgnn"):
        model = ("--model", name, "--set", "hidden=8", "--jobs", "1", "--epochs", "2", "--splits", "1")
        run_command(("train", "data.hif.json", *model, "--out", name))
        Path(f"{name}/splits/00/model").rename("model")
        files = files_in("model")
        Path("model").rename(f"model-{name}")
        yield Example({**data, **files}, using("model"), tuple(files))


@kind("configuration", may_ask_for_memory=True)
def configuration() -> Iterator[Example]:
    files = {**training_data(), "c.toml": CONFIGURATION.encode()}
    words = ("train", "data.hif.json", "--config", "c.toml", "--epochs", "1", "--splits", "1", "--jobs", "1")
    yield Example(files, ((*words, "--out", "run", "--json"),), ("c.toml",))


@kind("tuning study")
def tuning_study() -> Iterator[Example]:
    data = training_data()
    words = ("tune", "data.hif.json", "--splits", "1", "--epochs", "1", *SMALL, "--storage", "s.db", "--json")
    run_command((*words, "--trials", "2"))
    study = {"s.db": Path("s.db").read_bytes()}
    yield Example({**data, **study}, ((*words, "--trials", "2"), (*words, "--trials", "3")), ("s.db",))


@kind("experiment records")
def records() -> Iterator[Example]:
    experiment = parse_experiment(GRID, "grid", None)
    write_records(Path("results"), made_records(experiment, lambda cell, split: 80.0 + split, num_splits=2))
    files = files_in("results")
    commands: tuple[Words, ...] = (
        ("run", "--results", "results", "--json"),
        ("run", "grid.toml", "--results", "results", "--budget", "0", "--json"),
        ("report", "grid.toml", "--results", "results", "--out", "report", "--json"),
    )
    yield Example({"grid.toml": GRID.encode(), **files}, commands, tuple(files))


@kind("experiment", may_ask_for_memory=True)
def experiment_file() -> Iterator[Example]:
    commands = (("run", "grid.toml", "--results", "results", "--budget", "0", "--json"),)
    yield Example({"grid.toml": GRID.encode()}, commands, ("grid.toml",))


@kind("command line", may_ask_for_memory=True)
def command_line() -> Iterator[Example]:
    data = training_data()
    run_command((*TRAIN, "--splits", "1", "--epochs", "1"))
    files = {**data, **files_in("run"), "t.csv": b"node,edge,size\na,1,2\nb,1,3\nc,1,4\nc,2,5\nd,2,6\n"}
    files |= {"seeds.csv": SEEDS, "c.toml": CONFIGURATION.encode(), "grid.toml": GRID.encode()}
    cost: Words = ("--epochs", "1", "--splits", "1")
    commands: tuple[Words, ...] = (
        *reading("data.hif.json"),
        *reading("t.csv", "a"),
        ("data", "list", "--json"),
        ("data", "list"),
        ("data", "fetch", "nowhere"),
        ("train", "data.hif.json", *cost, *SMALL, "--out", "new", "--json"),
        ("train", "data.hif.json", *cost, *SMALL, "--model", "mlp", "--out", "new"),
        ("tune", "data.hif.json", *cost, *SMALL, "--trials", "1", "--storage", "s.db"),
        *using("run"),
        ("run", "--results", "results"),
        ("run", "grid.toml", "--results", "results", "--budget", "0"),
        ("report", "--results", "results", "--out", "report"),
        ("models", "--json"),
        ("models",),
        ("presets",),
        ("--version",),
    )
    yield Example(files, commands)
