"""The experiment on the suite: every cell has the rule's settings, and floors and networks have scores."""

from edhnn.datasets.suite import load_suite_dataset, suite
from edhnn.experiments.jobs import jobs_of
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.spec import packaged_experiment
from edhnn.training.defaults import choose_defaults
from edhnn.training.structural_features import with_features


def jobs(dataset, model, **more):
    return jobs_of([packaged_experiment("defaults")], datasets=[dataset], models=[model], splits=1, **more)


def perform(job, folder):
    return KINDS["defaults"].perform(job.cell.settings, job.split, folder, lambda: False)


def test_columns_are_the_suite_and_settings_are_those_of_the_rule():
    columns = [column.dataset for column in packaged_experiment("defaults").column]
    assert set(columns) == set(suite())
    assert [suite()[name].half for name in columns] == 11 * ["tune"] + 10 * ["check"]
    before, now = jobs("suite-clubs", "ed-hnn")
    chosen = choose_defaults(with_features(load_suite_dataset("suite-clubs")), "ed-hnn")
    assert now.cell.settings["options"].items() >= chosen.options.items()
    assert now.cell.settings["train"].items() >= chosen.train.items()
    assert before.cell.settings["train"]["learning_rate"] == 1e-3
    assert now.key != before.key


def test_floors_and_networks_are_scored_on_classes_and_values(tmp_path):
    for dataset in ("suite-iris", "suite-mileage"):
        (linear,), (vote,) = jobs(dataset, "linear"), jobs(dataset, "neighbours")
        (network,) = jobs(dataset, "hgnn", epochs=3)
        assert perform(linear, tmp_path)["value"] > 50
        assert perform(vote, tmp_path)["value"] > 50
        found = perform(network, tmp_path / dataset)
        assert found["epochs"] == 3
        assert found["value"] <= 100
