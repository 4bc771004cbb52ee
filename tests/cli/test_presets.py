"""`edhnn presets`: every setting of a preset, including the paper's Table 6."""

import json

from typer.testing import CliRunner

from edhnn.cli.main import app
from edhnn.runs.presets import recorded_preset


def run(*words):
    return CliRunner().invoke(app, ["presets", *words])


def test_json_lists_the_settings_that_training_uses():
    found = json.loads(run("--model", "ed-hnn-ii", "--json").stdout)
    assert {row["preset"] for row in found} == {"paper"}
    for row in found:
        used = recorded_preset(row["dataset"], "ed-hnn-ii", row["preset"])
        assert (row["options"], row["model"], row["origin"]) == (used.options, used.model, used.origin)


def test_text_shows_table_6():
    output = run().output
    assert "--preset paper" in output
    assert "--preset official" in output
    senate = " ".join(output[output.index(" senate ") :].split())
    assert senate.startswith("senate num_iterations=8, phi_layers=2, rho_layers=2, update_layers=2,")


def test_an_unknown_model_is_named():
    done = run("--model", "ed-hmm")
    assert done.exception.exit_code == 2
    assert "ed-hmm" in str(done.exception)
