r"""AllSet: a multiset function at every hyperedge and another at every node.

In AllDeepSets both are DeepSets,

$$ y_e = \mathrm{ReLU}\Big(g_1\Big(\sum_{v \in e} w_{ev}\, \mathrm{ReLU}(f_1(x_v))\Big)\Big), \qquad
   x_v \leftarrow \mathrm{ReLU}\Big(g_2\Big(\sum_{e \ni v} w_e w_{ev}\, \mathrm{ReLU}(f_2(y_e))\Big)\Big), $$

with dropout after each ReLU and a classifier at the end.

In AllSetTransformer both are attention poolings. For a set of rows $z_i$, with $A$ heads, a learned seed $\theta$ and
$K_i = W_K z_i + b_K$, $V_i = W_V z_i + b_V$,

$$ o = \Big[\theta_a + \sum_i \mathrm{softmax}_i(\mathrm{LeakyReLU}_{0.2}(\theta_a \cdot K_{i,a}))\, V_{i,a}\Big]_a,
   \qquad y = \mathrm{LN}_0(o), \qquad \mathrm{out} = \mathrm{LN}_1(y + \mathrm{ReLU}(\mathrm{FF}(y))), $$

then ReLU and dropout. The attention needs one number per head and row, so $\theta_a \cdot W_K$ is computed first, and
$K$ is never computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Width
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import edge_total, edge_weights, node_total, node_weights, power, to_edges, to_nodes
from edhnn.nn.attention import attend, link_softmax
from edhnn.nn.features import FeatureMLP, feature_product
from edhnn.nn.mlp import MLP, Dropout, LayerNorm, NormName


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDeepSetsConfig(Configuration):
    r"""Options of AllDeepSets. The defaults are those of AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        mlp_layers: Layers of the perceptrons $f, g$.
        hidden: Their width.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of all perceptrons: ``layer``, ``batch`` or ``none``.
        input_norm: Also normalise the inputs of $f$ and $g$, including the features.
        degree_scaled: Weigh memberships by $(d_v k_e)^{-1/2}$, AllSet's alternative to weights of 1.
        dropout: Dropout rate everywhere except on the features.
        input_dropout: Dropout rate on the features; AllSet's code fixes it at 0.2.
    """

    layers: Depth = 1
    mlp_layers: Depth = 2
    hidden: Width = 64
    classifier_layers: Depth = 1
    classifier_hidden: Width = 64
    norm: NormName = "layer"
    input_norm: bool = True
    degree_scaled: bool = False
    dropout: float = 0.5
    input_dropout: float = 0.2


@register_model("alldeepsets", "DeepSets at hyperedges and at nodes")
class AllDeepSets(HypergraphModel[AllDeepSetsConfig]):
    """AllDeepSets. Paper: Table 2 (AllDeepSets). Source: Chien et al., ICLR 2022, Eq. 7.

    Differs: AllSet's unused batch norms (4 ``hidden`` parameters a layer) are left out. Its mixing of layers (GPR),
    learned masks of memberships and perceptrons of 0 layers, all off by default, are not implemented.
    """

    config_class = AllDeepSetsConfig

    def build(self, config: AllDeepSetsConfig) -> None:
        """Make the layers."""
        self.dropout = self.make_dropout(config.dropout)
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for half in range(2 * config.layers):
            first = set_mlp(self, config, config.hidden if half else self.in_features)
            self.encoders.append(first if half else FeatureMLP(first, self.make_dropout(config.input_dropout)))
            self.decoders.append(set_mlp(self, config, config.hidden))
        self.classifier = self.make_classifier(config.hidden)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        for half, (encoder, decoder) in enumerate(zip(self.encoders, self.decoders, strict=True)):
            u = self.dropout(encoder(x).relu())
            x = self.dropout(decoder(half_sum(u, hypergraph, half % 2 == 0, self.config.degree_scaled)).relu())
        out: Tensor = self.classifier(x)
        return out


def half_sum(u: Float[Tensor, "S D"], hypergraph: Hypergraph, inwards: bool, degree_scaled: bool) -> Tensor:
    """Sum the weighted messages at hyperedges (``inwards``) or at nodes."""
    weight = (edge_weights if inwards else node_weights)(hypergraph, u)
    if degree_scaled:
        degree = power(node_total(hypergraph, u), -0.5)[:, 0].index_select(0, hypergraph.node_index)
        scale = degree * power(edge_total(hypergraph, u), -0.5)[:, 0].index_select(0, hypergraph.edge_index)
        weight = scale if weight is None else scale * weight
    return (to_edges if inwards else to_nodes)(u, hypergraph, weight=weight)


def set_mlp(model: HypergraphModel[Any], config: AllDeepSetsConfig, in_features: int) -> MLP:
    """Make a perceptron $f$ or $g$ while ``model`` is being built."""
    return model.make_mlp(
        in_features,
        config.hidden,
        config.hidden,
        config.mlp_layers,
        norm=config.norm,
        input_norm=config.input_norm,
        dropout=config.dropout,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllSetTransformerConfig(Configuration):
    """Options of AllSetTransformer. The defaults are those of AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        mlp_layers: Layers of FF.
        hidden: Width of the states, a multiple of ``heads``.
        heads: Heads of the attention.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of the classifier: ``layer``, ``batch`` or ``none``.
        dropout: Dropout rate everywhere except on the features.
        input_dropout: Dropout rate on the features; AllSet's code fixes it at 0.2.
    """

    layers: Depth = 1
    mlp_layers: Depth = 2
    hidden: Width = 64
    heads: Width = 1
    classifier_layers: Depth = 1
    classifier_hidden: Width = 64
    norm: NormName = "layer"
    dropout: float = 0.5
    input_dropout: float = 0.2

    def check(self) -> None:
        """Check that ``hidden`` is a multiple of ``heads``."""
        if self.hidden % self.heads:
            raise UsageError(f"'hidden' must be a multiple of 'heads', {self.heads}. Got {self.hidden}.")


@register_model("allsettransformer", "attention at hyperedges and at nodes")
class AllSetTransformer(HypergraphModel[AllSetTransformerConfig]):
    """AllSetTransformer. Paper: Table 2 (AllSetTransformer). Source: Chien et al., ICLR 2022, Eq. 8.

    A weight of w counts as w memberships.

    Differs: AllSet's unused batch norms (4 ``hidden`` parameters a layer) are left out.
    """

    config_class = AllSetTransformerConfig

    def build(self, config: AllSetTransformerConfig) -> None:
        """Make the layers."""
        self.input_dropout, self.dropout = (self.make_dropout(rate) for rate in (config.input_dropout, config.dropout))
        self.poolings = nn.ModuleList(
            AttentionPooling(self, config.hidden if half else self.in_features, config)
            for half in range(2 * config.layers)
        )
        self.classifier = self.make_classifier(config.hidden)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        for half, pooling in enumerate(self.poolings):
            x = pooling(x, hypergraph, inwards=half % 2 == 0, dropout=None if half else self.input_dropout)
            x = self.dropout(x.relu())
        out: Tensor = self.classifier(x)
        return out


class AttentionPooling(nn.Module):
    r"""Attention pooling of sets of rows. Source: Set Transformer (Lee et al., ICML 2019), in AllSet's form.

    Args:
        model: The model that is being built; it provides the random streams.
        in_features: Width of the rows.
        config: Widths and heads.
    """

    def __init__(self, model: HypergraphModel[Any], in_features: int, config: AllSetTransformerConfig) -> None:
        super().__init__()
        width, head = config.hidden, config.hidden // config.heads

        def drawn(bound: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound, generator=model.generator))

        outer, inner = math.sqrt(6 / (in_features + width)), in_features**-0.5
        self.key, self.value = drawn(outer, width, in_features), drawn(outer, width, in_features)
        self.key_bias, self.value_bias = drawn(inner, width), drawn(inner, width)
        self.seed_vector = drawn(math.sqrt(6 / (width + head)), config.heads, head)
        self.norm_0, self.norm_1 = LayerNorm(width), LayerNorm(width)
        self.feed_forward = model.make_mlp(width, width, width, config.mlp_layers, norm="none")

    def forward(
        self, z: Tensor, hypergraph: Hypergraph, *, inwards: bool, dropout: Dropout | None
    ) -> Float[Tensor, "R D"]:
        """Pool the members of hyperedges (``inwards``) or the hyperedges of nodes."""
        heads, head = self.seed_vector.shape
        score_map = torch.einsum("ah,ahf->af", self.seed_vector, self.key.view(heads, head, -1))
        product = feature_product(z, torch.cat([self.value, score_map]), dropout)
        values, scores = torch.split(product, [heads * head, heads], dim=1)
        shift = (self.seed_vector * self.key_bias.view(heads, head)).sum(dim=1)
        scores = F.leaky_relu(kernels.add_bias(scores, shift), 0.2)
        if inwards:
            links, weight = kernels.edge_links(hypergraph), edge_weights(hypergraph, scores)
            column = hypergraph.node_index
        else:
            links, weight = kernels.node_links(hypergraph), node_weights(hypergraph, scores)
            column = hypergraph.edge_index
        alpha = link_softmax(scores.index_select(0, column), links, weight)
        pooled = attend(kernels.add_bias(values, self.value_bias), links, alpha)
        pooled = kernels.add_bias(pooled, self.seed_vector.flatten())
        y = self.norm_0(pooled)
        out: Tensor = self.norm_1(y + self.feed_forward(y).relu())
        return out
