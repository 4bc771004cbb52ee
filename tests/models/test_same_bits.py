"""The results of a training step do not depend on the number of threads.

One test checks that a training step calls no PyTorch reduction over rows, on any processor. The others compare outputs
and the gradient of every parameter bit by bit for one, two and three threads, with each instruction set of this
processor, for PyTorch's kernels and ours. Matrix products use MKL with the setting of MKL_CBWR that the command makes
(docs/adr/0011).
"""

import itertools
import json
import os
import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from edhnn import contextual_sbm, make_model
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.registry import MODELS
from edhnn.runtime import SETTINGS
from tests.kernels.implementations import needs_native
from tests.kernels.instruction_sets import NAMES, available

SERIAL = 32768
"""PyTorch reduces up to this number of entries in one thread: its GRAIN_SIZE."""

WIDTHS = (16, 32, 64, 100, 128, 256, 512)
VARIANTS = [
    ["ed-hnn", {"norm": "batch"}],
    ["ed-hnn", {"norm": "none", "aggregate": "sum"}],
    ["ed-hnn", {"activation": "prelu"}],
    ["ed-hnn", {"update": "concat"}],
    ["ed-hnn", {"rho_layers": 1}],
    ["ed-hnn", {"rho_layers": 3}],
    ["ed-hnn", {"weighted": True}],
    ["ed-hnn", {"sparse": True}],
    ["ed-hnn-ii", {"form": "main-text"}],
    ["ed-hnn-ii", {"weighted": True, "aggregate": "sum"}],
    ["invariant", {"sparse": True}],
    ["alldeepsets", {"sparse": True}],
]


def capabilities():
    """Return the instruction sets that PyTorch can use here, by their names in ATEN_CPU_CAPABILITY."""
    flags = torch.backends.cpu.get_cpu_capability().lower()
    return ("default", "avx2", "avx512")[: {"default": 1, "no avx": 1, "avx2": 2, "avx512": 3}.get(flags, 1)]


def compare(capability, level, cases):
    """Run `same_bits` on the cases, in a process with these instruction sets; return its report."""
    environment = {
        **os.environ,
        "ATEN_CPU_CAPABILITY": capability,
        "MKL_CBWR": SETTINGS["MKL_CBWR"],
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": "3",
    }
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.models.same_bits",
        str(NAMES.index(level)),
        json.dumps(cases),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    counts = f"{report['compared']} tensors, {len(report['differ'])} differ"
    sys.stdout.write(f"PyTorch {report['capability']}, our kernels {level}: {counts}\n")
    return report


def sized(widths):
    return [
        [name, {"hidden": width, "classifier_hidden": width}] for name in ("ed-hnn", "ed-hnn-ii") for width in widths
    ]


@needs_native
def test_gradients_have_the_same_bits_for_any_number_of_threads():
    report = compare(capabilities()[-1], available()[-1], sized((16, 256)))
    assert report["compared"] >= 200
    assert not report["differ"]


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize(("capability", "level"), list(itertools.product(capabilities(), available() or NAMES[:1])))
def test_every_model_has_the_same_bits_on_every_instruction_set(capability, level):
    report = compare(capability, level, sized(WIDTHS) + [[name, {}] for name in MODELS] + VARIANTS)
    assert report["compared"] >= 1000
    assert not report["differ"]


class Reductions(TorchDispatchMode):
    """Records PyTorch's sums over rows, or over so many entries that several threads may share them."""

    ALWAYS = (
        "native_batch_norm",
        "native_layer_norm",
        "layer_norm_backward",
        "batch_norm",
        "prelu",
        "mv",
        "addmv",
        "dot",
    )
    SOMETIMES = ("sum", "mean", "norm", "var", "prod", "linalg_vector_norm", "nansum")

    def __init__(self):
        super().__init__()
        self.sums, self.ours = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        self.ours += name.startswith("edhnn::")
        if name in self.ALWAYS or name.startswith(("native_batch_norm", "native_layer_norm")):
            self.sums.append(name)
        if name in self.SOMETIMES and args[0].numel() >= SERIAL:
            dims = args[1] if len(args) > 1 and isinstance(args[1], list) else None
            if not dims or 0 in dims:
                self.sums.append(f"{name} of {list(args[0].shape)} over {dims}")
        return func(*args, **(kwargs or {}))


@needs_native
@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in MODELS] + [(name, options) for name, options in VARIANTS],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_a_training_step_uses_no_pytorch_sum_over_rows(name, options):
    data = contextual_sbm(2, nodes_per_class=1500, num_hyperedges=800)
    options = {key: value for key, value in options.items() if key != "weighted"}
    x = data.x.to_sparse_csr() if options.pop("sparse", False) else data.x
    hypergraph = add_singletons(data.hypergraph) if MODELS[name].singletons else data.hypergraph
    model = make_model(name, in_features=data.num_features, num_classes=2, **options).train()
    with Reductions() as reductions:
        torch.nn.functional.cross_entropy(model(x, hypergraph), data.y).backward()
    assert reductions.ours
    assert not reductions.sums
