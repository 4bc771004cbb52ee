r"""Learned diffusion of beliefs: Algorithm 1 with a belief as the state of a node.

The input of a node is $b_v = [\ell_v ; y_v ; g_v]$: its base log-odds (what a predictor says from the node's own
features), its label if it is a training node whose label is given ($y_v = \mathrm{onehot} - 1/C$, else 0), and the flag
$g_v$ of that. With $x_v = \mathrm{ReLU}(W_b b_v + W_f f_v + c)$, where the features $f_v$ are optional, $h_v^0 = x_v$
and, for $t = 0, \dots, L-1$,

$$ m_e = \mathrm{AGG}_{u \in e} \hat\phi(h_u), \qquad s_v = \mathrm{AGG}_{e \ni v} \hat\rho([h_v ; m_e]), \qquad
   h_v \leftarrow \mathrm{ReLU}(\hat\varphi([h_v ; s_v ; x_v ; \ln d_v])), $$

and the answer is $\ell_v + \mathrm{MLP}(h_v)$: what the node says of itself, and a learned correction. This is the
paper's diffusion with $x_v$ a belief: the base is its node potential, the messages are learned hyperedge potentials.
Few channels suffice, because a state holds beliefs about classes, not features.

Sums without a norm keep how much evidence there is, but need even degrees; means with a norm stand any degree.
``both`` offers $[s_v ; \ln(1 + d_v)\, s_v]$ of means. `edhnn.training` makes $b_v$ (``label_inputs``,
``base``) and adds $\ell_v$.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Width
from edhnn.errors import DataError
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.features import FeatureLayer
from edhnn.nn.mlp import MLP, NormName, make_linear
from edhnn.nn.operators import EquivariantOperator, prepare, sum_to_nodes
from edhnn.nn.update import ConcatUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefDiffusionConfig(Configuration):
    r"""Options of the diffusion of beliefs.

    Attributes:
        num_iterations: Diffusion iterations.
        hidden: Width of the states and perceptrons.
        classifier_hidden: Width of the perceptron after the last iteration.
        layers: Layers of every perceptron.
        norm: Norm of all perceptrons: ``layer``, ``batch`` or ``none``.
        aggregate: ``mean``, ``sum``, or ``both``: means, and means times $\ln(1 + d_v)$.
        dropout: Dropout rate of the layers; beliefs do not stand much of it.
        features: Whether the features are inputs beside the beliefs.
        input_dropout: Dropout rate on the features.
        tied: Whether the iterations share their weights.
    """

    num_iterations: Depth = 2
    hidden: Width = 32
    classifier_hidden: Width = 32
    layers: Depth = 2
    norm: NormName = "layer"
    aggregate: Literal["mean", "sum", "both"] = "mean"
    dropout: float = 0.0
    features: bool = True
    input_dropout: float = 0.5
    tied: bool = True


TRAINING: Final[Mapping[str, Any]] = {
    "epochs": 400,
    "patience": None,
    "learning_rate": 5e-3,
    "schedule": "warmup-cosine",
    "clip": 1.0,
    "select": "loss",
    "label_inputs": 0.9,
    "base": "linear",
}
"""The training that suits the model."""


@register_model("belief-diffusion", "Algorithm 1 on beliefs: base predictions and training labels", training=TRAINING)
class BeliefDiffusion(HypergraphModel[BeliefDiffusionConfig]):
    r"""Algorithm 1 on beliefs. It returns the correction; training and prediction add the base, $\ell_v$.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph, make_model
        >>> trios = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]])
        >>> model = make_model("belief-diffusion", in_features=5, num_classes=3)
        >>> model(torch.ones(4, 5), trios, torch.zeros(4, 2 * 3 + 1)).shape
        torch.Size([4, 3])
    """

    config_class = BeliefDiffusionConfig
    takes_beliefs: ClassVar[bool] = True

    def build(self, config: BeliefDiffusionConfig) -> None:
        """Make the encoders, the operators and updates, and the last perceptron."""
        width, times = config.hidden, 1 if config.tied else config.num_iterations
        self.beliefs = make_linear(2 * self.num_classes + 1, width, self.generator)
        self.features: FeatureLayer | None = None
        if config.features:
            self.features = FeatureLayer(
                self.in_features, width, dropout=config.input_dropout, seeds=self.seeds, generator=self.generator
            )
        self.dropout = self.make_dropout(config.dropout)
        self.operators = nn.ModuleList(self._operator(config) for _ in range(times))
        messages = 2 if config.aggregate == "both" else 1
        self.updates = nn.ModuleList(
            ConcatUpdate(self._perceptron((2 + messages) * width + 1, config.layers)) for _ in range(times)
        )
        self.classifier = self.make_mlp(
            width,
            config.classifier_hidden,
            self.num_classes,
            config.layers,
            norm=config.norm,
            input_norm=False,
            dropout=config.dropout,
        )

    def _operator(self, config: BeliefDiffusionConfig) -> nn.Module:
        phi = self._perceptron(config.hidden, config.layers)
        rho = self._perceptron(2 * config.hidden, config.layers)
        return EquivariantOperator(phi, rho, aggregate="sum" if config.aggregate == "sum" else "mean")

    def _perceptron(self, in_features: int, layers: int) -> MLP:
        config, width = self.config, self.config.hidden
        return self.make_mlp(in_features, width, width, layers, norm=config.norm, dropout=config.dropout)

    def forward(
        self, x: Tensor, hypergraph: HypergraphLike, beliefs: Float[Tensor, "N B"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Return the correction of every node.

        Args:
            x: Features, dense or sparse CSR; used only with ``features``.
            hypergraph: The hypergraph, or pairs of nodes and hyperedges.
            beliefs: Base log-odds, labels and flag, ``2 C + 1`` columns; zeros by default.

        Returns:
            A row per node.
        """
        hypergraph = as_hypergraph(hypergraph, x)
        x_v = self._encode(x, beliefs).relu()
        h = self.dropout(x_v)
        shared = [prepare(operator, h.shape[1]) for operator in self.operators]
        for t in range(self.config.num_iterations):
            place = t % len(self.operators)
            s = sum_to_nodes(self.operators[place], h, hypergraph, None, shared[place])
            if self.config.aggregate == "both":
                s = torch.cat([s, s * hypergraph.degree.to(s).log1p()[:, None]], dim=1)
            z = self.updates[place](h, s, x_v, hypergraph)
            h = kernels.row_activation(z, dropout=self.dropout.active_rate, seed=self.dropout.seed())
        out: Tensor = self.classifier(h)
        return out

    def _encode(self, x: Tensor, beliefs: Tensor | None) -> Float[Tensor, "N D"]:
        weight, columns = self.beliefs.weight, 2 * self.num_classes + 1
        if beliefs is None:
            beliefs = weight.new_zeros(x.shape[0], columns)
        if beliefs.shape != (x.shape[0], columns):
            raise DataError(f"Beliefs must have shape [{x.shape[0]}, {columns}]. Got {list(beliefs.shape)}.")
        encoded: Tensor = self.beliefs(beliefs.to(weight))
        return encoded if self.features is None else encoded + self.features(x)
