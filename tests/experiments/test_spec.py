"""Experiments in TOML: the packaged ones are valid, and errors name the mistake."""

import tomllib
from importlib import resources

import pytest

from edhnn import DataError, UsageError
from edhnn.experiments.jobs import cells_of, jobs_of
from edhnn.experiments.spec import (
    choose_experiments,
    experiment_names,
    find_experiments,
    packaged_experiment,
    packaged_group,
    parse_experiment,
)

GOOD = """
title = "t"
paper = "Table 0"
kind = "accuracy"
splits = 2
train = { epochs = 3 }
[[row]]
label = "net"
model = "ed-hnn"
options = { hidden = 8 }
[[row]]
label = "floor"
model = "class-means"
[[column]]
label = "one"
dataset = "csbm-1"
options = { depth = 3 }
[[column]]
label = "digits"
dataset = "digits"
[[change]]
rows = ["net"]
columns = ["one"]
options = { hidden = 4 }
why = "small"
[[change]]
rows = ["net"]
columns = ["digits"]
skip = true
why = "has no preset"
"""


@pytest.mark.parametrize("name", experiment_names())
def test_every_packaged_experiment_resolves_with_sources(name):
    experiment = packaged_experiment(name)
    cells = list(cells_of(experiment))
    assert cells
    assert all(cell.source for cell in cells)
    if experiment.published:
        table = tomllib.loads(
            resources.files("edhnn.experiments").joinpath("published", f"{experiment.published}.toml").read_text()
        )
        columns = {column.label for column in experiment.column}
        rows = {row.label for row in experiment.row}
        shared = [(row, column) for row in rows & set(table) for column in columns & set(table[row])]
        # Our numbers and the paper's are matched by labels; an experiment of our own shows the paper's for ED-HNN only.
        assert len(shared) >= (len(columns) if experiment.paper != "none" else 1)


def test_only_the_requested_files_are_parsed(monkeypatch):
    from edhnn.experiments import spec

    parsed = []
    parse = spec.parse_experiment
    monkeypatch.setattr(
        spec, "parse_experiment", lambda text, name, path: parsed.append(name) or parse(text, name, path)
    )
    find_experiments("table3")
    find_experiments("smoke")
    assert parsed == ["table3", "smoke", "smoke-depth"]
    monkeypatch.undo()
    assert all(packaged_group(name) == packaged_experiment(name).group for name in experiment_names())


def test_changes_override_columns_override_rows_override_presets():
    (net, floor) = cells_of(parse_experiment(GOOD, "x", None))
    options = net.settings["options"]
    assert (options["hidden"], options["num_iterations"], options["update"]) == (4, 3, "restart")
    assert net.settings["train"]["epochs"] == 3
    assert net.changed == "small"
    assert "preset paper" in net.source
    assert "hidden" in net.source
    assert (floor.row, floor.column) == ("floor", "one")  # digits' features were not drawn from labels


def test_training_settings_have_the_same_order_and_do_not_apply_to_bounds():
    text = GOOD.replace('label = "one"', 'label = "one"\ntrain = { epochs = 5 }', 1)
    text = text.replace("options = { hidden = 8 }", "options = { hidden = 8 }\ntrain = { epochs = 7 }")
    assert next(cells_of(parse_experiment(text, "x", None))).settings["train"]["epochs"] == 5  # the column's
    changed = GOOD + '[[change]]\ncolumns = ["one"]\ntrain = { epochs = 9 }\nwhy = "slow"\n'
    net, floor = cells_of(parse_experiment(changed, "x", None))
    assert (net.settings["train"]["epochs"], net.changed) == (9, "small; slow")
    assert floor.changed == ""  # it trains nothing


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("splits = 2", "split = 2", "Did you mean 'splits'"),
        ('model = "ed-hnn"', 'modell = "ed-hnn"', r"\[\[row\]\] number 1.*Did you mean 'model'"),
        ('why = "small"', 'reason = "small"', r"\[\[change\]\] number 1"),
        ('rows = ["net"]\ncolumns = ["one"]', 'rows = ["nett"]', "Did you mean 'net'"),
        ('label = "digits"', 'label = "one"', "labels of columns must be unique"),
        ('kind = "accuracy"', 'kind = "speed"', "kind of the experiment 'x' must be one of accuracy"),
        ("splits = 2", "splits = ", "not valid TOML"),
        ('dataset = "csbm-1"', "dataset = 3", "Expected `str`"),
        ("splits = 2", "splits = 0", "at least 1 split"),
        ("splits = 2", 'show = "lines"', "must have an x. The column 'one' of 'x' has none"),
        ('kind = "accuracy"', 'kind = "timing"\nshow = "lines"', "must be accuracy or diffusion. Got 'timing'"),
        ("splits = 2", 'text = "x"', "Got 'text' instead"),
        ('kind = "accuracy"', 'kind = "accuracy"\npublished = "tabel2"', "Did you mean 'table2'"),
    ],
)
def test_errors_name_the_mistake(old, new, message):
    with pytest.raises((UsageError, DataError), match=message):
        parse_experiment(GOOD.replace(old, new, 1), "x", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hidden = 8", "hiden = 8", "hidden"),
        ("depth = 3", "hight = 3", "has no option 'hight'"),
        ("epochs = 3", "epoch = 3", "Did you mean 'epochs'"),
        ('dataset = "csbm-1"', 'dataset = "csbm1"', "Did you mean 'csbm-1'"),
        (
            'model = "class-means"',
            'model = "class-means"\noptions = { hidden = 8 }',
            "'floor' has no settings. Got: hidden",
        ),
        ('model = "ed-hnn"', 'model = "edhnn"', "Did you mean 'ed-hnn'"),
    ],
)
def test_unknown_settings_are_errors_when_resolved(old, new, message):
    with pytest.raises(UsageError, match=message):
        list(cells_of(parse_experiment(GOOD.replace(old, new, 1), "x", None)))


