"""Time the fused message kernel on the datasets' sizes, per incidence and channel: native, torch, and textbook torch.

It uses random hypergraphs, dropout 0.5, and LayerNorm before and after, as in training.

    python benchmarks/kernels.py senate congress
"""

import sys
import time
from functools import partial

from edhnn.runtime import configure_runtime

configure_runtime()  # before PyTorch is loaded: see docs/adr/0020

import torch
from torch.nn.functional import dropout, layer_norm

from edhnn import Hypergraph
from edhnn.kernels import Moments, choose, node_links, pair_sum

SIZES = {  # nodes, hyperedges, incidences, channels
    "senate": (282, 597, 5_200, 512),
    "house": (1_290, 1_631, 13_000, 256),
    "congress": (1_718, 84_823, 732_000, 156),
    "walmart": (88_860, 158_766, 549_000, 128),
    "random": (100_000, 100_000, 1_000_000, 64),
    "large": (1_000_000, 1_000_000, 10_000_000, 64),
}
REPEATS = 5


def main() -> None:
    print("workload  threads  kernel     forward  backward   (ns per incidence and channel)")
    for name in sys.argv[1:] or ("senate", "house", "congress", "walmart", "random"):
        nodes, edges, incidences, channels = SIZES[name]
        generator = torch.Generator().manual_seed(0)
        pairs = (torch.randint(count, (incidences,), generator=generator) for count in (nodes, edges))
        links = node_links(Hypergraph(*pairs, nodes, edges))
        a, b, *vectors = (
            torch.rand(shape, generator=generator).sub_(0.2).requires_grad_()
            for shape in ((nodes, channels), (edges, channels), channels, channels, channels)
        )
        q = [torch.rand(count, generator=generator).requires_grad_() for count in (nodes, nodes, edges, edges)]
        leaves = [a, b, *vectors, *q]
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for kernel in ("native", "torch", "textbook"):
                if kernel != "native" and name == "large":
                    continue
                choose("torch" if kernel == "torch" else "native")
                call = textbook if kernel == "textbook" else fused
                times = [cost(partial(call, a, b, links, vectors, q), leaves) for _ in range(REPEATS)]
                scale = 1e9 / links.num_links / channels
                forward, backward = (scale * min(column) for column in zip(*times, strict=True))
                print(f"{name:9} {threads:7}  {kernel:9} {forward:8.2f} {backward:9.2f}", flush=True)


def fused(a, b, links, vectors, q):
    bias, norm_weight, norm_bias = vectors
    return pair_sum(
        a, b, links, bias=bias, moments=Moments(*q), norm_weight=norm_weight, norm_bias=norm_bias, dropout=0.5, seed=1
    )


def textbook(a, b, links, vectors, q):
    """Compute the same messages with index_select, torch's dropout and index_add; the first layer is split here too."""
    bias, norm_weight, norm_bias = vectors
    row, column = links.row_index, links.row_column
    apart = q[1][row] - q[3][column]
    rho = (q[0][row] + q[2][column] + 0.25 * apart * apart + 1e-5).rsqrt()
    u = torch.relu(rho[:, None] * (a.index_select(0, row) + b.index_select(0, column)) + bias)
    message = dropout(layer_norm(u, u.shape[1:], norm_weight, norm_bias), 0.5)
    return torch.zeros_like(a).index_add(0, row, message)


def cost(call, leaves):
    start = time.perf_counter()
    out = call()
    middle = time.perf_counter()
    torch.autograd.grad(out, leaves, torch.ones_like(out))
    return middle - start, time.perf_counter() - middle


if __name__ == "__main__":
    main()
