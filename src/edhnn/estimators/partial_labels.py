"""Labels of which some are unknown: which are known, and how right answers are where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from edhnn.errors import DataError
from edhnn.typing import BoolArray

UNLABELLED = -1


def labelled(labels: Any) -> BoolArray:
    """Which entries are not -1; among strings and objects not "-1" either."""
    if labels.dtype.kind in "biuf":
        return np.asarray(labels != UNLABELLED)
    return np.array([label not in (UNLABELLED, str(UNLABELLED)) for label in labels.tolist()], dtype=bool)


def accuracy_where_labelled(y: object, answers: Any, sample_weight: Any = None) -> float:
    """The share of right answers among the samples whose class is known.

    Raises:
        DataError: if none is.
    """
    labels = np.asarray(y)
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    true, answered, weight = _known(labels, answers, sample_weight, labelled(labels))
    return float(accuracy_score(true, answered, sample_weight=weight))


def r2_where_known(y: object, answers: Any, sample_weight: Any = None) -> float:
    """The coefficient of determination over the samples of which all values are known.

    Raises:
        DataError: if there is none.
    """
    values = np.asarray(y, dtype=float)
    known = ~np.isnan(values.reshape(len(values), -1)).any(axis=1)
    true, answered, weight = _known(values, answers, sample_weight, known)
    return float(r2_score(true, answered, sample_weight=weight))


def _known(y: Any, answers: Any, weight: Any, known: BoolArray) -> tuple[Any, Any, Any]:
    if not known.any():
        raise DataError(f"A score needs samples with known labels. All {len(known)} of 'y' are unknown.")
    return y[known], np.asarray(answers)[known], None if weight is None else np.asarray(weight)[known]
