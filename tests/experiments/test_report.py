"""Reports from synthetic records: scores, missing cells, and differences from the paper."""

import json
import re
from html.parser import HTMLParser

import pytest

from edhnn import DataError, UsageError
from edhnn.experiments.jobs import cells_of
from edhnn.experiments.records import Records
from edhnn.experiments.report import figures as plots
from edhnn.experiments.report.content import make_content
from edhnn.experiments.report.figures import GREY, panels_of
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.render import (
    markdown_report,
    markdown_table,
    report_data,
    write_report,
)
from edhnn.experiments.report.view import cell_text, format_difference, format_duration, format_p
from edhnn.experiments.spec import packaged_experiment, read_experiment
from tests.experiments.analysis.test_claims import noise
from tests.experiments.made import failed_record, made_records, write_records

VOID = {"meta", "link", "img", "br"}


class Balanced(HTMLParser):
    """A parser that fails on unbalanced tags and collects ids and links."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value[1:] for name, value in attrs if name == "href" and value.startswith("#")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def content_of(folder, *names, value=lambda cell, split: 80 + noise(cell, split), requested=(), **more):
    for name in names:
        write_records(folder, made_records(packaged_experiment(name), value, **more))
    return make_content(Records(folder), list(requested) or list(names))


def test_a_cell_shows_ours_the_papers_and_the_difference(tmp_path):
    (view,) = content_of(tmp_path, "table3", value=lambda cell, split: 70.0 + split).views
    cell = cell_text(view, "HGNN", "alpha 4")
    assert (cell.ours, cell.paper, cell.difference) == ("74.50 ± 3.03", "57.90 ± 1.43", "+16.60")
    assert cell.far
    assert cell.best  # all rows are equal, so all are best
    assert cell.mark == "≈"
    floor = cell_text(view, "Features alone: L1 logistic", "alpha 4")
    assert (floor.paper, floor.difference, floor.far) == ("", "", False)


def test_notes_name_missing_and_reduced_cells(tmp_path):
    experiment = packaged_experiment("table3")
    cells = {(cell.row, cell.column): cell for cell in cells_of(experiment)}

    def value(cell, split):
        if cell.row == "HGNN" or (cell.row, cell.column) == ("MLP", "alpha 1"):
            return None
        return None if cell.row == "AllDeepSets" and split > 3 else 60.0 + split

    write_records(tmp_path, made_records(experiment, value))
    write_records(
        tmp_path, made_records(experiment, lambda cell, split: 50.0 if cell.row == "HGNN" else None, epochs=9)
    )
    write_records(tmp_path, [failed_record(cells["MLP", "alpha 1"], 0, "the disk is full")])
    (view,) = make_content(Records(tmp_path), ["table3"]).views
    notes = notes_of(view)
    assert "Failed: MLP, alpha 1: the disk is full" in notes
    fewer = f"9 epochs instead of {experiment.train['epochs']}"
    number = view.footnotes[fewer]
    assert f"[{number}] {fewer}." in notes
    assert cell_text(view, "HGNN", "alpha 1").footnotes == [number]
    assert f"[{view.footnotes['4 of 10 splits']}] 4 of 10 splits." in notes
    assert cell_text(view, "MLP", "alpha 1").ours == "failed"


def test_cells_that_were_not_run_are_listed(tmp_path):
    (view,) = content_of(tmp_path, "table3", value=lambda cell, split: 9.0 if cell.row == "ED-HNN" else None).views
    (note,) = [note for note in notes_of(view) if note.startswith("Not run")]
    assert "HGNN (all)" in note
    assert cell_text(view, "HGNN", "alpha 1").ours == "not run"


def test_a_remark_on_all_cells_is_one_note(tmp_path):
    (view,) = content_of(tmp_path, "table3", splits=2).views
    assert "In all cells: 2 of 10 splits." in notes_of(view)
    assert cell_text(view, "HGNN", "alpha 1").footnotes == []


def test_statistics_are_compared_without_tests(tmp_path):
    (view,) = content_of(tmp_path, "table7", value=lambda cell, split: 0.875, splits=1).views
    assert cell_text(view, "clique homophily", "alpha 1").difference == "0"
    assert cell_text(view, "clique homophily", "alpha 2").far
    assert any("more than rounding in 5 of 6 cells" in note for note in notes_of(view))
    assert not view.findings.contrasts


def test_times_show_inference_and_no_difference_from_other_units(tmp_path):
    (view,) = content_of(tmp_path, "table8", value=lambda cell, split: 0.0321, splits=1, inference=0.01).views
    cell = cell_text(view, "LEGCN", "Cora")
    assert (cell.ours, cell.paper, cell.difference) == ("32.1 / 10.0 ms", "0.56 ± 0.71 / 0.42 ± 0.06", "")
    assert any("A6000" in note for note in notes_of(view))


def test_unsteady_times_are_marked(tmp_path):
    (view,) = content_of(
        tmp_path, "table8", value=lambda cell, split: 0.02 if cell.row == "LEGCN" else 0.2, splits=1, inference=0.01,
        spread=0.01,
    ).views  # fmt: skip
    assert cell_text(view, "LEGCN", "Cora").footnotes == [1]
    assert cell_text(view, "ED-HNN", "Cora").footnotes == []
    assert any("the steps differ by more than 25%" in note for note in notes_of(view))


def test_disturbed_inferences_are_marked(tmp_path):
    (view,) = content_of(
        tmp_path, "table8", value=lambda cell, split: 0.02 if cell.row == "LEGCN" else 0.2, splits=1, inference=0.03,
        inference_spread=0.02,
    ).views  # fmt: skip
    everywhere = [note for note in notes_of(view) if note.startswith("In all cells: unsteady")]
    assert len(everywhere) == 1
    assert "the inferences differ" in everywhere[0]
    disturbed = view.footnotes["disturbed: an inference took longer than a training step"]
    assert cell_text(view, "LEGCN", "Cora").footnotes == [disturbed]
    assert cell_text(view, "ED-HNN", "Cora").footnotes == []


def test_a_statistic_is_far_beyond_the_printed_digits(tmp_path):
    def value(cell, split):
        return {"mean hyperedge size": 3.0348, "mean degree": 1.7676}.get(cell.row, 1.0)

    (view,) = content_of(tmp_path, "table1", value=value, splits=1).views
    assert not cell_text(view, "mean hyperedge size", "Cora").far  # printed as 3.03
    assert cell_text(view, "mean degree", "Cora").far  # printed as 1.767
    assert cell_text(view, "mean hyperedge size", "Cora").paper == "3.03"  # as printed, no digit added


def test_a_single_split_is_not_tested(tmp_path):
    (view,) = content_of(tmp_path, "table3", value=lambda cell, split: 10.0, splits=1).views
    assert not cell_text(view, "HGNN", "alpha 4").far
    assert not any("twice the combined standard deviation" in note for note in notes_of(view))
    assert any(note.startswith("Differences of a single split") and "−47.90" in note for note in notes_of(view))
    assert "win-tie-loss" not in markdown_table(view)
    assert not any("Holm" in note for note in notes_of(view))


def test_notes_name_columns_with_another_best_row(tmp_path):
    (view,) = content_of(tmp_path, "table3", value=lambda cell, split: 90.0 if cell.row == "HGNN" else 50.0).views
    assert any("alpha 4 (paper ED-HNN; here HGNN)" in note for note in notes_of(view))


def test_the_page_is_valid_and_self_contained(tmp_path):
    content = content_of(tmp_path, "table3", "figure2", "table7", requested=["table3", "figure2"])
    written = write_report(content, tmp_path / "out")
    page = written[0].read_text()
    without_scripts = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.S)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", without_scripts)
    parser = Balanced()
    parser.feed(without_scripts)
    assert parser.open == []
    assert set(parser.links) <= set(parser.ids)
    assert len(set(parser.ids)) == len(parser.ids)
    assert "<noscript><figure><img" in page
    assert "Features alone: L1 logistic" in page
    assert '<tr class="floor">' in page
    assert "[[column]]" in page
    assert (tmp_path / "out" / "figures" / "figure2.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in written} == {"index.html", "tables.md", "figure2.png"}
    assert write_report(content, tmp_path / "out") == written  # again, over the existing files


def test_labels_cannot_break_the_page(tmp_path):
    text = """title = "<b>&"\npaper = "none"\nkind = "accuracy"\nsplits = 2\nnotes = ["</script><i>"]\nshow = "lines"
