"""Structure derived once per hypergraph or tensor, held weakly: another gets its own, nothing outlives its owner.

What is kept is made outside inference mode, since training may meet it later, and nothing is kept while a model is
traced: a tensor of a trace lives in it only.
"""

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
_BY_TENSOR = WeakTensorKeyDictionary()
_BY_FEATURES: WeakKeyDictionary[Hypergraph, WeakTensorKeyDictionary] = WeakKeyDictionary()


def per_hypergraph(hypergraph: Hypergraph, key: Hashable, make: Callable[[], Made]) -> Made:
    """What ``make`` gives, made once per hypergraph and key."""
    return _once(_BY_HYPERGRAPH.setdefault(hypergraph, {}), key, make)


def per_tensor(tensor: Tensor, key: Hashable, make: Callable[[], Made]) -> Made:
    """What ``make`` gives, made once per tensor and key; for tensors that nobody changes in place."""
    if torch.compiler.is_compiling():
        return make()
    return _once(_BY_TENSOR.setdefault(tensor, {}), key, make)  # type: ignore[no-untyped-call]


def _once(known: dict[Hashable, Any], key: Hashable, make: Callable[[], Made]) -> Made:
    if key in known:
        found: Made = known[key]
        return found
    if torch.compiler.is_compiling():
        return make()
    with torch.inference_mode(False), torch.no_grad():
        known[key] = made = make()
    return made


def per_features(
    hypergraph: Hypergraph, x: Tensor, name: str, key: Hashable, make: Callable[[Tensor], Made], *tensors: Tensor
) -> Made:
    """What ``make(x)`` gives, kept for the last key under each name, for as long as hypergraph and features live.

    Args:
        hypergraph: The hypergraph.
        x: Features. Those that want a gradient are computed with each time, and so are features changed in place and
            those made in inference mode, of which torch does not say whether they were changed. Nor does it say so of
            memory that is shared with NumPy: change that and the old answer stays.
        name: What is made.
        key: What else it depends on: options.
        make: Makes it.
        tensors: More that it depends on, compared by their numbers.

    Returns:
        What was made.
    """
    if (x.requires_grad and torch.is_grad_enabled()) or x.is_inference() or torch.compiler.is_compiling():
        return make(x)
    known = _BY_FEATURES.setdefault(hypergraph, WeakTensorKeyDictionary()).setdefault(x, {})  # type: ignore[no-untyped-call]
    stamp = x._version, key, tuple(tensor.cpu().double().numpy().tobytes() for tensor in tensors)
    if name not in known or known[name][0] != stamp:
        with torch.inference_mode(False), torch.no_grad():
            known[name] = stamp, make(x)
    found: Made = known[name][1]
    return found
