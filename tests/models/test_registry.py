"""Models by name: ours are imported on first use, and users' models also work in worker processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import edhnn
from edhnn import Plan, TrainConfig, UsageError, make_model, train
from edhnn.models.registry import MODELS, register_model
from edhnn.parallel import import_shared_modules

USER_MODEL = '''"""A user's model."""

from dataclasses import dataclass

from edhnn import HypergraphModel, MLP, register_model
from edhnn.configuration import Configuration, Count


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig(Configuration):
    hidden: Count = 4


@register_model("{name}", "a user's perceptron", singletons=False)
class UserModel(HypergraphModel[UserConfig]):
    """A perceptron."""

    config_class = UserConfig

    def build(self, config):
        self.mlp = self.make_mlp(self.in_features, config.hidden, self.num_classes, 2, norm="none", dropout=0.1)

    def forward(self, x, hypergraph):
        return self.mlp(x)
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write and import a module with a user's model, from a folder that is only on this process's path."""
    name = f"model_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(USER_MODEL.replace("{name}", name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("edhnn.parallel._SHARED", [])
    return __import__(name)


@pytest.mark.slow  # every day: a user's model in a worker of an experiment, and a run with one and two processes
@pytest.mark.usefixtures("without_shape_checks")
def test_a_user_model_trains_identically_in_worker_processes(module, tiny, tmp_path):
    name = module.__name__
    plan = Plan(model=name, options={"hidden": 5}, train=TrainConfig(epochs=2), num_splits=2)
    for jobs in (1, 2):
        train(tiny, plan, out=tmp_path / f"jobs-{jobs}", jobs=jobs)
    for file in ("splits/00/metrics.jsonl", "splits/01/metrics.jsonl"):
        assert (tmp_path / "jobs-1" / file).read_bytes() == (tmp_path / "jobs-2" / file).read_bytes()
    for jobs in (1, 2):
        recorded = json.loads((tmp_path / f"jobs-{jobs}/config.json").read_text())
        assert (recorded["model"], recorded["options"]) == (name, {"hidden": 5})


def test_a_model_name_must_be_unique(module):
    assert module.__name__ in MODELS and module.__name__ in list(MODELS)
    register_model(module.__name__, "again")(
        module.UserModel
    )  # the same class may be registered again, as when a module is reloaded
    for taken in (module.__name__, "ed-hnn"):
        with pytest.raises(UsageError, match=f"must be unique. '{taken}' is already registered"):
            register_model(taken, "another")(type("Other", (), {"config_class": module.UserConfig}))


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(edhnn.__file__).parents[1]), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_plugins_load_from_files_and_entry_points_and_only_requested_models_are_imported(tmp_path):
    (tmp_path / "by_file.py").write_text(USER_MODEL.replace("{name}", "by-file"))
    (tmp_path / "by_entry.py").write_text(USER_MODEL.replace("{name}", "by-entry"))
    info = tmp_path / "packages" / "somebody-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[edhnn.models]\nby-entry = by_entry:UserModel\n")
    code = f"""
import json, sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
sys.path += [{str(tmp_path)!r}, {str(info.parent)!r}]
from edhnn import make_model
from edhnn.models import MODELS
make_model("hgnn", in_features=3, num_classes=2)
print(sum(name.startswith("edhnn.models.baselines.") for name in sys.modules))
print(*(make_model(name, in_features=3, num_classes=2).num_parameters() for name in ("by-file", "by-entry")))
print(*list(MODELS)[-3:])
from edhnn.cli.main import load_verb
with redirect_stdout(TextIOWrapper(BytesIO(), encoding="utf-8")) as listed:
    load_verb("models").main(["--json"], standalone_mode=False)
print(*(row["name"] for row in json.loads((listed.flush(), listed.buffer.getvalue())[1])[-3:]))
"""
    names = ["by-entry", "by-file", "residual"]
    example = Path(__file__).parents[2] / "examples/own_model.py"
    assert run(code, EDHNN_PLUGINS=f"{tmp_path / 'by_file.py'},{example}") == ["1", "26", "26", *names, *names]


def test_a_missing_plugin_raises_an_error_with_its_name(monkeypatch):
    monkeypatch.setenv("EDHNN_PLUGINS", "nowhere.py")
    with pytest.raises(UsageError, match="EDHNN_PLUGINS must name .* 'nowhere.py': file not found"):
        import_shared_modules()


def test_an_unknown_model_raises_an_error_with_a_suggestion():
    with pytest.raises(UsageError, match="Did you mean 'hgnn'"):
        make_model("hgn", in_features=3, num_classes=2)
    assert "hgn" not in MODELS and len(MODELS) == len(list(MODELS))
