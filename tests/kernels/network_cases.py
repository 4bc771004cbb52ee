"""Random problems for the network kernels, and how an implementation is compared with the loops."""

import torch
from hypothesis import strategies as st

from edhnn import Hypergraph
from edhnn.kernels import Moments, edge_links, node_links
from tests.kernels.implementations import run
from tests.strategies import hyperedge_lists

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@st.composite
def pair_options(draw):
    """Which options a call has: names and plain numbers."""
    return {
        "bias": draw(st.booleans()),
        "moments": draw(st.booleans()),
        "activation": draw(st.sampled_from(["relu", "identity"])),
        "norm": draw(st.sampled_from(["none", "weight", "both"])),
        "dropout": draw(st.sampled_from([0.0, 0.25, 0.5, 0.9])),
        "weight": draw(st.booleans()),
        "mean": draw(st.booleans()),
        "shift": draw(st.sampled_from([0.0, 0.0, 30.0])),  # a mean that is large beside the spread
    }


PROBLEMS = st.tuples(
    hyperedge_lists(max_nodes=6, max_edges=6),
    st.sampled_from([1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 40]),
    st.booleans(),
    st.integers(0, 2**32),
)


def build(problem, dtype=torch.float64):
    """(links, channels, draw): draw makes tensors of a shape from the problem's own generator."""
    (num_nodes, hyperedges), channels, by_node, seed = problem
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    links = node_links(hypergraph) if by_node else edge_links(hypergraph)
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    return links, channels, draw


def pair_arguments(links, channels, draw, options):
    """(a, b) and the keyword tensors of a call, as leaves; moments as four of them."""
    rows, columns = links.num_rows, links.num_columns
    tensors = {"a": draw(rows, channels) + options["shift"], "b": draw(columns, channels)}
    if options["bias"]:
        tensors["bias"] = draw(channels)
    if options["moments"]:
        tensors |= {"q_row": draw(rows).square(), "mu_row": draw(rows)}
        tensors |= {"q_column": draw(columns).square(), "mu_column": draw(columns)}
    if options["norm"] != "none":
        tensors["norm_weight"] = draw(channels)
    if options["norm"] == "both":
        tensors["norm_bias"] = draw(channels)
    if options["weight"]:
        tensors["weight"] = draw(links.num_links)
    return tensors


def call_pair(function, tensors, links, options, seed=7):
    """The kernel or its reference on these tensors."""
    named = {name: tensors[name] for name in ("bias", "norm_weight", "norm_bias", "weight") if name in tensors}
    if "q_row" in tensors:
        parts = (tensors[name] for name in ("q_row", "mu_row", "q_column", "mu_column"))
        named["moments"] = Moments(*parts, kappa=0.21, eps=0.1)
    return function(
        tensors["a"],
        tensors["b"],
        links,
        activation=options["activation"],
        dropout=options["dropout"],
        norm_eps=0.05,
        seed=seed,
        mean=options["mean"],
        **named,
    )


def compare(implementation, kernel, reference, tensors, dtype, grad_seed=0):
    """Forward and every gradient of ``kernel(tensors)`` beside those of the loops in float64."""
    exact = {name: tensor.double().detach().requires_grad_() for name, tensor in tensors.items()}
    leaves = {name: tensor.detach().to(dtype).requires_grad_() for name, tensor in tensors.items()}
    wanted = reference(exact)
    found = run(implementation, kernel, leaves)
    generator = torch.Generator().manual_seed(grad_seed)
    weight = torch.randn(wanted.shape, generator=generator, dtype=torch.float64).to(dtype)
    close(found, wanted, dtype)
    if not wanted.requires_grad or not leaves:
        return
    by_loops = torch.autograd.grad(wanted, list(exact.values()), weight.double(), materialize_grads=True)
    by_kernel = run(
        implementation,
        lambda: torch.autograd.grad(found, list(leaves.values()), weight, materialize_grads=True),
    )
    for name, mine, theirs in zip(leaves, by_kernel, by_loops, strict=True):
        close(mine, theirs, dtype, name)


def close(found, wanted, dtype, name="value"):
    """Within the tolerance of the type, relative to the largest entry, or to 1 where all are small."""
    assert found.dtype == dtype and found.shape == wanted.shape, name
    if wanted.numel():
        scale = max(1.0, float(wanted.detach().abs().max()))
        worst = float((found.detach().double() - wanted.detach()).abs().max()) / scale
        assert worst <= TOLERANCE[dtype], f"{name}: {worst}"


def random_links(rows, columns, count, dtype, seed=0):
    """Links at random, with rows and columns that have none, and a source of tensors."""
    generator = torch.Generator().manual_seed(seed)
    node, edge = (torch.randint(size, (count,), generator=generator) for size in (rows, columns))
    links = node_links(Hypergraph(node, edge, rows, columns))
    return links, lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
