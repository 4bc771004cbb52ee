"""The kinds of cells, each defined in a module of its own."""

from __future__ import annotations

from collections.abc import Mapping

from edhnn.experiments.kinds.accuracy import Accuracy
from edhnn.experiments.kinds.base import Kind
from edhnn.experiments.kinds.defaults import DefaultSettings
from edhnn.experiments.kinds.diffusion_steps import DiffusionSteps
from edhnn.experiments.kinds.statistics import Statistics
from edhnn.experiments.kinds.timing import Timing

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (Accuracy(), Statistics(), Timing(), DiffusionSteps(), DefaultSettings())
}
"""The kinds by the value of ``kind`` in an experiment's file."""
