"""What configurations demand of their fields, in one voice."""

from __future__ import annotations

from typing import Any, get_args

from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph import Hypergraph


def check_counts(config: Any, *names: str) -> None:
    """Fields that must be at least 1."""
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"The '{name}' of a model must be at least 1. Got {getattr(config, name)}.")


def check_choices(config: Any, **choices: Any) -> None:
    """Fields that must be one of the names of a ``Literal``."""
    for name, literal in choices.items():
        if getattr(config, name) not in get_args(literal):
            raise unknown_name(name, getattr(config, name), get_args(literal))


def check_fraction(config: Any, *names: str) -> None:
    """Fields that must lie in 0..1."""
    for name in names:
        if not 0 <= getattr(config, name) <= 1:
            raise UsageError(f"The '{name}' of a model must lie in 0..1. Got {getattr(config, name)}.")


def refuse_weights(hypergraph: Hypergraph, model: str, why: str, *names: str) -> None:
    """Weights a model has no place for are refused, not forgotten."""
    for name in names:
        if getattr(hypergraph, name) is not None:
            raise UsageError(f"{model} cannot honour '{name}': {why}. Give it a hypergraph without, or another model.")
