"""The plan of a run: model, training, number of splits and seed. A run folder records it with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from operator import index
from pathlib import Path
from typing import Annotated, Any, Final, Literal, final

import msgspec

from edhnn.configuration import Natural, configure
from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.fingerprints import NodeHashes, dataset_sha256, nodes_sha256, splits_sha256
from edhnn.data.splits import LEAST_FOLDS, Drawn, Split, given_split, most_folds, random_splits, stratified_folds
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
from edhnn.training.structural_features import with_features
from edhnn.typing import JsonObject

RUN_FORMAT: Final = 1
_MAX_SPLITS: Final = 10_000
_PAPER_SPLITS: Final = 10
Protocol = Literal["splits", "folds", "given"]
"""How nodes are divided: random splits of 50/25/25, stratified folds, or a column of the user."""


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run.

    Attributes:
        model: The model's name.
        options: Its options; the others keep their defaults.
        train: The training configuration.
        num_splits: Number of splits or folds.
        seed: Seed of initial weights and dropout masks. Splits do not depend on it, so that runs can be compared.
        origin: The source of the sizes, as text: ``preset paper``.
        protocol: ``splits`` draws random splits of 50/25/25, ``folds`` tests every labelled node once, ``given`` reads
            one split from a node attribute.
        group: With folds, a node attribute: nodes with the same value are in the same fold.
        split_column: With ``given``, the node attribute with the values train, valid and test.

    Raises:
        UsageError: if the model does not exist, or an option or a value is invalid.
    """

    model: str = "ed-hnn"
    options: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)
    num_splits: int = 10
    seed: int = 0
    origin: str = "defaults"
    protocol: Protocol = "splits"
    group: str | None = None
    split_column: str | None = None

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
        if self.protocol == "folds" and self.num_splits < LEAST_FOLDS:
            raise UsageError(f"`folds=` must be at least {LEAST_FOLDS}. Got {self.num_splits}.")
        if self.group is not None and self.protocol != "folds":
            raise UsageError("`group=` needs folds. Leave out `splits=` and `split_column=`.")
        if (self.split_column is not None) != (self.protocol == "given") or (
            self.protocol == "given" and self.num_splits != 1
        ):
            raise UsageError("A given split is one split and needs `split_column=`.")

    def draw_splits(self, dataset: NodeDataset) -> Drawn:
        """Draw the splits of the plan.

        Returns:
            The splits, and notes for the user, such as classes with few nodes.

        Raises:
            DataError: if there are too few labelled nodes or groups, or the column of splits has other values.
            UsageError: if a column does not exist.
        """
        if self.protocol == "folds":
            return stratified_folds(dataset, self.num_splits, group=self.group)
        if self.split_column is not None:
            return given_split(dataset, self.split_column)
        return Drawn(choose_splits(dataset, self.num_splits))

    @property
    def protocol_words(self) -> str:
        """The protocol in words: ``5 folds``."""
        if self.split_column is not None:
            return f"the split in '{self.split_column}'"
        groups = "" if self.group is None else f" that keep the groups in '{self.group}' together"
        name = "fold" if self.protocol == "folds" else "split"
        return f"{self.num_splits} {name}{'' if self.num_splits == 1 else 's'}{groups}"

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
            **self.protocol_fields,
        }

    @property
    def protocol_fields(self) -> JsonObject:
        """The fields of ``config.json`` about the protocol; none for random splits, as in earlier versions."""
        fields = {"protocol": self.protocol, "group": self.group, "split_column": self.split_column}
        return {} if self.protocol == "splits" else {name: value for name, value in fields.items() if value is not None}


