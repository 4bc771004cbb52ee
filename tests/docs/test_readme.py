"""The README: its Python runs, its commands exist, and its first lines are the two commands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from edhnn.cli.main import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMAND = Path(sys.executable).with_name("edhnn")


def shown(file):
    """Return the lines of a file that the README shows."""
    return (
        re.search(rf"^    \$ cat {re.escape(file)}\n((?:    .*\n)+)", README, re.M)[1].replace("    ", "").splitlines()
    )


def test_the_two_commands_come_first_and_exist():
    opening = README.split("##")[0]
    assert "make demo" in opening
    assert "make test" in opening
    makefile = (ROOT / "Makefile").read_text()
    assert {"demo", "test"} <= set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_the_python_example_runs(tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    (tmp_path / "baskets.csv").write_text("\n".join(shown("baskets.csv")) + "\n")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "baskets.hif.json.gz").is_file()


def write_baskets(folder, name, items, *, labels):
    """Write the README's two tables with more rows: ``items`` items, two thirds of them with a label."""
    memberships, (heads, *known) = shown("baskets.csv"), shown("baskets.nodes.csv")
    rows = [row.split(",") for row in known[:-1]]  # the last line is "..."
    kinds = [kind for _, kind, _, _ in rows]
    memberships += [f"item{k},{basket}" for k in range(items) for basket in (3 + k % 7, 10 + k % 4)]
    rows += [[f"item{k}", "" if k % 3 == 2 else kinds[k % 2], f"{1 + k % 5}.5", f"{k % 7}"] for k in range(items)]
    nodes = [row if labels else [row[0], *row[2:]] for row in (heads.split(","), *rows)]
    (folder / f"{name}.csv").write_text("\n".join(memberships) + "\n")
    (folder / f"{name}.nodes.csv").write_text("\n".join(map(",".join, nodes)) + "\n")


def test_training_works_as_printed(tmp_path):
    write_baskets(tmp_path, "baskets", 40, labels=True)
    write_baskets(tmp_path, "grown", 50, labels=False)
    write_baskets(tmp_path, "labelled", 30, labels=True)
    section = README.split("## Train on it")[1].split("##")[0]
    lines = [re.split(r" {2,}", line)[0] for line in re.findall(r"^    \$ edhnn (.*)$", section, re.M)]
    assert [line.split()[0] for line in lines] == ["train", "predict", "evaluate", "models", "presets"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for line in lines[:3]:
        quick = ["--epochs", "2", "--set", "hidden=8"] if line.startswith("train") else []  # 500 would take a minute
        command = [COMMAND, *shlex.split(line), *quick]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 1 + 2 + 50


def test_every_command_it_names_has_help():
    verbs = set(re.findall(r"^    (?:\$ )?edhnn (data \w+|\w+)", README, re.M))
    assert verbs >= {"data list", "data info", "data doctor", "data convert", "data fetch", "train", "predict", "run"}
    for verb in verbs:
        assert CliRunner().invoke(app, [*verb.split(), "--help"]).exit_code == 0, verb
