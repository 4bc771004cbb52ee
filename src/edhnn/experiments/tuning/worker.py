"""A process that works a search: ``python -m edhnn.experiments.tuning.worker FOLDER``, written by its parent."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from edhnn.experiments.tuning.work import work_in_folder
from edhnn.training.processes import worker_main

if __name__ == "__main__":
    torch.set_num_threads(1)
    worker_main(lambda should_stop: work_in_folder(Path(sys.argv[1]), should_stop))
