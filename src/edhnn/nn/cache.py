"""Values derived once per hypergraph, tensor, pairs or features, and kept for as long as these live.

`Hypergraph.derive` keeps what depends on a hypergraph alone; the caches of tensors hold their tensors weakly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph

Made = TypeVar("Made")
_BY_TENSOR = WeakTensorKeyDictionary()


def cached_per_hypergraph(hypergraph: Hypergraph, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what ``make`` gives, made once per hypergraph and key."""
    return hypergraph.derive(key, make)


def cached_per_tensor(tensor: Tensor, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return the result of ``make``, computed once per tensor and key; the tensor must not change in place."""
    if torch.compiler.is_compiling():
        return make()
    known: dict[Hashable, Made] = _BY_TENSOR.setdefault(tensor, {})  # type: ignore[no-untyped-call]
    if key not in known:
        with torch.inference_mode(False), torch.no_grad():
            known[key] = make()
    return known[key]


def cached_per_features(
    hypergraph: Hypergraph, x: Tensor, name: str, key: Hashable, make: Callable[[Tensor], Made], *tensors: Tensor
) -> Made:
    """Return ``make(x)``, kept for the last key of each name while hypergraph and features live.

    Args:
        hypergraph: The hypergraph.
        x: Features. The result is computed again for features that need a gradient, were changed in place, or were
            made in inference mode, where torch does not record changes. A change of memory that is shared with NumPy
            goes unnoticed.
        name: What is made.
        key: What else it depends on: options.
        make: Makes it.
        tensors: More that it depends on, compared by their numbers.

    Returns:
        What was made.
    """
    if torch.compiler.is_compiling() or (x.requires_grad and torch.is_grad_enabled()) or x.is_inference():
        return make(x)
    known = hypergraph.derive("by features", WeakTensorKeyDictionary).setdefault(x, {})  # type: ignore[no-untyped-call]
    stamp = x._version, key, tuple(tensor.cpu().double().numpy().tobytes() for tensor in tensors)
    if name not in known or known[name][0] != stamp:
        with torch.inference_mode(False), torch.no_grad():
            known[name] = stamp, make(x)
    found: Made = known[name][1]
    return found


def hypergraph_of_pairs(
    index: Tensor, num_nodes: int, num_edges: int | None = None, edge_weight: Tensor | None = None
) -> Hypergraph:
    """Return the hypergraph of pairs [2, I] of nodes and hyperedges (PyG's ``hyperedge_index``), made once per tensor.

    It is made again for other counts, and if the index or the weights were changed in place.

    Args:
        index: The pairs.
        num_nodes: Number of nodes.
        num_edges: Number of hyperedges; by default one more than the largest index.
        edge_weight: A weight per hyperedge.

    Raises:
        DataError: if the index has another shape, or an entry lies outside its count.
    """
    if index.dim() != 2 or len(index) != 2:
        raise DataError(f"A hyperedge_index must have shape [2, I]. Got {list(index.shape)}.")

    def make() -> Hypergraph:
        highest = int(index[1].max()) + 1 if index.shape[1] else 0
        count = highest if num_edges is None else num_edges
        return Hypergraph.from_incidence(index, num_nodes=num_nodes, num_edges=count, edge_weight=edge_weight)

    weight = index if edge_weight is None else edge_weight
    if torch.compiler.is_compiling() or index.is_inference() or weight.is_inference():
        return make()
    known = cached_per_tensor(index, "hypergraphs", WeakTensorKeyDictionary).setdefault(weight, {})  # type: ignore[no-untyped-call]
    stamp = index._version, weight._version, num_nodes, num_edges
    if known.get("stamp") != stamp:
        known.update(stamp=stamp, hypergraph=make())
    found: Hypergraph = known["hypergraph"]
    return found
