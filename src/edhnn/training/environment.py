"""What a run was made with: versions, kernels, processes, threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import numpy as np
import torch

from edhnn import kernels
from edhnn.typing import JsonObject


def package_version() -> str:
    """This package's version."""
    return version("edhnn")


def describe_environment(jobs: int, threads: int) -> JsonObject:
    """Versions, kernels, processes and threads."""
    return {
        "edhnn": package_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "processor_cores": os.cpu_count(),
        "kernels": kernels.active(),
        "jobs": jobs,
        "threads": threads,
    }
