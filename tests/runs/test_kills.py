"""Twenty kills at random moments: a resumed run has the bits of an undisturbed run, with any number of threads."""

import random
import signal
import subprocess
import sys
import time

import pytest

from edhnn import contextual_sbm, write_dataset
from tests.runs.test_train import comparable, finish

DRIVER = """
import sys
from edhnn import configure_runtime
configure_runtime()
import torch
torch.set_num_threads(int(sys.argv[3]))
from edhnn import Plan, TrainConfig, read_dataset, train
from edhnn.runs import run
run.CHECKPOINT_SECONDS = 0.2
plan = Plan(options={"hidden": 64, "classifier_hidden": 64}, train=TrainConfig(epochs=60), num_splits=2)
dataset = read_dataset(sys.argv[1])
print("started", flush=True)
train(dataset, plan, out=sys.argv[2], resume=True, jobs=int(sys.argv[4]))
"""
KILLS = 20


def start(data, out, threads, jobs):
    command = [sys.executable, "-c", DRIVER, str(data), str(out), str(threads), str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_twenty_kills_change_no_bit(tmp_path):
    data = tmp_path / "data.hif.json"
    write_dataset(contextual_sbm(2, nodes_per_class=400, num_hyperedges=400), data)
    started = time.perf_counter()
    finish(start(data, tmp_path / "undisturbed", 1, 1))
    whole, dice, kills, runs = time.perf_counter() - started, random.Random(0), 0, 0
    while kills < KILLS:
        out, runs = tmp_path / f"run-{runs}", runs + 1
        for _ in range(5):
            process = start(data, out, dice.choice((1, 2, 3)), dice.choice((1, 2)))
            assert process.stdout.readline().strip() == "started"
            time.sleep(dice.uniform(0.02, 0.4) * whole)
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        finish(start(data, out, 2, 1))
        assert comparable(out) == comparable(tmp_path / "undisturbed")
    sys.stdout.write(f"{kills} kills of {runs} runs, each resumed to the same bits\n")
