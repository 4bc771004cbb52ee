"""The plan of a run: model, training, number of splits and seed. A run folder records it with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from operator import index
from pathlib import Path
from typing import Annotated, Any, Final, final

import msgspec

from edhnn.configuration import Natural, configure
from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.fingerprints import NodeHashes, dataset_sha256, nodes_sha256, splits_sha256
from edhnn.data.splits import Split, random_splits
from edhnn.datasets.registry import default_splits, is_catalogued
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.io.files import need_utf8, read_document
from edhnn.io.json_files import parse_toml
from edhnn.models.base import HypergraphModel
from edhnn.models.registry import MODELS, make_config
from edhnn.runs.presets import PresetName, find_preset
from edhnn.seeding import derive_seed
from edhnn.training.beliefs import added_columns
from edhnn.training.config import TrainConfig
from edhnn.training.objective import Objective, known_nodes, make_objective
from edhnn.typing import JsonObject

RUN_FORMAT: Final = 1
_MAX_SPLITS: Final = 10_000


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run.

    Attributes:
        model: The model's name.
        options: Its options; the others keep their defaults.
        train: The training configuration.
        num_splits: Number of splits.
        seed: Seed of initial weights and dropout masks. Splits do not depend on it, so that runs can be compared.
        origin: The source of the sizes, as text: ``preset paper``.

    Raises:
        UsageError: if the model does not exist, or an option or a value is invalid.
    """

    model: str = "ed-hnn"
    options: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)
    num_splits: int = 10
    seed: int = 0
    origin: str = "defaults"

    def __post_init__(self) -> None:
        config = self.config  # raises for an unknown model or option and for an invalid value
        for name, value in (
            ("num_splits", index(self.num_splits)),
            ("seed", index(self.seed)),
            ("options", {name: getattr(config, name) for name in self.options}),
            ("train", self.train.for_model(self.model)),
        ):
            object.__setattr__(self, name, value)
        if self.num_splits < 1:
            raise UsageError(f"A run needs at least 1 split. Got {self.num_splits}.")
        if self.num_splits > _MAX_SPLITS:
            raise UsageError(f"A run may have at most {_MAX_SPLITS} splits. Got {self.num_splits}.")

    @cached_property
    def config(self) -> Any:
        """The model's configuration: the options, and defaults for the others."""
        return make_config(self.model, **self.options)

    def make_model(self, dataset: NodeDataset, objective: Objective, split: int) -> HypergraphModel[Any]:
        """Make the untrained model of a split."""
        model = MODELS[self.model].model
        return model(
            self.config,
            in_features=dataset.num_features + added_columns(model, objective.num_outputs, self.train),
            num_classes=objective.num_outputs,
            seed=self.split_seed(split),
        )

    def split_seed(self, split: int) -> int:
        """Derive the seed of everything random in a split."""
        return derive_seed(self.seed, "split", split)

    def num_parameters(self, dataset: NodeDataset) -> int:
        """Count the learned parameters."""
        objective = make_objective(dataset, known_nodes(dataset))
        return self.make_model(dataset, objective, 0).num_parameters()

    def to_json(self, dataset: NodeDataset, splits: Sequence[Split], nodes: NodeHashes) -> JsonObject:
        """Return the content of ``config.json``: everything that determines the results, and descriptive names.

        Args:
            dataset: The dataset.
            splits: The splits.
            nodes: The hashes of its nodes.
        """
        hypergraph = dataset.hypergraph
        return {
            "format": RUN_FORMAT,
            "edhnn_version": version("edhnn"),
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
                "nodes_sha256": nodes_sha256(nodes),
            },
            "model": self.model,
            "options": asdict(self.config),
            "train": {**self.train.to_json(), "transforms": list(self.train.transforms or ())},
            "num_splits": self.num_splits,
            "splits_sha256": splits_sha256(splits),
            "seed": self.seed,
            "origin": self.origin,
        }


class _Plan(msgspec.Struct):
    """A plan in a file."""

    model: str
    options: dict[str, Any]
    train: dict[str, Any]
    num_splits: Annotated[int, msgspec.Meta(ge=1, le=_MAX_SPLITS)]
    seed: int
    origin: str


class RecordedDataset(msgspec.Struct):
    """The fields of the dataset in ``config.json`` that are read."""

    name: str
    task: Task
    sha256: str
    num_nodes: Natural
    num_features: Natural
    class_names: list[int | str] | None
    feature_names: list[str] | None


def plan_from_json(record: JsonObject) -> Plan:
    """Make a plan from a record.

    Raises:
        UsageError: if an option or a value is invalid.
        msgspec.ValidationError: if a field is missing or has another type.
    """
    plan = msgspec.convert(record, _Plan)
    return Plan(**{**msgspec.structs.asdict(plan), "train": configure(TrainConfig, plan.train)})


