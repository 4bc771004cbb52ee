"""`edhnn presets`: every size that a preset uses, and the paper's Table 6 among them."""

import json

from typer.testing import CliRunner

from edhnn.cli.main import app
from edhnn.runs.presets import recorded_preset


def run(*words):
    return CliRunner().invoke(app, ["presets", *words])


def test_as_data_it_is_what_training_uses():
    found = json.loads(run("--model", "ed-hnn-ii", "--json").stdout)
    assert {row["preset"] for row in found} == {"paper"}
    for row in found:
        used = recorded_preset(row["dataset"], "ed-hnn-ii", row["preset"])
        assert (row["options"], row["model"], row["origin"]) == (used.options, used.model, used.origin)


def test_for_people_it_is_table_6():
    said = run().output
    assert "--preset paper" in said
    assert "--preset official" in said
    senate = " ".join(said[said.index(" senate ") :].split())
    assert senate.startswith("senate num_iterations=8, phi_layers=2, rho_layers=2, update_layers=2,")


def test_a_model_that_is_not_there_is_named():
    done = run("--model", "ed-hmm")
    assert done.exception.exit_code == 2
    assert "ed-hmm" in str(done.exception)
