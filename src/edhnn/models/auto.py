r"""Several predictors as one model: the base, ED-HNN, and two diffusions of beliefs, of means and of sums.

Each part has its own parameters and is trained alone. Their outputs $o_k$ (log-odds, or standardised values) are added,

$$ o_v = \sum_k c_k\, o_{kv}, \qquad c_k \ge 0, $$

with coefficients that training finds on the validation nodes (`edhnn.training.blend`). The base is the first part, so a
network that adds nothing gets no weight, and the base answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.configuration import Configuration, Depth, Width
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.belief_diffusion import BeliefDiffusion, BeliefDiffusionConfig
from edhnn.models.edhnn import EDHNN, EDHNNConfig
from edhnn.models.registry import register_model

PARTS: Final = ("base", "ed-hnn", "beliefs-of-means", "beliefs-of-sums")
"""The parts, in the order of the coefficients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoConfig(Configuration):
    """Options of the parts.

    Attributes:
        num_iterations: Iterations of ED-HNN.
        hidden: Width of ED-HNN.
        classifier_hidden: Width of its classifier.
        dropout: Its dropout rate.
        input_dropout: Its dropout rate on the features.
        beliefs_hidden: Width of the diffusions of beliefs.
        beliefs_iterations: Iterations of the one with means and a norm; the one with sums has twice as many.
    """

    num_iterations: Depth = 2
    hidden: Width = 64
    classifier_hidden: Width = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    beliefs_hidden: Width = 32
    beliefs_iterations: Depth = 2


@register_model(
    "auto",
    "base, ED-HNN and diffusion of beliefs, weighed by validation",
    training={"label_inputs": 0.9, "base": "linear"},
)
class Auto(HypergraphModel[AutoConfig]):
    """A weighed sum of the outputs of several predictors. It returns the difference from the base."""

    config_class = AutoConfig
    takes_beliefs: ClassVar[bool] = True
    coefficients: Float[Tensor, " K"]

    def build(self, config: AutoConfig) -> None:
        """Make the parts."""
        network = EDHNNConfig(
            num_iterations=config.num_iterations,
            hidden=config.hidden,
            classifier_hidden=config.classifier_hidden,
            dropout=config.dropout,
            input_dropout=config.input_dropout,
        )
        width, times = config.beliefs_hidden, config.beliefs_iterations
        sizes: dict[str, Any] = {"hidden": width, "classifier_hidden": width, "features": False}
        with_norm = BeliefDiffusionConfig(norm="layer", num_iterations=times, **sizes)
        without = BeliefDiffusionConfig(norm="none", aggregate="sum", num_iterations=2 * times, **sizes)
        first, second, third = torch.randint(2**62, (3,), generator=self.generator).tolist()
        ends = {"in_features": self.in_features, "num_classes": self.num_classes}
        self.networks = nn.ModuleList(
            [
                EDHNN(network, seed=first, **ends),
                BeliefDiffusion(with_norm, seed=second, **ends),
                BeliefDiffusion(without, seed=third, **ends),
            ]
        )
        self.register_buffer("coefficients", torch.full((len(PARTS),), 1 / len(PARTS)))

    def forward(
        self, x: Tensor, hypergraph: HypergraphLike, beliefs: Float[Tensor, "N B"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Return the weighed sum of the outputs, less the base, which training and prediction add.

        Args:
            x: Features, dense or sparse CSR.
            hypergraph: The hypergraph, or pairs of nodes and hyperedges.
            beliefs: Base log-odds, labels and flag, ``2 C + 1`` columns; zeros by default.

        Returns:
            A row per node.
        """
        hypergraph = as_hypergraph(hypergraph, x)
        columns = 2 * self.num_classes + 1
        told = self.coefficients.new_zeros(x.shape[0], columns) if beliefs is None else beliefs.to(self.coefficients)
        base = told[:, : self.num_classes]
        weight = self.coefficients
        network, *diffusions = self.networks
        out: Tensor = weight[1] * network(x, hypergraph) + (weight[0] - 1) * base
        for number, diffusion in enumerate(diffusions, start=2):
            out = out + weight[number] * (base + diffusion(x, hypergraph, told))
        return out