def choose_splits(dataset: NodeDataset, count: int) -> list[Split]:
    """Choose the default splits: 50 % train, 25 % validation, 25 % test of the labelled nodes. Paper: Section 4.1.

    Datasets of the catalogue have frozen splits. For other datasets they are drawn in the same way, with seed 0.
    """
    if is_catalogued(dataset):
        return default_splits(dataset, count)
    known = known_nodes(dataset)
    drawn = random_splits(len(known), count)
    return [Split(known[split.train], known[split.valid], known[split.test]) for split in drawn]


def make_plan(
    dataset: NodeDataset,
    model: str | None = None,
    *,
    preset: PresetName | None = None,
    splits: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    file: Path | str | None = None,
) -> Plan:
    """Plan a run for a dataset like ``edhnn train``. Values of the file override the preset, arguments override both.

    Args:
        dataset: The dataset.
        model: The model; by default the file's, else ``ed-hnn``.
        preset: The source of the sizes: ``paper``, ``official`` or ``auto``; by default ``paper`` if it has the
            dataset, else ``auto``.
        splits: Number of splits; by default the file's, else 10.
        seed: Seed of weights and dropout masks; by default the file's, else 0.
        settings: Options of the model and fields of `TrainConfig`, by name.
        file: A TOML file with ``model``, ``preset``, ``splits``, ``seed`` and the tables ``[options]`` and ``[train]``.

    Raises:
        UsageError: if a name is unknown or a value is invalid.
        DataError: if the file is not TOML.

    Example:
        >>> from edhnn import contextual_sbm
        >>> from edhnn.runs.plan import make_plan
        >>> data = contextual_sbm(1, nodes_per_class=50, num_hyperedges=60)
        >>> plan = make_plan(data, "hgnn", settings={"hidden": 16, "epochs": 100})
        >>> plan.options["hidden"], plan.train.epochs
        (16, 100)
    """
    content = _read_file(Path(file)) if file is not None else {}
    model = model or content.get("model") or "ed-hnn"
    options, train = dict(content.get("options", {})), dict(content.get("train", {}))
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    known = [option.name for option in fields(MODELS[model].config)]
    for name, value in (settings or {}).items():
        if name in TRAIN_FIELDS:
            train[name] = value
        elif name in known:
            options[name] = value
        else:
            raise unknown_name(f"setting of '{model}' or of its training", name, (*known, *TRAIN_FIELDS))
    heads = options.get("heads")
    valid_heads = heads if isinstance(heads, int) and heads > 0 else None  # Plan raises for an invalid number
    sizes = find_preset(dataset, model, preset or content.get("preset"), heads=valid_heads)
    changed = ", ".join(sorted({*options, *(set(train) - {"epochs"})}))
    return Plan(
        model=sizes.model,
        options={**sizes.options, **options},
        train=configure(TrainConfig, {**sizes.train, **train}),
        num_splits=content.get("splits", 10) if splits is None else splits,
        seed=content.get("seed", 0) if seed is None else seed,
        origin=sizes.origin + (f"; given: {changed}" if changed else ""),
    )


TRAIN_FIELDS: Final = tuple(option.name for option in fields(TrainConfig))
_KEYS: Final = {"model": str, "preset": str, "splits": int, "seed": int, "options": dict, "train": dict}


def _read_file(path: Path) -> dict[str, Any]:
    """Read a plan's file and check its keys."""
    try:
        content = parse_toml(need_utf8(read_document(path), "The configuration", path))
    except (UsageError, DataError):
        raise
    except ValueError as error:
        raise DataError(f"The configuration must be TOML. Cause: {error}.", path=path) from error
    for key, value in content.items():
        if key not in _KEYS:
            raise unknown_name(f"key in '{path}'", key, _KEYS)
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise UsageError(f"'{key}' in '{path}' must be of type {_KEYS[key].__name__}. Got {value!r}.")
    if content.get("seed", 0) < 0:
        raise UsageError(f"'seed' in '{path}' must be 0 or more. Got {content['seed']}.")
    for key in content.get("train", {}):
        if key not in TRAIN_FIELDS:
            raise unknown_name(f"key in [train] of '{path}'", key, TRAIN_FIELDS)
    return content


def parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """Parse ``key=value`` words. Values are TOML (``0.3``, ``true``, ``["add_singletons"]``) or else text.

    Raises:
        UsageError: if a word has no ``=``.
    """
    settings = {}
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f"A setting must have the form key=value. Got '{word}'.")
        try:
            parsed = parse_toml(f"value = {text}")
        except ValueError:
            parsed = {}
        settings[key] = parsed["value"] if parsed.keys() == {"value"} else text.strip()
    return settings