class _Plan(msgspec.Struct):
    """A plan in a file."""

    model: str
    options: dict[str, Any]
    train: dict[str, Any]
    num_splits: Annotated[int, msgspec.Meta(ge=1, le=_MAX_SPLITS)]
    seed: int
    origin: str
    protocol: Protocol = "splits"
    group: str | None = None
    split_column: str | None = None


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
    """Choose the paper's splits: 50 % train, 25 % validation, 25 % test of the labelled nodes. Paper: Section 4.1.

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
    folds: int | None = None,
    group: str | None = None,
    split_column: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    file: Path | str | None = None,
) -> Plan:
    """Plan a run for a dataset like ``edhnn train``. Values of the file override the preset, arguments override both.

    Datasets of the catalogue, and the presets ``paper`` and ``official``, have ten random splits. Other data have five
    stratified folds, fewer if there are few labelled nodes.

    Args:
        dataset: The dataset.
        model: The model; by default the file's, else ``ed-hnn``.
        preset: The source of the sizes: ``paper``, ``official`` or ``auto``; by default ``paper`` if it has the
            dataset, else ``auto``.
        splits: Number of random splits of 50/25/25.
        folds: Number of stratified folds, each of which tests once.
        group: A node attribute: nodes with the same value are in the same fold.
        split_column: A node attribute with the values train, valid and test: the only split.
        seed: Seed of weights and dropout masks; by default the file's, else 0.
        settings: Options of the model and fields of `TrainConfig`, by name.
        file: A TOML file with ``model``, ``preset``, ``splits``, ``folds``, ``group``, ``split_column``, ``seed`` and
            the tables ``[options]`` and ``[train]``.

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
    dataset = with_features(dataset)
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
        train=configure(TrainConfig, {**sizes.train, **_without_none(train)}),
        seed=content.get("seed", 0) if seed is None else seed,
        origin=sizes.origin + (f"; given: {changed}" if changed else ""),
        **_protocol(dataset, preset or content.get("preset"), content, splits, folds, group, split_column),
    )


def _protocol(
    dataset: NodeDataset,
    preset: str | None,
    content: Mapping[str, Any],
    splits: int | None,
    folds: int | None,
    group: str | None,
    split_column: str | None,
) -> dict[str, Any]:
    """Return the fields of a plan about its splits. Arguments override the file."""
    if splits is None and split_column is None:
        group = content.get("group") if group is None else group
        if folds is None:
            splits, folds, split_column = (content.get(name) for name in ("splits", "folds", "split_column"))
    given = {"splits": splits, "folds": folds, "split_column": split_column}
    names = [f"`{name}=`" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other. Give one of them.")
    if split_column is not None:
        return {"protocol": "given", "num_splits": 1, "split_column": split_column, "group": group}
    paper = is_catalogued(dataset) or preset in ("paper", "official")
    if splits is not None or (paper and folds is None and group is None):
        return {"num_splits": _PAPER_SPLITS if splits is None else splits, "group": group}
    count = most_folds(dataset, group) if folds is None else folds
    return {"protocol": "folds", "num_splits": count, "group": group}


def _without_none(train: Mapping[str, Any]) -> JsonObject:
    """Replace the text ``none`` of a field that may be `None`, because neither TOML nor a command line has `None`."""
    return {name: None if name in _MAY_BE_NONE and value == "none" else value for name, value in train.items()}


_MAY_BE_NONE: Final = ("patience", "clip")
TRAIN_FIELDS: Final = tuple(option.name for option in fields(TrainConfig))
_KEYS: Final = {
    "model": str,
    "preset": str,
    "splits": int,
    "folds": int,
    "group": str,
    "split_column": str,
    "seed": int,
    "options": dict,
    "train": dict,
}


def columns_of_splits(file: Path | str | None, *named: str | None) -> list[str]:
    """Return the columns of groups and of splits that arguments or a plan's file name. They must not become features.

    Args:
        file: The plan's file, if any.
        named: The columns that arguments name; ``None`` is ignored.
    """
    content = {} if file is None else _read_file(Path(file))
    found = [*named, content.get("group"), content.get("split_column")]
    return list(dict.fromkeys(name for name in found if name is not None))


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
