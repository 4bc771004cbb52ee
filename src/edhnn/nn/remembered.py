"""Structure derived once per hypergraph, held weakly: another one gets its own, and nothing outlives its owner."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from edhnn.hypergraph import Hypergraph

Made = TypeVar("Made")

_BY_HYPERGRAPH: WeakKeyDictionary[Hypergraph, dict[Hashable, Any]] = WeakKeyDictionary()
_BY_FEATURES: WeakKeyDictionary[Hypergraph, WeakTensorKeyDictionary] = WeakKeyDictionary()


def per_hypergraph(hypergraph: Hypergraph, key: Hashable, make: Callable[[], Made]) -> Made:
    """What ``make`` gives, made once per hypergraph and key."""
    known = _BY_HYPERGRAPH.setdefault(hypergraph, {})
    if key not in known:
        known[key] = make()
    found: Made = known[key]
    return found


def per_features(
    hypergraph: Hypergraph, x: Tensor, name: str, key: Hashable, make: Callable[[Tensor], Made], *tensors: Tensor
) -> Made:
    """What ``make(x)`` gives, kept for the last key under each name, for as long as hypergraph and features live.

    Args:
        hypergraph: The hypergraph.
        x: Features. Those that want a gradient are computed with each time, and so are features changed in place.
        name: What is made.
        key: What else it depends on: options.
        make: Makes it.
        tensors: More that it depends on, compared by their numbers.

    Returns:
        What was made.
    """
    if x.requires_grad and torch.is_grad_enabled():
        return make(x)
    known = _BY_FEATURES.setdefault(hypergraph, WeakTensorKeyDictionary()).setdefault(x, {})  # type: ignore[no-untyped-call]
    version = 0 if x.is_inference() else x._version
    stamp = version, key, tuple(tensor.cpu().numpy().tobytes() for tensor in tensors)
    if name not in known or known[name][0] != stamp:
        with torch.no_grad():
            known[name] = stamp, make(x)
    found: Made = known[name][1]
    return found
