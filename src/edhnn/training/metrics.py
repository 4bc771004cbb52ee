r"""How good outputs are, task by task, over entries whose label is known.

Classification: accuracy. Multi-label: accuracy and micro-averaged $F_1$ over single entries. Regression: mean absolute
error, root mean squared error and $R^2$, in the labels' own units.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

Metrics = dict[str, float]
"""Metric by name. NaN where nothing is known, so that it cannot be taken for a result."""


def classification_metrics(logits: Float[Tensor, "N C"], y: Int[Tensor, " N"]) -> Metrics:
    """The share of labelled nodes whose largest output is their class. Paper: Appendix F.3 (accuracy)."""
    known = y >= 0
    hits = (logits.argmax(dim=1) == y)[known]
    return {"accuracy": _share(int(hits.sum()), len(hits))}


def multilabel_metrics(logits: Float[Tensor, "N C"], y: Float[Tensor, "N C"]) -> Metrics:
    """Accuracy and micro-averaged F1 over known entries; a positive output says yes."""
    known = ~y.isnan()
    said, true = (logits > 0)[known], (y == 1)[known]
    both, either = int((said & true).sum()), int(said.sum()) + int(true.sum())
    nothing_to_find = 1.0 if len(true) else math.nan
    return {
        "micro_f1": 2 * both / either if either else nothing_to_find,
        "accuracy": _share(int((said == true).sum()), len(true)),
    }


def regression_metrics(values: Float[Tensor, "N T"], y: Float[Tensor, "N T"]) -> Metrics:
    """Errors over known entries; R2 is that of all targets together, each around its own mean."""
    known = ~y.isnan()
    count = int(known.sum())
    if not count:
        return {"rmse": math.nan, "mae": math.nan, "r2": math.nan}
    zeros = torch.zeros((), dtype=torch.float64)
    error = torch.where(known, values.double() - y.double(), zeros)
    mean = torch.nanmean(y.double(), dim=0).nan_to_num()
    spread = float(torch.where(known, y.double() - mean, zeros).square().sum())
    squares = float(error.square().sum())
    return {
        "rmse": math.sqrt(squares / count),
        "mae": float(error.abs().sum()) / count,
        "r2": 1 - squares / spread if spread else math.nan,
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
