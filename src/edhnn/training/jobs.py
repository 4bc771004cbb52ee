"""How many splits train at once, by rule.

Splits share nothing, threads within a step share everything: so as many processes as there are cores, each with one
thread, as long as there are splits and their memory fits. A single split gets all cores, and so does work that is over
before a second Python has started.

Measured in turns on two quiet cores, start of the processes included (`benchmarks/jobs.py`, record
``benchmarks/results/jobs.json``): two processes of one thread do the work of one process of two threads in 1.11 times
less time on Cora, and in the same time on Senate (0.98). Where others keep the cores busy processes win by far more, as
threads that wait for each other lose most there.
"""

from __future__ import annotations

import os

from edhnn.data.dataset import NodeDataset
from edhnn.data.doctor.machine import total_memory
from edhnn.training.plan import Plan

_SHARE_OF_MEMORY = 0.6
_PROCESS_BYTES = 400 * 2**20  # Python and torch before any data
_KEPT_PER_INCIDENCE, _KEPT_PER_NODE = 2, 24
_SHORT_WORK = 2e9


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def step_bytes(dataset: NodeDataset, plan: Plan) -> int:
    """About what a training step holds: states of nodes and hyperedges kept for the backward pass, and the features."""
    width = int(plan.options.get("hidden", 64))
    iterations = int(plan.options.get("num_iterations", 2))
    hypergraph = dataset.hypergraph
    rows = _KEPT_PER_NODE * (hypergraph.num_nodes + hypergraph.num_edges) + hypergraph.num_incidences
    return 4 * (rows * width * iterations + hypergraph.num_nodes * dataset.num_features)


def choose_jobs(dataset: NodeDataset, plan: Plan, unfinished: int) -> int:
    """The number of processes: 1 means that this process does the work, with all threads."""
    work = unfinished * plan.train.epochs * step_bytes(dataset, plan)
    if unfinished < 2 or work < _SHORT_WORK:  # starting Python and torch again takes longer than that
        return 1
    memory = total_memory()
    each = _PROCESS_BYTES + step_bytes(dataset, plan)
    fitting = cores() if memory is None else max(1, int(_SHARE_OF_MEMORY * memory) // each)
    return max(1, min(cores(), fitting, unfinished))
