r"""AllSetTransformer: a multiset function at every hyperedge and another at every node, each an attention pooling.

For a set of rows $z_i$, with $A$ heads, a learned seed $\theta$ and $K_i = W_K z_i + b_K$, $V_i = W_V z_i + b_V$,

$$ o = \Big[\theta_a + \sum_i \mathrm{softmax}_i(\mathrm{LeakyReLU}_{0.2}(\theta_a \cdot K_{i,a}))\, V_{i,a}\Big]_a,
   \qquad y = \mathrm{LN}_0(o), \qquad \mathrm{out} = \mathrm{LN}_1(y + \mathrm{ReLU}(\mathrm{FF}(y))), $$

then ReLU and dropout. $K$ is asked for one number per head, so $\theta_a \cdot W_K$ is formed first and no $K$ is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_counts
from edhnn.nn.aggregate import edge_weights, node_weights
from edhnn.nn.attention import attend, link_softmax
from edhnn.nn.mlp import MLP, Dropout, LayerNorm, NormName
from edhnn.nn.projection import feature_product
from edhnn.seeding import SeedStream


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllSetTransformerConfig:
    """AllSetTransformer's choices; the defaults are AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        mlp_layers: Layers of FF.
        hidden: Width of the states, a multiple of ``heads``.
        heads: Heads of the attention.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of the classifier: ``layer``, ``batch`` or ``none``.
        dropout: Rate everywhere but on the features.
        input_dropout: Rate on the features; 0.2 is written into AllSet's code.
    """

    layers: int = 1
    mlp_layers: int = 2
    hidden: int = 64
    heads: int = 1
    classifier_layers: int = 1
    classifier_hidden: int = 64
    norm: NormName = "layer"
    dropout: float = 0.5
    input_dropout: float = 0.2

    def __post_init__(self) -> None:
        check_counts(self, "layers", "mlp_layers", "hidden", "heads", "classifier_layers", "classifier_hidden")
        if self.hidden % self.heads:
            raise UsageError(f"The 'hidden' must be a multiple of 'heads', {self.heads}. Got {self.hidden}.")


class AllSetTransformer(HypergraphModel):
    """AllSetTransformer. Paper: Table 2 (AllSetTransformer). Source: Chien et al., ICLR 2022, Eq. 8.

    A weight of w counts as w memberships.

    Differs: AllSet's batch norms that no pass reaches (4 ``hidden`` parameters a layer) are not made.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: AllSetTransformerConfig

    def __init__(
        self, config: AllSetTransformerConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or AllSetTransformerConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.input_dropout, self.dropout = (
            Dropout(rate, self.seeds) for rate in (config.input_dropout, config.dropout)
        )
        self.poolings = nn.ModuleList(
            AttentionPooling(config.hidden if half else in_features, config, seeds=self.seeds, generator=self.generator)
            for half in range(2 * config.layers)
        )
        self.classifier = self._classifier(config.hidden, config)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        for half, pooling in enumerate(self.poolings):
            x = pooling(x, joined, inwards=half % 2 == 0, dropout=None if half else self.input_dropout)
            x = self.dropout(x.relu())
        out: Tensor = self.classifier(x)
        return out


class AttentionPooling(nn.Module):
    r"""The pooling above. Source: Set Transformer (Lee et al., ICML 2019), as AllSet has it.

    Args:
        in_features: Width of the rows.
        config: Widths and heads.
        seeds: Where dropout masks come from.
        generator: Where the initial weights come from.
    """

    def __init__(
        self, in_features: int, config: AllSetTransformerConfig, *, seeds: SeedStream, generator: torch.Generator
    ) -> None:
        super().__init__()
        width, head = config.hidden, config.hidden // config.heads

        def drawn(bound: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound, generator=generator))

        outer, inner = math.sqrt(6 / (in_features + width)), in_features**-0.5
        self.key, self.value = drawn(outer, width, in_features), drawn(outer, width, in_features)
        self.key_bias, self.value_bias = drawn(inner, width), drawn(inner, width)
        self.seed_vector = drawn(math.sqrt(6 / (width + head)), config.heads, head)
        self.norm_0, self.norm_1 = LayerNorm(width), LayerNorm(width)
        self.feed_forward = MLP(
            width, width, width, config.mlp_layers, norm="none", dropout=0.0, seeds=seeds, generator=generator
        )

    def forward(
        self, z: Tensor, hypergraph: Hypergraph, *, inwards: bool, dropout: Dropout | None
    ) -> Float[Tensor, "R D"]:
        """Pool the members of hyperedges (``inwards``) or the hyperedges of nodes."""
        heads, head = self.seed_vector.shape
        asked = torch.einsum("ah,ahf->af", self.seed_vector, self.key.view(heads, head, -1))
        product = feature_product(z, torch.cat([self.value, asked]), dropout)
        values, scores = torch.split(product, [heads * head, heads], dim=1)
        scores = F.leaky_relu(scores + (self.seed_vector * self.key_bias.view(heads, head)).sum(dim=1), 0.2)
        if inwards:
            links, weight = kernels.edge_links(hypergraph), edge_weights(hypergraph, scores)
            column = hypergraph.node_index
        else:
            links, weight = kernels.node_links(hypergraph), node_weights(hypergraph, scores)
            column = hypergraph.edge_index
        alpha = link_softmax(scores.index_select(0, column), links, weight)
        pooled = attend(values + self.value_bias, links, alpha) + self.seed_vector.flatten()
        y = self.norm_0(pooled)
        out: Tensor = self.norm_1(y + self.feed_forward(y).relu())
        return out