DIFFUSION = """
title = "t"
paper = "Figure 0"
kind = "diffusion"
train = { epochs = 3 }
[[row]]
label = "net"
model = "ed-hnn"
[[column]]
label = "one"
dataset = "admm-tv"
options = { width = 8 }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("width = 8", "width = 8, depth = 2", "option of a diffusion experiment"),
        ("epochs = 3", 'epochs = "3"', "'epochs' of a diffusion experiment must be a positive int"),
        ("epochs = 3", "batch = 0", "'batch' of a diffusion experiment must be a positive int"),
        ('kind = "diffusion"', 'kind = "statistics"', "'net' has no settings. Got: epochs, width"),
        ('kind = "diffusion"', 'kind = "timing"', "A timing has no settings. Got: epochs"),
        ("width = 8", "width = 0", "a positive int. Got 0"),
        ("width = 8", "width = true", "a positive int. Got True"),
        ("epochs = 3", "count = 5", "'count' of a diffusion experiment must be at least 10"),
    ],
)
def test_settings_that_would_be_ignored_are_errors(old, new, message):
    assert len(list(cells_of(parse_experiment(DIFFUSION, "x", None)))) == 1
    with pytest.raises(UsageError, match=message):
        list(cells_of(parse_experiment(DIFFUSION.replace(old, new, 1), "x", None)))


def test_a_preset_of_another_model_is_noted_and_the_row_is_chosen_by_its_own_model():
    (job,) = jobs_of([packaged_experiment("table2")], datasets=["cora"], models=["ed-hnn"], splits=1)[1:2]
    assert (job.cell.row, job.cell.settings["model"]) == ("ED-HNN, released commands", "invariant")
    assert "the official settings belong to the model 'invariant'" in job.cell.changed
    others = jobs_of([packaged_experiment("table2")], datasets=["cora"], models=["invariant"], splits=1)
    assert [job.cell.row for job in others] == ["Invariant"]


def test_experiments_are_found_by_name_group_and_file(tmp_path):
    assert [experiment.name for experiment in find_experiments("smoke")] == ["smoke", "smoke-depth"]
    (tmp_path / "mine.toml").write_text(GOOD)
    assert find_experiments(str(tmp_path / "mine.toml"))[0].name == "mine"
    with pytest.raises(UsageError, match="Did you mean 'table2'"):
        find_experiments("tabel2")
    with pytest.raises(UsageError, match="File not found"):
        find_experiments(str(tmp_path / "other.toml"))
    with pytest.raises(UsageError, match="Got '' instead"):
        find_experiments("")
    (tmp_path / 'my "best".toml').write_text(GOOD)
    with pytest.raises(UsageError, match="may contain only letters, digits"):
        find_experiments(str(tmp_path / 'my "best".toml'))


def test_two_experiments_with_one_name_are_an_error_and_duplicates_are_removed(tmp_path):
    (tmp_path / "table2.toml").write_text(GOOD)
    file = str(tmp_path / "table2.toml")
    assert len(choose_experiments(["smoke", "smoke-depth", file, file])) == 3
    with pytest.raises(UsageError, match="'table2' occurs twice"):
        choose_experiments(["table2", file])


def test_jobs_are_ordered_by_split_without_duplicates():
    experiment = parse_experiment(GOOD, "x", None)
    jobs = jobs_of([experiment, experiment])
    assert [(job.cell.row, job.split) for job in jobs] == [("net", 0), ("floor", 0), ("net", 1), ("floor", 1)]
    assert len({job.key for job in jobs}) == 4
    assert len(jobs_of([experiment], models=["ed-hnn"], splits=1)) == 1
    other = jobs_of([experiment], models=["ed-hnn"], splits=1, epochs=9)[0]
    assert other.key != jobs[0].key
    assert other.cell.settings["train"]["epochs"] == 9
    with pytest.raises(UsageError, match="dataset of these experiments"):
        jobs_of([experiment], datasets=["cora"])


def test_epochs_are_an_error_for_experiments_that_do_not_train():
    times = packaged_experiment("table8")
    with pytest.raises(UsageError, match="experiments that train. None of these trains. Got 3"):
        jobs_of([times], epochs=3)
    both = jobs_of([times, parse_experiment(GOOD, "x", None)], epochs=3)
    assert {job.key for job in jobs_of([times])} < {job.key for job in both}


def test_the_key_depends_on_the_settings_and_not_on_the_experiment():
    first, second = (jobs_of([parse_experiment(GOOD, name, None)])[0] for name in "xy")
    assert first.key == second.key
    assert first.key != jobs_of([parse_experiment(GOOD.replace("hidden = 4", "hidden = 5"), "x", None)])[0].key


def test_all_jobs_of_table_4_are_jobs_of_table_2():
    keys = {name: {job.key for job in jobs_of([packaged_experiment(name)])} for name in ("table2", "table2-large")}
    assert {job.key for job in jobs_of([packaged_experiment("table4")])} <= keys["table2"] | keys["table2-large"]
