"""Grids: records are matched by settings, then by settings except epochs."""

import numpy as np

from edhnn.experiments.analysis.grid import RecordIndex, gather
from edhnn.experiments.jobs import cells_of
from edhnn.experiments.kinds.diffusion_steps import DiffusionSteps
from edhnn.experiments.spec import packaged_experiment, parse_experiment
from tests.experiments.made import failed_record, made_record, made_records

NO_STEP = DiffusionSteps.metric_floor.label
SMALL = """
title = "t"
paper = "Table 0"
kind = "accuracy"
splits = 3
train = { epochs = 100 }
[[row]]
label = "net"
model = "ed-hnn"
[[row]]
label = "mlp"
model = "mlp"
[[column]]
label = "one"
dataset = "csbm-1"
[[column]]
label = "two"
dataset = "csbm-4"
[[change]]
rows = ["net"]
columns = ["two"]
options = { hidden = 8 }
why = "small"
"""


def small():
    return parse_experiment(SMALL, "small", None)


def test_scores_are_matched_by_settings():
    records = made_records(small(), lambda cell, split: 70.0 + split if cell.row == "net" else 60.0)
    grid = gather(small(), RecordIndex(records))
    cell = grid.cells["net", "two"]
    np.testing.assert_array_equal(cell.scores, [70, 71, 72])
    assert (cell.state, cell.cell.changed, cell.epochs, cell.requested) == ("measured", "small", None, 3)
    assert cell.mean_of("num_parameters") == 7
    assert cell.mean_of("inference") is None
    assert grid.has_network_records


def test_records_of_another_experiment_count_and_other_settings_do_not():
    other = parse_experiment(
        SMALL.replace('label = "net"', 'label = "other"').replace('["net"]', '["other"]'), "x", None
    )
    grid = gather(small(), RecordIndex(made_records(other, lambda cell, split: 50.0)))
    assert grid.cells["net", "one"].state == "measured"
    changed = parse_experiment(SMALL.replace("hidden = 8", "hidden = 16"), "small", None)
    grid = gather(changed, RecordIndex(made_records(small(), lambda cell, split: 50.0)))
    assert grid.cells["net", "two"].state == "not run"
    assert grid.cells["net", "one"].state == "measured"


def test_other_epochs_are_used_without_own_records_and_most_splits_win():
    one_split = made_records(small(), lambda cell, split: 50.0, splits=1, epochs=50)
    two_splits = made_records(small(), lambda cell, split: 40.0, splits=2, epochs=20)
    cell = gather(small(), RecordIndex([*one_split, *two_splits])).cells["net", "one"]
    assert (cell.epochs, len(cell.values), cell.scores[0]) == (20, 2, 40.0)
    matching = made_records(small(), lambda cell, split: 60.0, splits=1)
    cell = gather(small(), RecordIndex([*one_split, *two_splits, *matching])).cells["net", "one"]
    assert (cell.epochs, len(cell.values), cell.scores[0]) == (None, 1, 60.0)


def test_failures_have_reasons_and_missing_scores_are_failures():
    first, second, *_ = cells_of(small())
    records = [failed_record(first, 0, "no data"), failed_record(first, 1, "no data"), made_record(second, 0, None)]
    grid = gather(small(), RecordIndex([*records, made_record(second, 1, 3.0)]))
    assert (grid.cells["net", "one"].state, grid.cells["net", "one"].failures) == ("failed", ("no data",))
    assert grid.cells["net", "two"].failures == ("the score is not a number",)
    assert grid.measured("net", "one") is None
    assert grid.measured("net", "two") is grid.cells["net", "two"]


def test_floors_are_added_and_come_first():
    lines = gather(small(), RecordIndex([])).lines
    assert [(line.label, line.kind) for line in lines] == [
        ("Features alone: L1 logistic", "floor"),
        ("Features alone: true class means", "floor"),
        ("mlp", "floor"),
        ("net", "network"),
    ]
    figure = gather(packaged_experiment("figure2"), RecordIndex([]))
    assert {"MLP", "Features alone: L1 logistic", "ED-HNN"} <= {line.label for line in figure.lines}
    table = packaged_experiment("table2")
    records = made_records(table, lambda cell, split: 50.0 if cell.row in ("MLP", "HGNN") else None)
    grid = gather(packaged_experiment("figure2"), RecordIndex(records))
    assert grid.measured("MLP", "Senate, 8") is not None  # the same perceptron at all depths
    assert grid.measured("HGNN", "Senate, 8") is None
    assert not grid.has_network_records


def test_floors_that_do_not_exist_for_a_dataset_have_no_cells():
    grid = gather(packaged_experiment("table2"), RecordIndex([]))
    assert ("Features alone: true class means", "Senate") in grid.cells
    assert ("Features alone: true class means", "Cora") not in grid.cells


def test_no_step_is_the_floor_of_diffusion():
    figure = packaged_experiment("figure5")
    grid = gather(
        figure, RecordIndex(made_records(figure, lambda cell, split: 0.1, splits=3, mean_absolute_change=0.4))
    )
    assert grid.lines[0].label == NO_STEP
    assert not grid.kind.higher_is_better
    np.testing.assert_array_equal(grid.cells[NO_STEP, "TV, 8"].scores, [0.4, 0.4, 0.4])
    assert gather(figure, RecordIndex([])).cells[NO_STEP, "TV, 8"].state == "not run"


def test_statistics_have_one_split_and_no_floors():
    table = packaged_experiment("table7")
    grid = gather(table, RecordIndex(made_records(table, lambda cell, split: 0.5, splits=1)))
    assert all(cell.requested == 1 and cell.state == "measured" for cell in grid.cells.values())
    assert not any(line.kind == "floor" for line in grid.lines)
