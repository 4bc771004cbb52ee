"""The environment of a run: versions, kernels, processes, threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import numpy as np
import torch

from edhnn import kernels
from edhnn.typing import JsonObject


def describe_environment(jobs: int, threads: int, device: torch.device | None = None) -> JsonObject:
    """Return versions, kernels, processes, threads, and the device if it is not the CPU."""
    return {
        "edhnn": version("edhnn"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "processor_cores": os.cpu_count(),
        "kernels": kernels.active(),
        "jobs": jobs,
        "threads": threads,
        **({} if device is None or device.type == "cpu" else {"device": str(device)}),
    }
