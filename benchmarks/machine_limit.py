"""The least time that a training step of ED-HNN can take on this machine, from measured rates.

It is the time of the step's matrix products, measured with the same shapes, plus the time to read the rows that every
algorithm must read (each gathered row once per direction and pass), at the measured rate of row gathers from a table of
that size.
"""

import time
from collections.abc import Callable

import torch

from edhnn import Hypergraph


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def limit(hypergraph: Hypergraph, x: torch.Tensor, classes: int, sizes: dict) -> dict[str, float]:
    """Measure the seconds of a step's matrix products and of the rows that it must gather."""
    width, nodes, edges, pairs = sizes["hidden"], hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences
    rows = min(nodes, edges)
    inside = [(nodes, width, width)] * (sizes["phi_layers"] + sizes["update_layers"] + 1 + (sizes["rho_layers"] - 1))
    inside += [(rows, width, width)]
    outside = [(nodes, width, sizes["classifier_hidden"])] * (sizes["classifier_layers"] - 1)
    outside += [(nodes, sizes["classifier_hidden"], classes)]
    if x.layout != torch.sparse_csr:
        outside += [(nodes, x.shape[1], width)]
    products = sum(product_seconds(*shape) for shape in inside * sizes["num_iterations"] + outside)
    passes = 2 + 3  # forward: in and out; backward: in, and out at both ends
    each = gather_seconds(max(nodes, edges), width) * pairs
    gathers = passes * each * sizes["num_iterations"]
    return {"products": products, "gathers": gathers, "step": products + gathers}


def product_seconds(rows: int, inner: int, columns: int) -> float:
    """Measure the forward pass and both gradients of a linear layer."""
    a, b, g = torch.randn(rows, inner), torch.randn(inner, columns), torch.randn(rows, columns)
    calls = (lambda: a @ b, lambda: g @ b.t(), lambda: a.t() @ g)
    return sum(min(seconds(call) for _ in range(5)) for call in calls)


def gather_seconds(rows: int, width: int) -> float:
    """Measure the seconds per row of reading random rows of a table once, by summing them."""
    table, count = torch.randn(rows, width), 200_000
    index = torch.randint(rows, (count,), generator=torch.Generator().manual_seed(0))
    bag = torch.arange(0, count, 10)
    call = lambda: torch.nn.functional.embedding_bag(index, table, bag, mode="sum")  # noqa: E731
    return min(seconds(call) for _ in range(5)) / count
