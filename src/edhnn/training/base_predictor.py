r"""Base predictors: answers from a node's own features alone, which a network then corrects.

A base predictor is fitted on the training nodes of a split, and its outputs $b_v$ (log-odds of the classes or labels,
less their mean over the classes; standardised values in a regression) are inputs of the network and are added to its
outputs. On the training nodes the outputs come from fits on the other nodes (*out of fold*): otherwise they would be
surer there than elsewhere, and the network would learn to trust them too much.

A fitted predictor is tensors. It is stored as such, never pickled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, as_numpy, features_to_scipy
from edhnn.data.splits import Split
from edhnn.io.tensors import Tensors
from edhnn.seeding import derive_seed
from edhnn.training.config import BaseName
from edhnn.training.objective import Objective
from edhnn.typing import IntArray

FOLDS: Final = 5
_STRENGTHS: Final[dict[str, tuple[float, ...]]] = {
    "l2": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "l1": (0.01, 0.03, 0.1, 0.3, 1.0),
}
"""Inverse strengths of the penalty, from the strongest penalty on."""
_ALPHAS: Final = (1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01)
_RARE = -8.0  # log-odds of a class that no node of a fit has


@final
@dataclass(frozen=True, slots=True, eq=False)
class BasePredictor:
    """A fitted base predictor, and its fits without each fold of the training nodes.

    Attributes:
        weight: The linear maps of the whole fit and of the fits without fold 0, 1, ...; ``[1 + FOLDS, C, D]``.
        bias: Their constants, ``[1 + FOLDS, C]``.
        penalty: The chosen penalty, for the record: ``l1`` or ``l2``.
        strength: Its inverse strength (of a regression: its strength).
    """

    weight: Float[Tensor, "K C D"]
    bias: Float[Tensor, "K C"]
    penalty: str
    strength: float

    def outputs(self, x: Tensor, folds: Int[Tensor, " N"] | None = None) -> Float[Tensor, "N C"]:
        """Return the outputs for every node.

        Args:
            x: The features, dense or sparse CSR.
            folds: The fold of each training node, -1 for other nodes. A node of a fold gets the output of the fit
                without this fold.
        """
        matrix = _matrix(x)
        outputs = self._linear(matrix, 0)
        for fold in range(len(self.weight) - 1) if folds is not None else ():
            assert folds is not None
            nodes = (folds == fold).nonzero()[:, 0]
            if len(nodes):
                outputs[nodes] = self._linear(matrix[nodes.numpy()], 1 + fold)
        return outputs

    def _linear(self, matrix: Any, fit: int) -> Tensor:
        product = matrix @ self.weight[fit].double().numpy().T + self.bias[fit].double().numpy()
        return torch.from_numpy(np.asarray(product)).float()

    def tensors(self) -> Tensors:
        """Return the tensors to store."""
        return {"weight": self.weight, "bias": self.bias}


def fit_base(
    name: BaseName, x: Tensor, y: Tensor, split: Split, objective: Objective, seed: int
) -> tuple[BasePredictor, Int[Tensor, " N"]] | None:
    """Fit a base predictor on the training nodes of a split.

    The penalty is the one with the smallest loss on the validation nodes and, if there are at most 500 training nodes,
    on the training nodes out of fold. Test labels are not read.

    Args:
        name: The kind of predictor.
        x: Features of all nodes, on the CPU.
        y: Labels of all nodes.
        split: The parts.
        objective: The task.
        seed: Seed of the folds.

    Returns:
        The predictor and the fold of each node (-1 for those that are not training nodes); ``None`` for ``none``.
    """
    if name == "none":
        return None
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    targets = objective.targets(y).numpy()
    folds = _draw_folds(targets, split.train.numpy(), seed)
    matrix = _matrix(x)
    with threadpool_limits(limits=1), warnings.catch_warnings():  # the same sums for any number of threads
        warnings.simplefilter("ignore")  # an unfinished fit is a candidate like another
        predictor = _fit_linear(matrix, targets, split, folds, objective)
    return predictor, torch.from_numpy(folds)


def _draw_folds(targets: Any, train: IntArray, seed: int) -> IntArray:
    """Deal the training nodes to the folds, class by class; -1 for other nodes."""
    folds = np.full(len(targets), -1, dtype=np.int64)
    order = np.random.default_rng(derive_seed(seed, "base folds")).permutation(train)
    if targets.ndim == 1:
        order = order[np.argsort(targets[order], kind="stable")]
    folds[order] = np.arange(len(order)) % FOLDS
    return folds


def _matrix(x: Tensor) -> Any:
    """Return features in 64 bits as an array, or as a sparse matrix with the indices that scikit-learn accepts."""
    if x.layout != torch.sparse_csr:
        return as_numpy(x).astype(np.float64)
    found = features_to_scipy(x)
    parts = found.data.astype(np.float64), found.indices.astype(np.int32), found.indptr.astype(np.int32)
    return sp.csr_matrix(parts, shape=found.shape)


Maps = tuple[Any, Any]
"""A linear map of the features, ``[C, D]``, and its constants, ``[C]``."""


def _fit_linear(matrix: Any, targets: Any, split: Split, folds: IntArray, objective: Objective) -> BasePredictor:
    """Fit linear maps. Dense columns have mean 0 and deviation 1 over the training nodes in the fits."""
    train, valid = split.train.numpy(), split.valid.numpy()
    mean, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    if not sp.issparse(matrix):
        mean, scale = matrix[train].mean(axis=0), matrix[train].std(axis=0)
        scale[scale == 0] = 1.0
        scaled = (matrix - mean) / scale
    else:
        scaled = matrix
    fit = {"classification": _softmax, "multilabel": _binary, "regression": _ridge}[objective.task]
    count = objective.num_outputs

    def outputs_of(maps: Maps, nodes: IntArray) -> Tensor:
        return torch.from_numpy(np.asarray(scaled[nodes] @ maps[0].T + maps[1]))

    def folds_without(penalty: str, strength: float) -> list[Maps]:
        kept = (train[folds[train] != fold] for fold in range(FOLDS))
        return [fit(scaled[nodes], targets[nodes], count, penalty, strength) for nodes in kept]

    def loss_of(maps: Maps, penalty: str, strength: float) -> float:
        nodes, outputs = [valid], [outputs_of(maps, valid)]
        if len(train) <= _FEW:
            for fold, part in enumerate(folds_without(penalty, strength)):
                nodes.append(train[folds[train] == fold])
                outputs.append(outputs_of(part, nodes[-1]))
        return float(objective.loss(torch.cat(outputs), _as_targets(targets[np.concatenate(nodes)])))

    best, chosen, whole = np.inf, ("l2", 1.0), None
    for penalty, strengths in _candidates(objective):
        worse = 0
        for strength in strengths:
            maps = fit(scaled[train], targets[train], count, penalty, strength)
            loss = loss_of(maps, penalty, strength)
            if loss < best:
                best, chosen, whole, worse = loss, (penalty, strength), maps, 0
            else:
                worse += 1
            if worse >= _PATIENCE and whole is not None:
                break
    assert whole is not None
    weights, constants = zip(*_unscaled([whole, *folds_without(*chosen)], mean, scale), strict=True)
    return BasePredictor(
        torch.from_numpy(np.stack(weights)).float(), torch.from_numpy(np.stack(constants)).float(), *chosen
    )


_PATIENCE = 3
_FEW = 500


def _candidates(objective: Objective) -> Iterator[tuple[str, tuple[float, ...]]]:
    if objective.task == "regression":
        yield "l2", _ALPHAS
    else:
        yield from _STRENGTHS.items()


def _as_targets(targets: Any) -> Tensor:
    found = torch.from_numpy(targets)
    return found.double() if found.is_floating_point() else found


def _unscaled(fits: Iterable[Maps], mean: Any, scale: Any) -> Iterator[Maps]:
    """Rewrite maps of scaled columns as maps of the columns, centred over the classes by their callers."""
    for weight, constant in fits:
        plain = weight / scale
        yield plain, constant - plain @ mean


def _logistic(penalty: str, strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    if penalty == "l1":
        return LogisticRegression(C=strength, l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=100, random_state=0)
    return LogisticRegression(C=strength, max_iter=200)


def _softmax(x: Any, y: Any, count: int, penalty: str, strength: float) -> Maps:
    """Fit multinomial logistic regression; the columns' mean over the classes is 0."""
    weight, constant = np.zeros((count, x.shape[1])), np.full(count, _RARE)
    known = y != UNLABELLED
    present = np.unique(y[known])
    if len(present) == 1:
        constant[present] = -_RARE
    elif len(present):
        model = _logistic(penalty, strength).fit(x[known], y[known])
        if len(present) == 2:
            weight[present] = np.concatenate([-model.coef_, model.coef_]) / 2
            constant[present] = np.concatenate([-model.intercept_, model.intercept_]) / 2
        else:
            weight[present], constant[present] = model.coef_, model.intercept_
    return weight - weight.mean(axis=0), constant - constant.mean()


def _binary(x: Any, y: Any, count: int, penalty: str, strength: float) -> Maps:
    """Fit logistic regression for each label, on the nodes whose entry is known."""
    weight, constant = np.zeros((count, x.shape[1])), np.zeros(count)
    for label in range(count):
        known = ~np.isnan(y[:, label])
        values = y[known, label]
        if len(np.unique(values)) == 2:
            model = _logistic(penalty, strength).fit(x[known], values)
            weight[label], constant[label] = model.coef_[0], model.intercept_[0]
        elif len(values):
            constant[label] = -_RARE if values[0] else _RARE
    return weight, constant


def _ridge(x: Any, y: Any, count: int, penalty: str, strength: float) -> Maps:
    """Fit linear regression for each target, on the nodes whose value is known."""
    from sklearn.linear_model import Ridge

    del penalty
    weight, constant = np.zeros((count, x.shape[1])), np.zeros(count)
    for target in range(count):
        known = ~np.isnan(y[:, target])
        if known.any():
            solver = "sparse_cg" if sp.issparse(x) else "auto"
            model = Ridge(alpha=strength, solver=solver).fit(x[known], y[known, target].astype(np.float64))
            weight[target], constant[target] = model.coef_, model.intercept_
    return weight, constant
