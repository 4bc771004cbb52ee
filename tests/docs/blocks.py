"""Code blocks of Markdown pages, and how they are run."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from edhnn.cli.main import app
from edhnn.io import FORMATS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CELL = re.compile(r"^```\{code-cell\}.*?\n((?::\w[^\n]*\n)*)(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
UNSTABLE = re.compile(r"^.*\b(time|peak memory|selected epochs)\b.*$", re.M)  # other on every machine


def environment():
    """Variables under which a page runs: one thread, the command on the path, a fixed width."""
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
    return {
        **os.environ,
        "PATH": path,
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "78",
        "EDHNN_EXAMPLES": str(ROOT / "examples"),
    }


def cells(page):
    """The executed cells of a page."""
    return [body for _, body in CELL.findall(page.read_text())]


def as_script(sources):
    """Write cells as one Python program; a cell `%%bash` becomes calls of `shell`, one per line."""
    parts = ["from tests.docs.blocks import shell"]
    for source in sources:
        first, _, rest = source.partition("\n")
        lines = rest.replace("\\\n", " ").splitlines()
        parts += [f"shell({line!r})" for line in lines if line] if first == "%%bash" else [source]
    return "\n".join(parts) + "\n"


def run_program(program, folder):
    """Run a Python program in this process, as PyTorch is loaded already: in a folder, and with no trace outside it."""
    formats = dict(FORMATS)
    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng():
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(program)])
        for name, value in environment().items():
            patch.setenv(name, value)
        try:
            return runpy.run_path(str(program), run_name="__main__")
        finally:
            FORMATS.clear()
            FORMATS.update(formats)


def shell(line):
    """Run a line of the shell in this folder; return its standard output. `edhnn` itself is run in this process."""
    first, *arguments = shlex.split(line)
    if first == "edhnn" and not set(arguments) & {"|", ">", "&&", ";"}:
        done = CliRunner().invoke(app, arguments, env=environment())
        assert done.exit_code == 0, f"{line}\n{done.output[-2000:]}\n{done.exception}"
        return done.stdout
    done = subprocess.run(["bash", "-ec", line], env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def sessions(text):
    """The commands of console blocks with the output that is shown below each."""
    for language, body in FENCE.findall(text):
        if language == "console":
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                yield command, output


def same(shown, real, *, tolerance=0.25):
    """Compare outputs: the same words, and numbers that differ by less than a quarter."""
    shown, real = (re.sub(r"[ \t]+", " ", UNSTABLE.sub("", text)) for text in (shown, real))
    words = [re.sub(r"[\s─┌┐└┘├┤┬┴]+", " ", NUMBER.sub("#", text)).strip() for text in (shown, real)]
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (shown, real)]
    near = (abs(a - b) <= tolerance * max(abs(a), abs(b), 1) for a, b in zip(*numbers, strict=False))
    return words[0] == words[1] and all(near)
