"""The README's promises: its Python runs, its commands exist, its first lines are the two commands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_two_commands_come_first_and_exist():
    opening = README.split("##")[0]
    assert "make demo" in opening
    assert "make test" in opening
    makefile = (ROOT / "Makefile").read_text()
    assert {"demo", "test"} <= set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_the_python_example_runs(tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    (tmp_path / "baskets.csv").write_text("item,basket\nmilk,1\nbread,1\nmilk,2\n")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "baskets.hif.json.gz").is_file()


def test_every_command_it_names_has_help():
    verbs = set(re.findall(r"^    (?:\$ )?edhnn (data \w+)", README, re.M))
    assert verbs >= {"data list", "data info", "data doctor", "data convert", "data fetch"}
    command = Path(sys.executable).with_name("edhnn")
    for verb in verbs:
        subprocess.run([command, *verb.split(), "--help"], check=True, capture_output=True, timeout=120)
