r"""HyperND: a fixed nonlinear diffusion of the features until it converges, then a perceptron.

With $\mu(Z)_e$ the power mean of $d_u^{-1/2} Z_u$ over the members of $e$, column by column,

$$ \mathcal{L}(Z)_v = d_v^{-1/2} \sum_{e \ni v} w_e \mu(Z)_e, \qquad
   \varphi(Z) = 2 \Big(\sum_e w_e \lVert \mu(Z)_e \rVert^2\Big)^{1/2}, \qquad
   Z \leftarrow \frac{G}{\varphi(G)}, \quad G = (1 - \alpha) \mathcal{L}(Z) + \alpha U, $$

from $Z = U = X / \varphi(X)$ until the relative change is small.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Fraction, Positive, Width
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import Aggregate, divided, edge_total, node_total, power, to_edges, to_nodes
from edhnn.nn.cache import cached_per_features
from edhnn.nn.features import check_features, dense_features
from edhnn.nn.mlp import NormName


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperNDConfig(Configuration):
    r"""Options of HyperND. The defaults are those of ED-HNN's code, but with sums where it has means.

    Attributes:
        mean_power: $p$ of the power mean; values other than 1 need non-negative features.
        restart: $\alpha$; the authors' $a$ is $1 - \alpha$.
        factor: Factor of $\mathcal{L}$; 2 in the authors' code.
        aggregate: ``sum`` as above; ``mean`` (ED-HNN's code) divides both sums once more, by $|e|$ and by $d_v$.
        tolerance: The relative change at which the diffusion stops.
        max_steps: The largest number of steps.
        scale_rows: Divide each row of the result by its largest entry, as the authors do.
        classifier_layers: Layers of the perceptron.
        classifier_hidden: Its width.
        norm: Its norm: ``layer``, ``batch`` or ``none``.
        dropout: Dropout rate after its hidden layers.
    """

    mean_power: Positive = 1.0
    restart: Fraction = 0.5
    factor: Positive = 1.0
    aggregate: Aggregate = "sum"
    tolerance: Positive = 1e-4
    max_steps: Annotated[int, Meta(ge=1, le=100_000)] = 100
    scale_rows: bool = False
    classifier_layers: Depth = 2
    classifier_hidden: Width = 64
    norm: NormName = "layer"
    dropout: float = 0.5


@register_model("hypernd", "nonlinear diffusion of the features, then a perceptron")
class HyperND(HypergraphModel[HyperNDConfig]):
    """HyperND. Paper: Table 2 (HyperND). Source: Prokopchik, Benson and Tudisco, ICML 2022, in ED-HNN's code.

    Differs: the authors' code appends training labels to the features in one script, has another normaliser and fits a
    logistic regression.
    """

    config_class = HyperNDConfig
    needs_values = "its number of steps depends on the features"

    def build(self, config: HyperNDConfig) -> None:
        """Make the layers."""
        del config
        self.classifier = self.make_classifier(self.in_features)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node; the diffusion runs once per hypergraph and features."""
        hypergraph, weight = as_hypergraph(hypergraph, x), self.classifier.first.weight
        check_features(x, self.in_features)

        def make(features: Tensor) -> Tensor:
            dense = dense_features(features, weight.detach())
            # Powers need 64 bits: the tenth power of 1e-4 is 0 in 32 bits.
            exact = dense if self.config.mean_power == 1 else dense.double()
            return diffused(exact, hypergraph, self.config).to(dense)

        key = weight.dtype, astuple(self.config)
        out: Tensor = self.classifier(cached_per_features(hypergraph, x, "HyperND", key, make))
        return out


def diffused(x: Float[Tensor, "N F"], hypergraph: Hypergraph, config: HyperNDConfig) -> Float[Tensor, "N F"]:
    """Diffuse the features.

    Raises:
        DataError: if features are negative and the mean is not linear.
    """
    if config.mean_power != 1 and bool((x < 0).any()):
        raise DataError(
            f"A mean_power of {config.mean_power} needs non-negative features. Got {float(x.min())}.",
            remedy="Use `mean_power=1`, or other features.",
        )
    z = u = _normalised(x, hypergraph, config)
    for _ in range(config.max_steps):
        before, g = z, config.factor * (1 - config.restart) * _spread(z, hypergraph, config) + config.restart * u
        z = _normalised(g, hypergraph, config)
        if _length(z - before) <= config.tolerance * _length(z):
            break
    if config.scale_rows:
        highest = z.amax(dim=1, keepdim=True)
        z = z / torch.where(highest > 0, highest, 1)
    return z


def _length(z: Tensor) -> float:
    """Return the Euclidean norm of all entries."""
    z = z.detach()
    return math.sqrt(float(kernels.column_sum(z * z).sum()))


def _edge_means(z: Tensor, hypergraph: Hypergraph, config: HyperNDConfig) -> Tensor:
    p = config.mean_power
    scaled = power(node_total(hypergraph, z), -0.5) * z
    means = to_edges(_raised(scaled, p), hypergraph, "mean")
    if config.aggregate == "mean":
        means = divided(means, edge_total(hypergraph, z))
    return _raised(means, 1 / p)


def _raised(x: Tensor, exponent: float) -> Tensor:
    """Return the power of non-negative numbers, with gradient 0 at 0, where the true slope can be infinite."""
    if exponent == 1:
        return x
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0) ** exponent, 0.0)


def _spread(z: Tensor, hypergraph: Hypergraph, config: HyperNDConfig) -> Tensor:
    means = _edge_means(z, hypergraph, config)
    return power(node_total(hypergraph, z), -0.5) * to_nodes(means, hypergraph, config.aggregate)


def _normalised(z: Tensor, hypergraph: Hypergraph, config: HyperNDConfig) -> Tensor:
    squares = (_edge_means(z, hypergraph, config) ** 2).sum(dim=1)
    if hypergraph.edge_weight is not None:
        squares = squares * hypergraph.edge_weight.to(z)
    length = 2 * kernels.column_sum(squares[:, None]).sqrt()
    return z / torch.where(length > 0, length, 1)
