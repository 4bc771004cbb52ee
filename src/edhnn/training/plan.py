"""What a run is: data, model, training, splits and seed, as a value that is recorded and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, final

import torch

from edhnn.data.catalog import default_splits, is_catalogued
from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split, random_splits, splits_sha256
from edhnn.errors import UsageError
from edhnn.models.contract import HypergraphModel
from edhnn.models.registry import MODELS, make_config, make_model
from edhnn.models.written_values import declared, plain
from edhnn.seeding import derive_seed
from edhnn.training.config import TrainConfig
from edhnn.training.environment import package_version
from edhnn.training.tasks import Objective, known_nodes, make_objective
from edhnn.typing import JsonObject

RUN_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run to be made.

    Attributes:
        model: The model's name.
        options: Its options; the rest keep their defaults.
        train: How to train.
        num_splits: How many splits.
        seed: Of initial weights and dropout masks; splits do not depend on it, so that runs compare.
        origin: Where the sizes came from, for people: ``preset paper``.
    """

    model: str = "ed-hnn"
    options: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)
    num_splits: int = 10
    seed: int = 0
    origin: str = "defaults"

    def __post_init__(self) -> None:
        make_config(self.model)  # a name that does not exist is refused here
        for name, value in (
            ("options", declared(MODELS[self.model].config, self.options)),
            ("num_splits", plain(self.num_splits)),
            ("seed", plain(self.seed)),
        ):
            object.__setattr__(self, name, value)
        if self.num_splits < 1:
            raise UsageError(f"There must be at least 1 split. Got {self.num_splits}.")
        make_config(self.model, **self.options)

    def make_model(self, dataset: NodeDataset, objective: Objective, split: int) -> HypergraphModel:
        """The untrained model of a split."""
        return make_model(
            self.model,
            in_features=dataset.num_features,
            num_classes=objective.num_outputs,
            seed=self.split_seed(split),
            **self.options,
        )

    def split_seed(self, split: int) -> int:
        """The seed of everything random in a split."""
        return derive_seed(self.seed, "split", split)

    def num_parameters(self, dataset: NodeDataset) -> int:
        """Numbers that are learned."""
        objective = make_objective(dataset, known_nodes(dataset))
        return self.make_model(dataset, objective, 0).num_parameters()

    def to_json(self, dataset: NodeDataset, splits: Sequence[Split]) -> JsonObject:
        """What is recorded in ``config.json``: all that decides the numbers, and names for people."""
        hypergraph = dataset.hypergraph
        return {
            "format": RUN_FORMAT,
            "edhnn_version": package_version(),
            "dataset": {
                "name": dataset.name,
                "source": dataset.provenance.source,
                "task": dataset.task,
                "num_nodes": hypergraph.num_nodes,
                "num_hyperedges": hypergraph.num_edges,
                "num_incidences": hypergraph.num_incidences,
                "num_features": dataset.num_features,
                "num_classes": dataset.num_classes,
                "class_names": None if dataset.class_names is None else list(dataset.class_names),
                "feature_names": None if dataset.feature_names is None else list(dataset.feature_names),
                **dataset.reading,
                "sha256": dataset_sha256(dataset),
            },
            "model": self.model,
            "options": asdict(make_config(self.model, **self.options)),
            "train": {**asdict(self.train), "transforms": list(self.train.transforms)},
            "num_splits": self.num_splits,
            "splits_sha256": splits_sha256(splits),
            "seed": self.seed,
            "origin": self.origin,
        }


def plan_from_json(facts: JsonObject) -> Plan:
    """The plan a run folder records."""
    return Plan(
        model=facts["model"],
        options=facts["options"],
        train=TrainConfig(**declared(TrainConfig, facts["train"])),
        num_splits=facts["num_splits"],
        seed=facts["seed"],
        origin=facts["origin"],
    )


def choose_splits(dataset: NodeDataset, count: int) -> list[Split]:
    """The default splits: 50 % train, 25 % validation, 25 % test of the labelled nodes. Paper: Section 4.1.

    For datasets of the catalogue they are the frozen ones. Elsewhere they are drawn the same way, with seed 0.
    """
    if is_catalogued(dataset):
        return default_splits(dataset, count)
    known = known_nodes(dataset)
    drawn = random_splits(len(known), count)
    return [Split(known[split.train], known[split.valid], known[split.test]) for split in drawn]


def dataset_sha256(dataset: NodeDataset) -> str:
    """A hash of what a model sees of a dataset: hyperedges, weights, features, labels."""
    hypergraph, x = dataset.hypergraph, dataset.x
    parts = [hypergraph.node_index, hypergraph.edge_index, hypergraph.edge_weight, hypergraph.incidence_weight]
    if x is not None and x.layout == torch.sparse_csr:
        parts += [x.crow_indices(), x.col_indices(), x.values()]
    else:
        parts.append(x)
    digest = hashlib.sha256(f"{hypergraph.num_nodes},{hypergraph.num_edges},{dataset.num_features}".encode())
    for part in (*parts, dataset.y):
        if part is None:
            digest.update(b"none")
            continue
        array = part.cpu().contiguous().numpy()
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
