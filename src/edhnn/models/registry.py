"""Models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, final

from edhnn.errors import unknown_name
from edhnn.models.alldeepsets import AllDeepSets, AllDeepSetsConfig
from edhnn.models.allsettransformer import AllSetTransformer, AllSetTransformerConfig
from edhnn.models.clique_graphs import CEGAT, CEGCN, CEGATConfig, CEGCNConfig
from edhnn.models.contract import HypergraphModel
from edhnn.models.edhnn import EDHNN, EDHNNConfig, Invariant, InvariantConfig
from edhnn.models.edhnn_ii import EDHNNII, EDHNNIIConfig
from edhnn.models.hcha import HCHA, HCHAConfig
from edhnn.models.hgnn import HGNN, HGNNConfig
from edhnn.models.hnhn import HNHN, HNHNConfig
from edhnn.models.hypergcn import HyperGCN, HyperGCNConfig
from edhnn.models.hypernd import HyperND, HyperNDConfig
from edhnn.models.hypersage import HyperSAGE, HyperSAGEConfig
from edhnn.models.jump_link import JumpLink, JumpLinkConfig
from edhnn.models.jump_links import AllDeepSetsJumpLink, AllDeepSetsJumpLinkConfig, HGNNJumpLink, HGNNJumpLinkConfig
from edhnn.models.legcn import LEGCN, LEGCNConfig
from edhnn.models.mean_deg import MeanDeg, MeanDegConfig
from edhnn.models.mlp import MLPModel, MLPModelConfig
from edhnn.models.unigat import UniGAT, UniGATConfig
from edhnn.models.unigcnii import UniGCNII, UniGCNIIConfig
from edhnn.models.unignn import UniGCN, UniGCNConfig, UniGIN, UniGINConfig, UniSAGE, UniSAGEConfig
from edhnn.models.written_values import declared


@final
@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model: its class, the class of its configuration, and a line about it.

    Attributes:
        model: The class.
        config: The class of its configuration.
        summary: A line about it.
        singletons: Whether training gives every node a hyperedge of its own first (`add_singletons`), as the code
            behind the published numbers does for this model.
    """

    model: Callable[..., HypergraphModel]
    config: Callable[..., Any]
    summary: str
    singletons: bool = True


MODELS: Mapping[str, ModelEntry] = {
    "ed-hnn": ModelEntry(EDHNN, EDHNNConfig, "equivariant diffusion operators, Algorithm 1"),
    "ed-hnn-ii": ModelEntry(EDHNNII, EDHNNIIConfig, "messages that know the hyperedge's last state, Algorithm 2"),
    "invariant": ModelEntry(Invariant, InvariantConfig, "ED-HNN with one message for all members, Appendix D"),
    "mean-deg": ModelEntry(MeanDeg, MeanDegConfig, "means and logarithms of counts, from the released code"),
    "jump-link": ModelEntry(JumpLink, JumpLinkConfig, "averages and a link to the input, from the released code"),
    "mlp": ModelEntry(MLPModel, MLPModelConfig, "a perceptron on the features alone", singletons=False),
    "ce-gcn": ModelEntry(CEGCN, CEGCNConfig, "GCN on the clique expansion", singletons=False),
    "ce-gat": ModelEntry(CEGAT, CEGATConfig, "GAT on the clique expansion", singletons=False),
    "hgnn": ModelEntry(HGNN, HGNNConfig, "convolution with the symmetric hypergraph Laplacian"),
    "hcha": ModelEntry(HCHA, HCHAConfig, "convolution by means of means, with or without attention"),
    "hnhn": ModelEntry(HNHN, HNHNConfig, "nodes and hyperedges as neurons, degree-weighted means"),
    "hypergcn": ModelEntry(HyperGCN, HyperGCNConfig, "GCN between each hyperedge's extremes", singletons=False),
    "unigcn": ModelEntry(UniGCN, UniGCNConfig, "GCN carried over by UniGNN"),
    "unigat": ModelEntry(UniGAT, UniGATConfig, "GAT carried over by UniGNN"),
    "unigin": ModelEntry(UniGIN, UniGINConfig, "GIN carried over by UniGNN"),
    "unisage": ModelEntry(UniSAGE, UniSAGEConfig, "GraphSAGE carried over by UniGNN"),
    "unigcnii": ModelEntry(UniGCNII, UniGCNIIConfig, "GCNII carried over by UniGNN"),
    "hypernd": ModelEntry(HyperND, HyperNDConfig, "nonlinear diffusion of the features, then a perceptron"),
    "alldeepsets": ModelEntry(AllDeepSets, AllDeepSetsConfig, "DeepSets at hyperedges and at nodes"),
    "allsettransformer": ModelEntry(AllSetTransformer, AllSetTransformerConfig, "attention at hyperedges and at nodes"),
    "hypersage": ModelEntry(HyperSAGE, HyperSAGEConfig, "power means of neighbours, by hyperedge", singletons=False),
    "legcn": ModelEntry(LEGCN, LEGCNConfig, "GCN on the line expansion, never built"),
    "hgnn-jumplink": ModelEntry(HGNNJumpLink, HGNNJumpLinkConfig, "HGNN with a link to the input, Table 3"),
    "alldeepsets-jumplink": ModelEntry(
        AllDeepSetsJumpLink, AllDeepSetsJumpLinkConfig, "AllDeepSets with a link to the input, Table 3"
    ),
}


def make_config(name: str, **options: Any) -> Any:
    """A model's configuration.

    Args:
        name: The model.
        options: Its choices; the rest keep their defaults.

    Returns:
        The configuration.

    Raises:
        UsageError: if the model or an option does not exist; the message lists those that do. Or if a value is not
            what the option is.
    """
    if name not in MODELS:
        raise unknown_name("model", name, tuple(MODELS))
    known = [field.name for field in fields(MODELS[name].config)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            raise unknown_name(f"option of model '{name}'", option, tuple(known))
    return MODELS[name].config(**declared(MODELS[name].config, options))


def make_model(name: str, *, in_features: int, num_classes: int, seed: int = 0, **options: Any) -> HypergraphModel:
    """A model by name.

    Args:
        name: ``ed-hnn``, ``ed-hnn-ii``, ... (`MODELS`).
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
        options: Fields of its configuration.

    Returns:
        The model, in training mode.

    Example:
        >>> from edhnn import make_model
        >>> make_model("ed-hnn", in_features=1433, num_classes=7, hidden=256).num_parameters()
        848007
    """
    config = make_config(name, **options)
    return MODELS[name].model(config, in_features=in_features, num_classes=num_classes, seed=seed)
