"""Models by name: those of this package, and those that users register.

A module registers its models with the decorator `register_model`. The table `_MODULES` maps the name of each model of
this package to its module, which is imported on first use. Users' models use the same decorator. Their modules are
imported by the user, through the entry point group ``edhnn.models``, or through the environment variable
``EDHNN_PLUGINS`` (modules or files, separated by commas).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar, final

from edhnn.configuration import configure
from edhnn.errors import UsageError, unknown_name
from edhnn.models.base import HypergraphModel
from edhnn.parallel import import_shared_modules, share_module

_MODULES = {
    "ed-hnn": "edhnn",
    "ed-hnn-ii": "edhnn_ii",
    "invariant": "edhnn",
    "mean-deg": "released_variants",
    "jump-link": "released_variants",
    "belief-diffusion": "belief_diffusion",
    "auto": "auto",
    "mlp": "baselines.mlp",
    "ce-gcn": "baselines.clique_gnn",
    "ce-gat": "baselines.clique_gnn",
    "hgnn": "baselines.hgnn",
    "hcha": "baselines.hgnn",
    "hnhn": "baselines.hnhn",
    "hypergcn": "baselines.hypergcn",
    "unigcn": "baselines.unignn",
    "unigat": "baselines.unignn",
    "unigin": "baselines.unignn",
    "unisage": "baselines.unignn",
    "unigcnii": "baselines.unignn",
    "hypernd": "baselines.hypernd",
    "alldeepsets": "baselines.allset",
    "allsettransformer": "baselines.allset",
    "hypersage": "baselines.hypersage",
    "legcn": "baselines.legcn",
    "hgnn-jumplink": "baselines.jump_links",
    "alldeepsets-jumplink": "baselines.jump_links",
}
"""The module of each model, below ``edhnn.models``."""

Model = TypeVar("Model", bound=Callable[..., HypergraphModel[Any]])


@final
@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A registered model.

    Attributes:
        model: The class of the model.
        config: The class of its configuration.
        summary: A one-line description.
        singletons: Whether training first adds a singleton hyperedge to every node (`add_singletons`), as the code
            behind the published numbers does for this model.
        training: Fields of `edhnn.training.TrainConfig` whose values suit this model, for preset ``auto`` and the
            estimators.
    """

    model: Callable[..., HypergraphModel[Any]]
    config: type[Any]
    summary: str
    singletons: bool = True
    training: Mapping[str, Any] = field(default_factory=dict)


_ENTRIES: dict[str, ModelEntry] = {}


def register_model(
    name: str, summary: str, *, singletons: bool = True, training: Mapping[str, Any] | None = None
) -> Callable[[Model], Model]:
    """Register a model under a name, as a decorator of its class.

    The class takes ``(config, *, in_features, num_classes, seed)`` and has a ``config_class``, a frozen dataclass with
    a default for every field, as `HypergraphModel` does. Worker processes import its module.

    Args:
        name: The name, as in ``edhnn train --model``.
        summary: A one-line description.
        singletons: Whether training first adds a singleton hyperedge to every node.
        training: Fields of the training configuration whose values suit the model.

    Returns:
        The decorator, which returns the class unchanged.

    Raises:
        UsageError: if another class has this name.
    """

    def register(model: Model) -> Model:
        before = _ENTRIES.get(name)
        ours = model.__module__.startswith("edhnn.models.")
        same = before is not None and getattr(before.model, "__qualname__", "") == model.__qualname__
        if (before is not None and not same) or (name in _MODULES and not ours):
            raise UsageError(f"The name of a model must be unique. '{name}' is already registered.")
        _ENTRIES[name] = ModelEntry(model, model.config_class, summary, singletons, training or {})  # type: ignore[attr-defined]
        if not ours:
            share_module(sys.modules[model.__module__])
        return model

    return register


def load_plugins() -> None:
    """Import users' models: the entry points, then the modules in ``EDHNN_PLUGINS``; each is imported once."""
    for entry in entry_points(group="edhnn.models"):
        if entry.module not in sys.modules:
            entry.load()
    import_shared_modules()


class _Models(Mapping[str, ModelEntry]):
    """All models by name; the modules of this package are imported on first use."""

    def __getitem__(self, name: str) -> ModelEntry:
        if name not in _ENTRIES:
            if name in _MODULES:
                import_module(f"edhnn.models.{_MODULES[name]}")
            else:
                load_plugins()
        return _ENTRIES[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES or name in list(self)

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        yield from _MODULES
        yield from (name for name in tuple(_ENTRIES) if name not in _MODULES)

    def __len__(self) -> int:
        return len(list(iter(self)))


MODELS: Mapping[str, ModelEntry] = _Models()
"""Every model by name."""


def entry_of(model: object) -> ModelEntry | None:
    """Return the entry of a model's class, or ``None`` if it is not registered."""
    return next((entry for entry in _ENTRIES.values() if entry.model is type(model)), None)


def make_config(name: str, **options: Any) -> Any:
    """Make a model's configuration; options that are not given have their defaults.

    Raises:
        UsageError: if the model or an option is unknown (the message lists the known ones), or a value is invalid.
    """
    if name not in MODELS:
        raise unknown_name("model", name, tuple(MODELS))
    return configure(MODELS[name].config, options, what=f"option of model '{name}'")


def make_model(name: str, *, in_features: int, num_classes: int, seed: int = 0, **options: Any) -> HypergraphModel[Any]:
    """Make a model by name.

    Args:
        name: A name in `MODELS`: ``ed-hnn``, ``ed-hnn-ii``, ...
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Seed of the initial weights and the dropout masks.
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
