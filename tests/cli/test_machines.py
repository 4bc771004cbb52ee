"""Small and unusual machines: a message and exit 1, or the result; never a traceback, never a lost result."""

import json
import os
import shutil
import subprocess

import pytest

from edhnn.errors import MachineError, machine_errors
from tests.cli.test_data import COMMAND

INFO = f"{COMMAND} data info t.csv --json"


@pytest.fixture
def shell(tmp_path):
    (tmp_path / "t.csv").write_text("node,edge\na,1\nb,1\nc,2\n")

    def run(command):
        environment = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stderr
        return done

    return run


def test_too_little_memory_for_pytorch(shell):
    for kilobytes in (200_000, 1_000_000):
        done = shell(f"ulimit -v {kilobytes}; {INFO}")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: Not enough memory to load PyTorch")
        assert "ulimit -v 2400000" in done.stderr


def test_a_closed_standard_output_is_an_error(shell):
    done = shell(f"{COMMAND} models >&-")
    assert (done.returncode, done.stderr.startswith("Error: Standard output is closed")) == (1, True)


def test_a_closed_standard_error_loses_messages_only(shell):
    done = shell(f"{INFO} 2>&- <&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["num_nodes"] == 3
    assert shell(f"{COMMAND} presets --model nothing >&- 2>&-").returncode == 1


@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset")
def test_one_core_and_no_writable_home(shell):
    done = shell(f"HOME=/proc XDG_CACHE_HOME=/proc TMPDIR=/proc taskset -c 0 {INFO}")
    assert (done.returncode, json.loads(done.stdout)["num_nodes"]) == (0, 3)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "Not enough memory to load"),
        (ImportError("x.so: cannot allocate memory in static TLS block"), "Not enough memory to load"),
        (RuntimeError("can't start new thread"), "refused to start a thread"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), "No usable temporary directory"),
    ],
)
def test_errors_of_a_small_machine_are_described(error, message):
    with pytest.raises(MachineError, match=message), machine_errors():
        raise error


def test_other_import_errors_are_not_described():
    with pytest.raises(ImportError, match="No module"), machine_errors():
        raise ImportError("No module named 'x'")