[[row]]\nlabel = "<script>alert(1)</script>"\nmodel = "mlp"\n[[row]]\nlabel = "a_%&|$"\nmodel = "ed-hnn"
[[column]]\nlabel = "</td>"\ndataset = "csbm-1"\nx = 1"""
    (tmp_path / "mine.toml").write_text(text)
    write_records(tmp_path, made_records(read_experiment(tmp_path / "mine.toml"), lambda cell, split: 1.0 + split))
    content = make_content(Records(tmp_path), [str(tmp_path / "mine.toml")])
    page = write_report(content, tmp_path / "out")[0].read_text()
    for bad in ("<script>alert", "</script><i>", "</td></button>", "<b>&<"):
        assert bad not in page
    assert r"a_%&\|$" in markdown_table(content.views[0])


def test_without_plotly_the_page_shows_the_image(tmp_path, monkeypatch):
    monkeypatch.setattr("edhnn.experiments.report.render.plotly_available", lambda: False)
    page = write_report(content_of(tmp_path, "figure2"), tmp_path / "out")[0].read_text()
    assert "Interactive plots need plotly, which is not installed" in page
    assert "<noscript>" not in page
    assert '<img alt="Figure 2' in page
    assert len(page) < 10**6


def test_plots_have_a_curve_for_each_row_with_scores(tmp_path):
    pytest.importorskip("plotly")
    (view,) = content_of(tmp_path, "figure2").views
    senate, house = panels_of(view)
    assert (senate.title, house.title, senate.logarithmic) == ("Senate", "House", True)
    drawn = json.loads(plots.plot_json(senate, "layers", "accuracy"))
    assert [trace["name"] for trace in drawn["data"]] == [curve.label for curve in senate.curves]
    assert drawn["data"][-1]["x"] == [1.0, 2.0, 4.0, 8.0]
    assert "<" not in plots.plot_json(senate, "<layers>", "accuracy")


def test_markdown_tables_are_well_formed(tmp_path):
    content = content_of(tmp_path, "table3", "table7")
    markdown = markdown_report(content)
    for table in re.findall(r"(?:^\|.*\|$\n?)+", markdown, re.M):
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1
    assert "*Features alone: L1 logistic*" in markdown


def test_report_data_is_valid_json(tmp_path):
    data = json.loads(json.dumps(report_data(content_of(tmp_path, "table3")), allow_nan=False))
    (table,) = data["tables"]
    row = next(row for row in table["rows"] if row["row"] == "HGNN")
    assert row["cells"]["alpha 1"]["paper"] == {"mean": 99.86, "std": 0.05}
    assert row["cells"]["alpha 1"]["splits"] == 10
    assert sum(row["win_tie_loss"]) == 6
    assert {claim["verdict"] for claim in data["claims"]} <= {"not distinguishable", "does not hold"}


def test_a_model_has_one_colour_in_all_figures(tmp_path):
    content = content_of(tmp_path, "figure2", "figure3", "figure5", splits=2)
    seen = {}
    for view in content.views:
        for panel in panels_of(view):
            drawn = [curve for curve in panel.curves if curve.colour != GREY]
            assert len({curve.colour for curve in drawn}) == len(drawn)
            for curve in drawn:
                assert seen.setdefault(curve.label, curve.colour) == curve.colour
    assert len(seen) == 8


def test_experiments_without_records_are_listed_and_their_claims_lack_records(tmp_path):
    write_records(tmp_path, made_records(packaged_experiment("table3"), lambda cell, split: 60.0 + split))
    content = make_content(Records(tmp_path))
    assert [view.name for view in content.views] == ["table3", "beyond"]  # the latter shares rows of ED-HNN
    assert any("Figure 2" in heading for heading in content.absent)
    assert not any("smoke" in heading for heading in content.absent)
    claim, *_ = [claim for claim in content.claims if claim.experiment == "figure3"]
    assert claim.verdict == "not enough records"
    page = write_report(content, tmp_path / "out")[0].read_text()
    assert 'href="#table3"' in page
    assert 'href="#figure3"' not in page  # there is no such section


def test_a_users_experiment_with_a_packaged_name_gets_no_claims(tmp_path):
    text = """
