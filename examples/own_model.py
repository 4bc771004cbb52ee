"""A model of your own: equivariant steps with a residual connection, registered and trained like ours.

python examples/own_model.py
EDHNN_PLUGINS=examples/own_model.py edhnn train csbm-4 --model residual --splits 1 --epochs 20
"""

from dataclasses import dataclass

from torch import Tensor

from edhnn import (
    EquivariantOperator,
    Hypergraph,
    HypergraphModel,
    TrainConfig,
    contextual_sbm,
    fit,
    make_model,
    random_splits,
    register_model,
)


@dataclass(frozen=True)
class ResidualConfig:
    hidden: int = 32
    num_iterations: int = 2


@register_model("residual", "equivariant steps that are added to the state")
class Residual(HypergraphModel[ResidualConfig]):
    config_class = ResidualConfig

    def build(self, config: ResidualConfig) -> None:
        width = config.hidden
        self.encoder = self.make_mlp(self.in_features, width, width, 1, norm="none")
        phi = self.make_mlp(width, width, width, 1, norm="layer")
        rho = self.make_mlp(2 * width, width, width, 2, norm="layer")
        self.operator = EquivariantOperator(phi, rho, aggregate="mean")
        self.classifier = self.make_mlp(width, width, self.num_classes, 1, norm="none")

    def forward(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        h = self.encoder(x).relu()
        for _ in range(self.config.num_iterations):
            h = h + self.operator.sum_to_nodes(h, hypergraph).relu()
        return self.classifier(h)


def main() -> float:
    dataset = contextual_sbm(2, nodes_per_class=200, num_hyperedges=250)
    model = make_model("residual", in_features=dataset.num_features, num_classes=2)
    split = random_splits(dataset.hypergraph.num_nodes, 1)[0]
    result = fit(model, dataset, split, TrainConfig(epochs=40, learning_rate=0.005))
    print(f"test accuracy {result.test['accuracy']:.3f} with {model.num_parameters():,} parameters")
    return result.test["accuracy"]


if __name__ == "__main__":
    main()
