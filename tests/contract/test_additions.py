"""Adding a potential or a model touches two source files; the contract suites then test it automatically."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edhnn

ROOT = Path(__file__).parents[2]

POTENTIAL = '''"""A toy: the sum of squares in a hyperedge."""

from dataclasses import dataclass
from typing import ClassVar

from edhnn.errors import UsageError
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge
from edhnn.potentials.base import edge_scale


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfSquares:
    """The sum of squares."""

    smooth: ClassVar[bool] = True

    @classmethod
    def from_power(cls, power):
        if power != 2:
            raise UsageError(f"The power of 'toy' must be 2. Got {power}.")
        return cls()

    def convex_on(self, hypergraph):
        return True

    def value(self, h_ev, hypergraph):
        return edge_scale(hypergraph, h_ev) * incidence_to_edge(h_ev**2, hypergraph)

    def grad(self, h_ev, hypergraph):
        return edge_to_incidence(2 * edge_scale(hypergraph, h_ev), hypergraph) * h_ev

    def prox(self, a_ev, hypergraph, *, step_size):
        return a_ev / (1 + edge_to_incidence(2 * step_size * edge_scale(hypergraph, a_ev), hypergraph))
'''

MODEL = '''"""A toy: a linear map of neighbours' means."""

from dataclasses import dataclass

from edhnn.configuration import Configuration, Fraction
from edhnn.models.base import HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import to_edges, to_nodes
from edhnn.nn.features import Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyConfig(Configuration):
    """The toy's choices."""

    restart: Fraction = 0.5


@register_model("toy", "a linear map of neighbours' means")
class Toy(HypergraphModel[ToyConfig]):
    """The toy."""

    config_class = ToyConfig

    def build(self, config):
        self.linear = Projection(self.in_features, self.num_classes, generator=self.generator)

    def forward(self, x, hypergraph):
        hypergraph = as_hypergraph(hypergraph, x)
        z = self.linear(x)
        s = to_nodes(to_edges(z, hypergraph, "mean"), hypergraph, "mean")
        return s.lerp(z, self.config.restart)
'''


def added(tmp_path, file, text, registry, lines):
    """Copy the package, add a file and insert lines in the registry; return the names of the files that differ."""
    source, copy = Path(edhnn.__file__).parent, tmp_path / "edhnn"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / file).write_text(text)
    changed = (copy / registry).read_text()
    for before, line in lines.items():
        assert changed.count(before) == 1
        changed = changed.replace(before, before + line)
    (copy / registry).write_text(changed)
    files = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
    same = {path for path in files if (source / path).is_file() and filecmp.cmp(source / path, copy / path, False)}
    return {str(path) for path in files - same}


def run_contract(tmp_path, suite):
    """Run a contract suite for the toy alone; return the number of passed tests."""
    quiet = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"tests/contract/{suite}", "-k", "toy", "-q", "-o", "addopts=", *quiet],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


def test_adding_a_potential_touches_its_file_and_the_registry(tmp_path):
    lines = {
        "from edhnn.potentials.lovasz import LovaszCardinality\n": "from edhnn.potentials.toy import SumOfSquares\n",
        '    "lec": LovaszCardinality,\n': '    "toy": SumOfSquares,\n',
    }
    touched = added(tmp_path, "potentials/toy.py", POTENTIAL, "potentials/registry.py", lines)
    assert touched == {"potentials/toy.py", "potentials/registry.py"}
    assert run_contract(tmp_path, "test_registered_potentials.py") >= 8


@pytest.mark.slow
def test_adding_a_model_touches_its_file_and_the_registry(tmp_path):
    lines = {'    "mlp": "baselines.mlp",\n': '    "toy": "baselines.toy",\n'}
    touched = added(tmp_path, "models/baselines/toy.py", MODEL, "models/registry.py", lines)
    assert touched == {"models/baselines/toy.py", "models/registry.py"}
    assert run_contract(tmp_path, "test_models.py") >= 12
