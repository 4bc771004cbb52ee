"""A new format changes two source files, and the contract tests cover it without changes."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edhnn

SOURCE = Path(edhnn.__file__).parent
TESTS = Path(__file__).parents[1]
TOY = '''
"""Toy format: the number of nodes, then a line of 1-based node numbers per hyperedge."""

from pathlib import Path

import numpy as np
import torch

from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.fingerprints import write_integer_lines
from edhnn.data.ids import Ids
from edhnn.data.limits import Limits
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat, dropped_parts
from edhnn.io.files import atomic_file, compressed_by_name
from edhnn.io.integer_lines import read_integer_lines


def read_toy(path: Path, limits: Limits) -> NodeDataset:
    numbers, sizes = read_integer_lines(path, limits, commas=True)
    if not len(sizes) or sizes[0] != 1:
        raise DataError("The first line must be the number of nodes.", path=path)
    num_nodes, members, sizes = int(numbers[0]), numbers[1:] - 1, sizes[1:]
    limits.check_nodes(num_nodes, path)
    if ((members < 0) | (members >= num_nodes)).any():
        raise DataError(f"Node numbers must lie in 1..{num_nodes}.", path=path)
    edge = np.repeat(np.arange(len(sizes)), sizes)
    hypergraph = Hypergraph(torch.from_numpy(members), torch.from_numpy(edge), num_nodes, len(sizes))
    return NodeDataset(
        name=path.name,
        hypergraph=hypergraph,
        node_ids=Ids(np.arange(1, num_nodes + 1)),
        edge_ids=Ids(np.arange(1, len(sizes) + 1)),
        provenance=Provenance(str(path), "toy", merged_note(hypergraph)),
    )


def write_toy(dataset: NodeDataset, target: Path) -> list[Path]:
    with atomic_file(target) as path, compressed_by_name(path, target.name) as stream:
        stream.write(b"%d\\n" % dataset.hypergraph.num_nodes)
        write_integer_lines(stream, dataset.hypergraph, offset=1)
    return [target]


FORMAT = FileFormat(
    name="toy",
    patterns=(".toy",),
    read=lambda path, _, limits: read_toy(path, limits),
    write=write_toy,
    dropped=lambda dataset, _: dropped_parts(dataset),
)
'''


def differing(one: Path, two: Path) -> list[str]:
    compared = filecmp.dircmp(one, two, ignore=["__pycache__"])
    names = [*compared.left_only, *compared.right_only, *compared.diff_files]
    return names + [f"{name}/{file}" for name in compared.common_dirs for file in differing(one / name, two / name)]


@pytest.mark.slow
def test_a_new_format_touches_two_source_files_and_passes_the_contract(tmp_path):
    copy = tmp_path / "edhnn"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "io" / "toy.py").write_text(TOY)
    registry = copy / "io" / "formats.py"
    text = registry.read_text().replace("import cornell, folder, hmetis\n", "import cornell, folder, hmetis, toy\n")
    registry.write_text(text.replace("        hmetis.FORMAT,\n", "        hmetis.FORMAT,\n        toy.FORMAT,\n"))
    assert sorted(differing(SOURCE, copy)) == ["io/formats.py", "io/toy.py"]

    contract = TESTS / "contract" / "test_formats.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(contract), "-k", "toy", "-q", "-n", "0", "-p", "no:cacheprovider"],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "EDHNN_FUZZ_EXAMPLES": "10"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 10  # names, round trip, bytes, targets, limits, fuzz
