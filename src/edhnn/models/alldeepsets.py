r"""AllDeepSets: a multiset function at every hyperedge and another at every node, each a DeepSets.

$$ y_e = \mathrm{ReLU}\Big(g_1\Big(\sum_{v \in e} w_{ev}\, \mathrm{ReLU}(f_1(x_v))\Big)\Big), \qquad
   x_v \leftarrow \mathrm{ReLU}\Big(g_2\Big(\sum_{e \ni v} w_e w_{ev}\, \mathrm{ReLU}(f_2(y_e))\Big)\Big), $$

with dropout after each ReLU and a classifier at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_counts
from edhnn.nn.aggregate import edge_total, edge_weights, node_total, node_weights
from edhnn.nn.feature_mlp import FeatureMLP
from edhnn.nn.mlp import MLP, Dropout, NormName
from edhnn.nn.smoothing import power


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDeepSetsConfig:
    r"""AllDeepSets' choices; the defaults are AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        mlp_layers: Layers of the perceptrons $f, g$.
        hidden: Their width.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of all perceptrons: ``layer``, ``batch`` or ``none``.
        input_norm: Normalise also what comes into $f$ and $g$, the features among it.
        degree_scaled: Weigh memberships by $(d_v k_e)^{-1/2}$, AllSet's alternative to weights of 1.
        dropout: Rate everywhere but on the features.
        input_dropout: Rate on the features; 0.2 is written into AllSet's code.
    """

    layers: int = 1
    mlp_layers: int = 2
    hidden: int = 64
    classifier_layers: int = 1
    classifier_hidden: int = 64
    norm: NormName = "layer"
    input_norm: bool = True
    degree_scaled: bool = False
    dropout: float = 0.5
    input_dropout: float = 0.2

    def __post_init__(self) -> None:
        check_counts(self, "layers", "mlp_layers", "hidden", "classifier_layers", "classifier_hidden")


class AllDeepSets(HypergraphModel):
    """AllDeepSets. Paper: Table 2 (AllDeepSets). Source: Chien et al., ICLR 2022, Eq. 7.

    Differs: AllSet's batch norms that no pass reaches (4 ``hidden`` parameters a layer) are not made; its mixing of
    layers (GPR), learned masks of memberships and perceptrons of 0 layers, all off by default, are not offered.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: AllDeepSetsConfig

    def __init__(
        self, config: AllDeepSetsConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or AllDeepSetsConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.dropout = Dropout(config.dropout, self.seeds)
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for half in range(2 * config.layers):
            first = set_mlp(self, config, config.hidden if half else in_features)
            self.encoders.append(first if half else FeatureMLP(first, Dropout(config.input_dropout, self.seeds)))
            self.decoders.append(set_mlp(self, config, config.hidden))
        self.classifier = self._classifier(config.hidden, config)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        for half, (encoder, decoder) in enumerate(zip(self.encoders, self.decoders, strict=True)):
            u = self.dropout(encoder(x).relu())
            x = self.dropout(decoder(half_sum(u, joined, half % 2 == 0, self.config.degree_scaled)).relu())
        out: Tensor = self.classifier(x)
        return out


def half_sum(u: Float[Tensor, "S D"], hypergraph: Hypergraph, inwards: bool, degree_scaled: bool) -> Tensor:
    """The sum of weighted messages at hyperedges (``inwards``) or at nodes."""
    weight = (edge_weights if inwards else node_weights)(hypergraph, u)
    if degree_scaled:
        degree = power(node_total(hypergraph, u), -0.5)[:, 0].index_select(0, hypergraph.node_index)
        scale = degree * power(edge_total(hypergraph, u), -0.5)[:, 0].index_select(0, hypergraph.edge_index)
        weight = scale if weight is None else scale * weight
    return kernels.gather_sum(u, (kernels.edge_links if inwards else kernels.node_links)(hypergraph), weight)


def set_mlp(model: HypergraphModel, config: AllDeepSetsConfig, in_features: int) -> MLP:
    """A perceptron $f$ or $g$ of a model that is being built."""
    return MLP(
        in_features,
        config.hidden,
        config.hidden,
        config.mlp_layers,
        norm=config.norm,
        input_norm=config.input_norm,
        dropout=config.dropout,
        seeds=model.seeds,
        generator=model.generator,
    )
