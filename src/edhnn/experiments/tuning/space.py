"""What a search may choose: the paper's grid of depth and width, or more of it.

A parameter is the name of an option of the model or of training. What the user has set is not searched.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from edhnn.errors import UsageError
from edhnn.models.registry import MODELS

DEPTHS: Final = (1, 2, 4, 6, 8)
"""Iterations, or layers where a model has no iterations. Paper: Appendix F.3."""

WIDTHS: Final = (96, 128, 256, 512)
"""Width of the states, or of the classifier where that is the only one. Paper: Appendix F.3."""

_GRID = ((("num_iterations", "layers"), DEPTHS), (("hidden", "classifier_hidden"), WIDTHS))
_WIDE: Final[dict[str, BaseDistribution]] = {
    "num_iterations": IntDistribution(1, 8),
    "layers": IntDistribution(1, 4),
    "mlp_layers": IntDistribution(1, 3),
    "phi_layers": IntDistribution(1, 3),
    "rho_layers": IntDistribution(1, 3),
    "update_layers": IntDistribution(1, 3),
    "classifier_layers": IntDistribution(1, 3),
    "hidden": CategoricalDistribution((64, *WIDTHS)),
    "classifier_hidden": CategoricalDistribution((64, *WIDTHS)),
    "dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "restart": FloatDistribution(0.0, 0.9, step=0.1),
}
_TRAINING: Final[dict[str, BaseDistribution]] = {
    "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
    "weight_decay": CategoricalDistribution((0.0, 1e-5, 1e-4, 1e-3)),
}


def paper_space(model: str, fixed: Collection[str]) -> dict[str, CategoricalDistribution]:
    """Depth and width, as far as the model has them and they are not fixed.

    Raises:
        UsageError: if nothing is left to choose.
    """
    known = [option.name for option in fields(MODELS[model].config)]  # type: ignore[arg-type]
    space = {
        next(name for name in names if name in known): CategoricalDistribution(values)
        for names, values in _GRID
        if any(name in known for name in names)
    }
    left = {name: values for name, values in space.items() if name not in fixed}
    _check_left(left, space, model)
    return left


def wide_space(model: str, options: Mapping[str, Any], fixed: Collection[str]) -> dict[str, BaseDistribution]:
    """Depth, widths, layers of the perceptrons, dropout, restart, learning rate and weight decay.

    Args:
        model: The model.
        options: Its options; a restart that its update does not use is not searched.
        fixed: Names that are not searched.

    Returns:
        A distribution for each parameter.

    Raises:
        UsageError: if nothing is left to choose.
    """
    known = {option.name for option in fields(MODELS[model].config)}  # type: ignore[arg-type]
    if options.get("update") == "concat":
        known.discard("restart")
    space = {name: _WIDE[name] for name in _WIDE if name in known} | _TRAINING
    left = {name: values for name, values in space.items() if name not in fixed}
    _check_left(left, space, model)
    return left


def grid_points(space: Mapping[str, CategoricalDistribution], seed: int) -> list[dict[str, Any]]:
    """All points of a grid, in an order that the seed decides: a search cut short has seen a bit of everything."""
    names = list(space)
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(space[n].choices for n in names))]
    order = np.random.RandomState(seed % 2**32).permutation(len(points))
    return [points[place] for place in order]


def _check_left(left: Collection[str], space: Collection[str], model: str) -> None:
    if not left:
        raise UsageError(
            f"A search must have something to choose. '{model}' has {', '.join(space) or 'nothing'} in this space, and "
            "all of it is set. Leave out a --set, or use --space wide."
        )
