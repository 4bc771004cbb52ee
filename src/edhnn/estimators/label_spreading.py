r"""Label spreading over a hypergraph by diffusion, as a scikit-learn classifier.

A sample is a node and a feature is a hyperedge. The first argument is a hypergraph as for the other estimators, or,
with ``table="incidence"``, its nodes x hyperedges incidence matrix as a plain table. Pipelines, `clone`,
cross-validation and grid search work as with any classifier.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from edhnn.data.dataset import UNLABELLED, NodeDataset
from edhnn.diffusion.diffusion import Scaling, diffuse, scaled_strength
from edhnn.diffusion.solver import Outcome, Solution, SolverError
from edhnn.errors import DataError, UsageError
from edhnn.estimators.networks import accuracy_where_labelled, labelled, sample_targets
from edhnn.estimators.samples import NodeSamples, check_table
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.potentials.clique import CliqueExpansion
from edhnn.potentials.registry import make_potential
from edhnn.typing import FloatArray, IntArray


class HypergraphLabelSpreading(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Semi-supervised classification of nodes: $\min_H \sum_v \|h_v - x_v\|^2 + \lambda \sum_e w_e\, g(H_e)$.

    $x_v$ is the one-hot label of a labelled node and 0 for other nodes, a column per class. The rows of the minimiser
    are clipped at 0, which removes negative rounding, and divided by their sums. A row of zeros, of an unlabelled node
    that no label reaches, becomes the prior: the frequencies of the classes among the labelled nodes.
    Paper: Definition 3, Eq. 1 and Example 1 (the potentials $g$).

    For the nodes of the fit, `predict` and `predict_proba` return the transduction. For other rows over the same
    hyperedges, the distribution is the mean, over the node's hyperedges that have fitted members, of the mean
    distribution of those members, or the prior if there is no such hyperedge. Cross-validation with a plain table
    removes rows, so it measures the latter. With a `NodeSamples` it keeps the whole hypergraph and measures the
    transduction.

    Args:
        potential: $g$: ``ce`` clique expansion, ``divergence`` to the mean, ``tv`` total variation, ``lec`` Lovász
            extension of the paper's cardinality cut.
        power: $p$: 1 or 2 for ``tv`` and ``lec``, at least 1 for ``divergence``, 2 for ``ce``.
        strength: $\lambda > 0$, the weight of the hyperedges relative to the labels, before scaling.
        scaling: ``degree`` divides $\lambda$ by the mean degree, ``none`` does not. By default ``degree`` for ``tv``
            and ``lec``, which otherwise give every node of a dense hypergraph the same answer; else ``none``.
        normalisation: For ``ce`` only: ``laplacian``, ``degree`` or ``none``, see `CliqueExpansion`. With ``laplacian``
            the minimiser is $(1 - \alpha)(I - \alpha \Theta)^{-1} x$, $\alpha = \lambda / (2 + \lambda)$: label
            spreading with HGNN's operator $\Theta$.
        solver: ``auto``, ``admm``, ``gradient`` or ``cg``.
        tolerance: Relative duality gap at which to stop.
        max_steps: The largest number of steps; a `ConvergenceWarning` is issued if they do not suffice.
        table: ``incidence`` to accept a plain table as first argument, with an entry above 0 for each membership. By
            default a table raises an error, because it could hold features.

    Attributes:
        classes_: The classes, sorted.
        label_distributions_: Nodes x classes; rows sum to 1.
        transduction_: The most probable class of each node.
        class_prior_: Frequencies of the classes among the labelled nodes.
        edge_distributions_: Hyperedges x classes: the mean over members; NaN for an empty hyperedge.
        incidence_: The memberships of the fit.
        n_features_in_: Number of hyperedges.
        feature_names_in_: Names of the hyperedges, if ``X`` was a table with names.
        n_iter_: Steps taken.
        solution_: The `Solution` of the diffusion, without clipping.
        gap_: Duality gap: the objective of the worst class is at most this far above its minimum.

    Example:
        >>> from edhnn import Hypergraph, HypergraphLabelSpreading
        >>> hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3, 4]])
        >>> model = HypergraphLabelSpreading().fit(hypergraph, [0, -1, -1, -1, 1])
        >>> model.transduction_.tolist()
        [0, 0, 0, 1, 1]
        >>> incidence = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]]
        >>> HypergraphLabelSpreading(table="incidence").fit(incidence, [0, -1, -1, -1, 1]).predict([[0, 1]]).tolist()
        [1]
    """

    def __init__(
        self,
        potential: str = "ce",
        *,
        power: int = 2,
        strength: float = 1.0,
        normalisation: str = "laplacian",
        scaling: Scaling | None = None,
        solver: str = "auto",
        tolerance: float = 1e-6,
        max_steps: int = 1000,
        table: str | None = None,
    ) -> None:
        self.potential = potential
        self.power = power
        self.strength = strength
        self.normalisation = normalisation
        self.scaling = scaling
        self.solver = solver
        self.tolerance = tolerance
        self.max_steps = max_steps
        self.table = table

    def __sklearn_tags__(self) -> Any:
        """Declare that tables may be sparse, are non-negative, and that point clouds give poor scores."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, hypergraph: object, y: object = None) -> HypergraphLabelSpreading:
        """Spread the labels.

        Args:
            hypergraph: A `Hypergraph`, with or without hyperedge weights, a `NodeDataset` or a `NodeSamples`. With
                ``table="incidence"`` also the nodes x hyperedges incidence matrix, dense or sparse.
            y: A class per sample, -1 if unlabelled. Among strings ``"-1"`` means unlabelled too, because NumPy converts
                -1 to it.

        Returns:
            The fitted estimator.

        Raises:
            DataError: if no node is labelled, or the hypergraph has incidence weights.
            UsageError: if a parameter is invalid, or a plain table is given without ``table``.
        """
        incidence, labels, given, nodes = self._validated(hypergraph, y, reset=True)
        if nodes is not None:
            node_labels = np.full(incidence.shape[0], UNLABELLED, dtype=labels.dtype)
            node_labels[nodes] = labels
            labels = node_labels
        known = labelled(labels)
        if not known.any():
            raise DataError(
                f"At least one node must be labelled. All {len(labels)} entries of 'y' are -1.",
                remedy="Set the known classes, and -1 for the other nodes only.",
            )
        check_classification_targets(labels[known])
        classes, number = np.unique(labels[known], return_inverse=True)
        one_hot = np.zeros((len(labels), len(classes)))
        one_hot[np.flatnonzero(known), number] = 1.0
        solution = self._diffused(given or Hypergraph.from_scipy(incidence), one_hot)
        self.classes_, self.incidence_ = classes, incidence
        self.solution_ = solution
        self.n_iter_, self.gap_ = solution.steps, solution.last.gap
        self.class_prior_ = one_hot.sum(axis=0) / known.sum()
        self.label_distributions_ = _normalised(solution.value.cpu().numpy().clip(min=0), self.class_prior_)
        self.transduction_ = classes[self.label_distributions_.argmax(axis=1)]
        size = np.asarray(incidence.sum(axis=0), dtype=float)[:, None]
        sums = incidence.T @ self.label_distributions_
        self.edge_distributions_ = np.divide(sums, size, out=np.full_like(sums, np.nan), where=size > 0)
        return self

    def predict_proba(self, hypergraph: object) -> FloatArray:
        """Predict the distribution over classes of each sample.

        Args:
            hypergraph: The hypergraph of the fit, for the transduction, or other nodes over the same hyperedges.

        Returns:
            Samples x classes, in the order of ``classes_``; rows sum to 1.
        """
        check_is_fitted(self, "edge_distributions_")
        incidence, _, _, nodes = self._validated(hypergraph, None, reset=False)
        if incidence.shape == self.incidence_.shape and (incidence != self.incidence_).nnz == 0:
            answers = np.array(self.label_distributions_)
        else:
            nonempty = ~np.isnan(self.edge_distributions_[:, 0])
            total = incidence[:, np.flatnonzero(nonempty)] @ self.edge_distributions_[nonempty]
            answers = _normalised(total, self.class_prior_)  # each distribution sums to 1, so this is their mean
        return answers if nodes is None else answers[nodes]

    def predict(self, hypergraph: object) -> Any:
        """Predict the most probable class of each sample, the first if several are equal; see `predict_proba`."""
        distribution = self.predict_proba(hypergraph)
        return self.classes_[distribution.argmax(axis=1)]

    def score(self, hypergraph: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy over the samples that have a label."""
        return accuracy_where_labelled(y, self.predict(hypergraph), sample_weight)

    def _diffused(self, hypergraph: Hypergraph, one_hot: FloatArray) -> Solution:
        if not 0 < self.strength < math.inf:
            raise UsageError(f"The strength must be finite and positive. Got {self.strength}.")
        weight = scaled_strength(hypergraph, self.potential, self.strength, self.scaling)
        potential = make_potential(self.potential, self.power)
        if isinstance(potential, CliqueExpansion):
            potential = CliqueExpansion(normalisation=self.normalisation)  # type: ignore[arg-type]  # checked there
        solution = diffuse(
            hypergraph,
            torch.from_numpy(one_hot).to(hypergraph.device),
            potential=potential,
            strength=weight,
            scaling="none",  # done above, where the potential still has its name
            solver=self.solver,  # checked there
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            throw=False,
        )
        if solution.outcome is Outcome.DIVERGED:
            raise SolverError(solution.outcome.value)
        if solution.outcome is Outcome.MAX_STEPS:
            message = f"{solution.outcome.value} The gap is {solution.last.gap:.3g}."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return solution

    def _validated(
        self, data: Any, y: object, *, reset: bool
    ) -> tuple[sp.csr_array, Any, Hypergraph | None, IntArray | None]:
        """Check the input; return a matrix of ones, labels if fitting, the hypergraph if given, and selected nodes."""
        options: dict[str, Any] = {"accept_sparse": "csr", "reset": reset}
        hypergraph, nodes, labels = None, None, None
        if isinstance(data, NodeSamples):
            nodes = data.nodes
            if reset and len(np.unique(nodes)) != len(nodes):
                raise DataError("Each node must be labelled once. The selection contains a node twice.")
        if isinstance(data, Hypergraph | NodeDataset | NodeSamples):
            hypergraph = data if isinstance(data, Hypergraph) else data.hypergraph
            if hypergraph.incidence_weight is not None:
                raise DataError(
                    "Label spreading does not support incidence weights, and this hypergraph has them.",
                    remedy="Use a hypergraph without incidence weights. Hyperedge weights are supported.",
                )
            data, options["ensure_min_features"] = hypergraph.to_scipy(), 0
        else:
            check_table(self, "incidence")
        if reset and nodes is None:
            data, labels = validate_data(self, data, y, **options)
        else:
            data = validate_data(self, data, **options)
            if reset and nodes is not None:
                labels = sample_targets(y, len(nodes))
        check_non_negative(data, type(self).__name__)
        positive = sp.csr_array(data > 0)
        positive.eliminate_zeros()
        return positive.astype(np.float64), labels, hypergraph, nodes


def _normalised(mass: FloatArray, prior: FloatArray) -> FloatArray:
    """Divide rows by their sums; a row whose sum is 0 up to rounding becomes the prior."""
    total = mass.sum(axis=1, keepdims=True)
    reached = total > np.finfo(np.float64).eps
    return np.where(reached, mass / np.where(reached, total, 1.0), prior)
