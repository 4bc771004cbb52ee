"""Runs give the same records with one or several workers, interrupted or not, and no job is done twice."""

import os
import signal
import subprocess
import sys
import time

import pytest

from edhnn import UsageError
from edhnn.errors import StoppedError
from edhnn.experiments.jobs import jobs_of
from edhnn.experiments.records import Records
from edhnn.experiments.runner import JobTimes, do_job, do_jobs, read_jobs, run_jobs, write_jobs
from edhnn.experiments.spec import parse_experiment

GRID = """
title = "t"
paper = "none"
kind = "accuracy"
splits = 2
train = { epochs = 4 }
[[row]]
label = "net"
model = "ed-hnn"
options = { hidden = 8, classifier_hidden = 8 }
[[row]]
label = "mlp"
model = "mlp"
options = { hidden = 8 }
[[column]]
label = "one"
dataset = "csbm-1"
"""


def grid(text=GRID):
    return jobs_of([parse_experiment(text, "grid", None)])


def numbers(folder):
    return sorted((record["key"], record["metrics"]["value"]) for record in Records(folder).read())


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_the_records(tmp_path):
    one = run_jobs(grid(), Records(tmp_path / "one"), workers=1)
    two = run_jobs(grid(), Records(tmp_path / "two"), workers=2)
    assert (one.done, one.left, one.failed, two.done) == (4, 0, 0, 4)
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")  # the number of threads changes no bit
    again = run_jobs(grid(), Records(tmp_path / "two"), workers=2)
    assert (again.before, again.done) == (4, 0)
    assert list((tmp_path / "two" / ".work").glob("jobs-*")) == []


def test_a_stopped_run_is_resumed(tmp_path):
    jobs = grid()[:2]
    do_jobs(jobs, Records(tmp_path / "whole"), lambda: False)
    looks = iter([False] * 2)
    with pytest.raises(StoppedError):
        do_jobs(jobs, Records(tmp_path / "stopped"), lambda: next(looks, True))  # after two of the four epochs
    assert Records(tmp_path / "stopped").read() == []
    do_jobs(jobs, Records(tmp_path / "stopped"), lambda: False)
    assert numbers(tmp_path / "stopped") == numbers(tmp_path / "whole")
    assert len(Records(tmp_path / "stopped").read()) == 2  # none twice


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path):
    text = GRID.replace("epochs = 4", "epochs = 60")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    spec = tmp_path / "grid.toml"
    spec.write_text(text)
    command = [sys.executable, "-m", "edhnn.cli.main", "run", str(spec), "--jobs", "2", "--results"]
    for pause in (5.0, 7.0):
        process = subprocess.Popen([*command, str(killed)], start_new_session=True, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, str(killed)], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([*command, str(whole)], check=True, stderr=subprocess.DEVNULL)
    assert numbers(killed) == numbers(whole)
    assert len(Records(killed).read()) == 4  # none twice


def test_a_budget_ends_a_run_without_an_error(tmp_path):
    outcome = run_jobs(grid(GRID.replace("epochs = 4", "epochs = 100000")), Records(tmp_path), budget=0.05, workers=1)
    assert (outcome.done, outcome.left) == (0, 4)


def test_a_job_without_its_data_is_an_error_and_gets_no_record(tmp_path, monkeypatch):
    monkeypatch.setenv("EDHNN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    jobs = grid(GRID.replace("csbm-1", "senate"))
    with pytest.raises(UsageError, match="'senate' is not on this machine"):
        run_jobs(jobs[:1], Records(tmp_path), workers=1)
    assert Records(tmp_path).read() == []  # it will be run after the data are fetched


def test_a_diverged_training_has_a_record_with_the_reason(tmp_path):
    jobs = grid(GRID.replace("epochs = 4", "epochs = 4, learning_rate = 1e30"))
    do_jobs(jobs[:1], Records(tmp_path), lambda: False)
    record = Records(tmp_path).read()[0]
    assert "learning_rate" in record["failed"]
    assert "metrics" not in record


def test_a_job_locked_by_another_process_is_skipped(tmp_path):
    records, jobs = Records(tmp_path), grid()
    script = (
        "import sys; from pathlib import Path; from edhnn.parallel import locked\n"
        "with locked(Path(sys.argv[1])) as acquired: print(acquired, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(records.work_folder / f"{jobs[0].key}.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "True\n"
        do_jobs(jobs, records, lambda: False)
        other.stdin.close()
    assert records.keys() == {job.key for job in jobs[1:]}


def test_a_worker_reads_each_record_once(tmp_path, monkeypatch):
    from edhnn.experiments import records as module

    parsed = []
    parse = module._parse
    monkeypatch.setattr(module, "_parse", lambda line, path, number: parsed.append(number) or parse(line, path, number))
    records, jobs = Records(tmp_path), grid()
    do_jobs(jobs[:2], Records(tmp_path), lambda: False)
    parsed.clear()
    do_jobs(jobs, records, lambda: False)
    assert sorted(parsed) == [1, 2, 3]  # the two existing records, and its own first one before its second job
    assert records.keys() == {job.key for job in jobs}


def test_jobs_are_read_as_they_were_written(tmp_path):
    write_jobs(grid(), tmp_path / "jobs.json")
    assert [job.key for job in read_jobs(tmp_path / "jobs.json")] == [job.key for job in grid()]


def test_a_stopped_job_saves_its_state(tmp_path):
    with pytest.raises(StoppedError):
        do_job(grid()[0], tmp_path / "work", lambda: True)
    assert (tmp_path / "work" / "state.safetensors").is_file()


def seconds_left(jobs, records):
    times = JobTimes()
    for record in records:
        times.add([record])
    return times.seconds_for(jobs)


def test_the_estimated_time_is_that_of_the_same_cell():
    jobs = grid()
    known = [
        {"settings": jobs[0].cell.settings, "seconds": 10.0},
        {"settings": jobs[1].cell.settings, "seconds": 2.0},
    ]
    assert seconds_left(jobs[2:], known) == 12.0
    assert seconds_left(jobs, []) == 0.0


def test_the_estimated_time_of_an_unknown_cell_is_that_of_the_nearest_known():
    jobs = grid()
    wider = grid(GRID.replace("hidden = 8, classifier_hidden = 8", "hidden = 16, classifier_hidden = 16"))[0]
    network = {"settings": jobs[0].cell.settings, "seconds": 10.0}
    floor = {"settings": jobs[1].cell.settings}
    assert wider.cell.settings["model"] == "ed-hnn"
    assert seconds_left([wider], [network, {**floor, "seconds": 2.0}]) == 10.0
    assert seconds_left([wider], [{**floor, "seconds": 2.0}, {**floor, "seconds": 4.0}]) == 3.0