title = "mine"
paper = "Figure 3"
kind = "accuracy"
[[row]]
label = "ED-HNN"
model = "ed-hnn"
[[column]]
label = "one"
dataset = "csbm-1"
[[column]]
label = "two"
dataset = "csbm-2"
[[change]]
columns = ["two"]
skip = true
why = "it takes too long"
"""
    (tmp_path / "figure3.toml").write_text(text)
    experiment = read_experiment(tmp_path / "figure3.toml")
    write_records(tmp_path, made_records(experiment, lambda cell, split: 60.0 + split))
    content = make_content(Records(tmp_path), [str(tmp_path / "figure3.toml")])
    assert content.claims == []
    assert "Skipped: all (two): it takes too long." in notes_of(content.views[0])
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(DataError, match="latin.toml, line 1: .* must be UTF-8"):
        make_content(Records(tmp_path), [str(tmp_path / "latin.toml")])


def test_missing_records_are_an_error_with_a_command_to_run(tmp_path):
    with pytest.raises(UsageError, match="edhnn run table3"):
        make_content(Records(tmp_path), ["table3"])
    with pytest.raises(UsageError, match="edhnn run smoke"):
        make_content(Records(tmp_path))


def test_a_file_instead_of_a_report_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    content = content_of(tmp_path / "results", "table7", splits=1)
    with pytest.raises(UsageError, match="must be a folder"):
        write_report(content, tmp_path / "file")


def test_numbers_are_formatted():
    assert format_difference(-0.001, "accuracy") == "0.00"
    assert format_difference(-3.0, "statistics") == "−3"
    assert format_p(0.0001) == "< 0.001"
    assert (format_duration(7.0), format_duration(120.0), format_duration(7200.0)) == (
        "7 seconds",
        "2 minutes",
        "2.0 hours",
    )
