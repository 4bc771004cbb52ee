"""The README: its Python runs, its console sessions print what it shows, the two commands come early.

EDHNN_UPDATE_README=1 writes the real outputs into it.
"""

import os
import re

import pytest
from typer.testing import CliRunner

from edhnn.cli.main import app
from tests.docs.blocks import FENCE, ROOT, run_program, same, sessions, shell

README = (ROOT / "README.md").read_text()
PYTHON = [body for language, body in FENCE.findall(README) if language == "python"]


def test_the_two_commands_come_first_and_exist():
    opening = README.split("\n## ")[0]
    assert "make demo" in opening
    assert "make test" in opening
    makefile = (ROOT / "Makefile").read_text()
    assert {"demo", "test", "docs"} <= set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_one_picture_stands_in_the_opening():
    picture = re.search(r"!\[[^]]+\]\(([^)]+)\)", README.split("\n## ")[0])[1]
    assert 0 < (ROOT / picture).stat().st_size < 300_000


def test_there_is_python_for_each_kind_of_user():
    assert len(PYTHON) >= 3
    assert all(name in "".join(PYTHON) for name in ("EDHNN(", "EDHNNClassifier(", "diffuse("))


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python_runs(code, tmp_path):
    (tmp_path / "block.py").write_text(code)
    run_program(tmp_path / "block.py", tmp_path)


def test_console_sessions_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_program(ROOT / "examples/baskets.py", tmp_path)
    text, wrong = README, []
    for command, shown in sessions(README):
        real = shell(command)
        if not same(shown, real):
            wrong.append(f"$ {command}\n{real}")
        trimmed = "".join(line.rstrip() + "\n" for line in real.splitlines())
        text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{trimmed}")
    if os.environ.get("EDHNN_UPDATE_README"):
        (ROOT / "README.md").write_text(text)
    else:
        assert not wrong, "The README shows other outputs. EDHNN_UPDATE_README=1 writes these:\n" + "\n".join(wrong)


def test_every_command_it_names_has_help():
    verbs = set(re.findall(r"(?:\$ |`)edhnn (data \w+|[a-z]+)", README))
    assert verbs >= {"data doctor", "data fetch", "train", "predict", "diffuse"}
    for verb in verbs:
        assert CliRunner().invoke(app, [*verb.split(), "--help"]).exit_code == 0, verb


def test_numbers_name_records_that_exist():
    records = set(re.findall(r"`((?:results|benchmarks/results)/[\w.-]+)`", README))
    assert len(records) >= 4
    assert all((ROOT / record).is_file() for record in records)
