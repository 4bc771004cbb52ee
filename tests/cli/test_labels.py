"""Labels as inputs through the command: training, evaluation and prediction agree, and used labels are counted."""

import csv
import json

import pytest

from tests.cli.test_data import here  # noqa: F401  (fixture)
from tests.cli.test_train import animals  # noqa: F401  (fixture)


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_labels_of_a_file_are_used_and_counted(animals, here, jobs):  # noqa: F811
    run = f"told{jobs}"
    arguments = ["--label", "kind", "--model", "belief-diffusion", "--epochs", "8", "--splits", "2", "--jobs", jobs]
    code, output, errors = here("train", "part.csv", *arguments, "--out", run, "--json", folder=animals)
    assert code == 0, errors
    trained = json.loads(output)
    code, output, errors = here("evaluate", run, "part.csv", "--label", "kind", "--json", folder=animals)
    assert code == 0, errors
    own = json.loads(output)
    assert own["same_data"] and [100 * each["accuracy"] for each in own["each"]] == pytest.approx(trained["test"])

    answers = {}
    for source, used in (("full.csv", 0), ("truth.csv", 60)):
        code, output, errors = here("predict", run, source, "--out", f"{run}-{source}", "--json", folder=animals)
        assert code == 0, errors
        assert json.loads(output)["labels_used"] == used
        answers[source] = table(animals / f"{run}-{source}")
    assert answers["full.csv"] != answers["truth.csv"]
    code, output, _ = here("predict", run, "truth.csv", "--out", "again.csv", "--force", folder=animals)
    assert "with 60 labels of the file as inputs" in output


def test_auto_says_what_each_part_is_worth(animals, here):  # noqa: F811
    quick = ["--label", "kind", "--epochs", "3", "--splits", "2", "--jobs", "1"]
    code, output, errors = here("train", "part.csv", *quick, "--model", "auto", "--out", "parts", folder=animals)
    assert code == 0, errors
    assert "beliefs-of-sums" in output
    parts = json.loads((animals / "parts/summary.json").read_text())["parts"]
    assert [part["name"] for part in parts] == ["base", "ed-hnn", "beliefs-of-means", "beliefs-of-sums"]
    assert sum(part["weight"] for part in parts) == pytest.approx(1)
    result = json.loads((animals / "parts/splits/00/result.json").read_text())["parts"]
    assert 0 <= result["calibration"]["error"] <= 1
    assert result["add_nothing"] == [part["name"] for part in result["each"] if not part["weight"]]
    assert "The parts" in (animals / "parts/report.html").read_text()
    code, output, errors = here("evaluate", "parts", "part.csv", "--label", "kind", "--json", folder=animals)
    assert code == 0 and json.loads(output)["same_data"], errors
