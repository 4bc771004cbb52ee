"""Compare outputs and gradients of models for one, two and three threads; `test_same_bits` runs it as a process.

    python -m tests.models.same_bits LEVEL CASES

LEVEL is the instruction set of our kernels (0 portable, 1 AVX2, 2 AVX-512); PyTorch's comes from ATEN_CPU_CAPABILITY.
CASES is a JSON list of [name, options]. Prints the number of compared tensors and the names of those that differ.
"""

import json
import sys

import torch

from edhnn import Hypergraph, contextual_sbm, make_model
from edhnn.hypergraph.transforms import add_singletons
from edhnn.kernels import native_backend
from edhnn.models.registry import MODELS

THREADS = (1, 2, 3)


def tensors(name, options, data, hypergraph, x):
    """Return the output and the gradient of every parameter, by name."""
    model = make_model(name, in_features=data.num_features, num_classes=2, **options).train()
    out = model(x, hypergraph)
    torch.nn.functional.cross_entropy(out, data.y).backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters() if parameter.grad is not None}
    assert gradients
    return {"output": out.detach(), **gradients}


def main(level, cases):
    if native_backend.LOADED is not None:
        assert native_backend.LOADED.edhnn_instruction_set(level) == level
    data = contextual_sbm(2, nodes_per_class=1500, num_hyperedges=800)
    plain = data.hypergraph
    weighted = Hypergraph(
        plain.node_index,
        plain.edge_index,
        plain.num_nodes,
        plain.num_edges,
        edge_weight=1.0 + torch.arange(plain.num_edges) % 3,
        incidence_weight=1.0 + torch.arange(plain.num_incidences) % 5,
    )
    compared, different = 0, []
    for name, options in cases:
        options = dict(options)
        hypergraph = weighted if options.pop("weighted", False) else plain
        x = data.x.to_sparse_csr() if options.pop("sparse", False) else data.x
        if MODELS[name].singletons:
            hypergraph = add_singletons(hypergraph)
        results = []
        for count in THREADS:
            torch.set_num_threads(count)
            results.append(tensors(name, options, data, hypergraph, x))
        for other, count in zip(results[1:], THREADS[1:], strict=True):
            for key, tensor in results[0].items():
                compared += 1
                if not torch.equal(tensor, other[key]):
                    different.append(f"{name} {options} {key}: {count} threads")
    report = {"capability": torch.backends.cpu.get_cpu_capability(), "compared": compared, "differ": different}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
