"""The kinds of jobs by name."""

from __future__ import annotations

from collections.abc import Mapping

from edhnn.experiments.kinds.accuracy import Accuracy
from edhnn.experiments.kinds.contract import Kind
from edhnn.experiments.kinds.diffusion import Diffusion
from edhnn.experiments.kinds.statistics import Statistics
from edhnn.experiments.kinds.timing import Timing

KINDS: Mapping[str, Kind] = {
    "accuracy": Accuracy(),
    "statistics": Statistics(),
    "timing": Timing(),
    "diffusion": Diffusion(),
}
