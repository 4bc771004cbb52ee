"""The default settings of every model, chosen from the data by one rule.

The command, `edhnn.runs.make_plan`, `edhnn.training.fit` and the estimators all use it. The rule:

- *Width*: the largest of 256, 128, 64 and 32 with which a step of two iterations keeps at most 112 MiB
  (`edhnn.doctor.cost`) and which leaves at least eight nodes per channel; divided among the heads if there are several.
- *Features*: dense columns are standardised, sparse ones (bags of words) are used as they are.
- *Dropout*: 0.2, none on the features.
- *Training*: Adam with a learning rate of 0.005, until 100 epochs have brought no better validation score, and at most
  750 epochs. Of epochs with equal validation accuracy the one with the smallest loss is selected.

Fields of the training in a model's registry entry (`ModelEntry.training`) take precedence.

The numbers were tuned by validation scores on the half ``tune`` of the suite (`edhnn.datasets.suite`). The paper's
settings are those of the presets ``paper`` and ``official``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, final

import torch
from torch import nn

from edhnn.configuration import configure
from edhnn.data.dataset import NodeDataset
from edhnn.doctor.cost import count
from edhnn.models.registry import MODELS, ModelEntry, entry_of
from edhnn.training.config import TrainConfig

_WIDTHS: Final = (256, 128, 64, 32)
_STEP_BYTES: Final = 112 * 2**20  # well below a second a step on two cores; gives the recorded widths of the catalogue
_NODES_PER_CHANNEL: Final = 8
_DROPOUT: Final = 0.2
_TRAINING: Final = {"learning_rate": 0.005, "epochs": 750, "patience": 100, "select": "metric-then-loss"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Default settings of a model for a dataset.

    Attributes:
        options: Options of the model that differ from those of its configuration.
        train: Fields of the training configuration.
    """

    options: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)


def choose_defaults(dataset: NodeDataset, model: str, heads: int | None = None) -> Defaults:
    """Choose the default settings of a model for a dataset by the rule above.

    Args:
        dataset: The dataset, with features (`edhnn.training.with_features`).
        model: The model's name.
        heads: Number of heads, if it is not the model's default.

    Example:
        >>> from edhnn import load_dataset
        >>> from edhnn.training.defaults import choose_defaults
        >>> choose_defaults(load_dataset("digits"), "ed-hnn").options
        {'hidden': 128, 'classifier_hidden': 128, 'dropout': 0.2, 'input_dropout': 0.0}
    """
    entry = MODELS[model]
    train = _training(dataset, entry)
    known = [option.name for option in fields(entry.config)]
    if (
        "features" in known
    ):  # a state of beliefs: words are inputs too, other columns reach it through the base predictor
        words = dataset.x is not None and dataset.x.layout == torch.sparse_csr
        return Defaults(options={"features": words}, train=train)
    counts = count(dataset)
    fitting = (
        width
        for width in _WIDTHS[:-1]
        if counts.nodes >= _NODES_PER_CHANNEL * width and counts.step_bytes(width, 2) <= _STEP_BYTES
    )
    width = next(fitting, _WIDTHS[-1])
    options: dict[str, Any] = {name: width for name in ("hidden", "classifier_hidden") if name in known}
    default_heads = getattr(entry.config(), "heads", 1)
    if default_heads > 1:  # then `hidden` is the width of one head
        options["hidden"] = max(width // (heads or default_heads), 1)
    options |= {name: rate for name, rate in (("dropout", _DROPOUT), ("input_dropout", 0.0)) if name in known}
    return Defaults(options=options, train=train)


def default_training(dataset: NodeDataset, model: nn.Module) -> TrainConfig:
    """Return the default training configuration for a model that the caller has made."""
    return configure(TrainConfig, _training(dataset, entry_of(model)))


def _training(dataset: NodeDataset, entry: ModelEntry | None) -> dict[str, Any]:
    train: dict[str, Any] = {**_TRAINING, **(entry.training if entry is not None else {})}
    if dataset.x is not None and dataset.x.layout == torch.strided:
        train["feature_scaling"] = "standard"
    if entry is not None and not entry.singletons:
        train["transforms"] = ()
    return train
