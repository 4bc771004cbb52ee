"""The list of models needs no PyTorch; `tests/test_imports.py` looks at every other import."""

import json
import os
import subprocess
import sys
from pathlib import Path

import edhnn.models
from edhnn.cli.models import list_models


def test_the_models_are_listed_without_pytorch():
    script = """
import sys
from edhnn.cli.main import load_verb
load_verb("models").main(["--json"], standalone_mode=False)
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["name"] == "ed-hnn"


def test_the_packaged_list_of_models_is_current():
    packaged = Path(edhnn.models.__file__).with_name("models.json")
    rows = json.dumps(list_models(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("EDHNN_UPDATE_GOLDEN"):
        packaged.write_text(rows, encoding="utf-8")
    assert packaged.read_text(encoding="utf-8") == rows, (
        "run: EDHNN_UPDATE_GOLDEN=1 python -m pytest -n 0 tests/cli/test_start.py"
    )
