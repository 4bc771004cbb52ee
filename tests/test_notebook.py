"""What notebooks show, by IPython's own formatters and displays."""

from html.parser import HTMLParser

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.figure import Figure

from edhnn import Hypergraph, NodeDataset, Provenance, contextual_sbm, diffuse, notebook
from edhnn.io import files
from edhnn.plotting import draw
from edhnn.runs import make_plan, train

FOREIGN = "<script>alert('x')</script>\x1b[31m\u202e&"
TRIOS = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], []], num_nodes=5, edge_weight=[1.0, 2.0, 1.0])


class Cells(HTMLParser):
    """The texts of a table, and the tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def shell():
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def shown_by(shell, value, kind="text/html"):
    return shell.display_formatter.format(value)[0][kind]


def cells(text):
    parsed = Cells(text)
    assert parsed.tags <= {"table", "caption", "tbody", "tr", "th", "td"}
    assert len(text) < 4_000
    return dict(zip(parsed.texts[1::2], parsed.texts[2::2], strict=True)) | {"title": parsed.texts[0]}


def test_a_hypergraph_is_a_table_of_its_counts(shell):
    facts = cells(shown_by(shell, TRIOS))
    assert facts["nodes"] == "5" and facts["memberships"] == "6" and facts["isolated nodes"] == "1"
    assert facts["largest hyperedge"] == "3" and facts["weights"] == "edge_weight"
    assert cells(shown_by(shell, Hypergraph.from_hyperedges([])))["nodes"] == "0"
    assert cells(shown_by(shell, TRIOS.to("meta")))["memberships"] == "6"


def test_names_from_files_are_escaped(shell):
    dataset = NodeDataset(
        name=FOREIGN,
        hypergraph=TRIOS,
        y=torch.tensor([0, 1, 1, -1, -1]),
        task="classification",
        class_names=(FOREIGN, "b" * 10_000),
        provenance=Provenance(FOREIGN, FOREIGN, notes=(FOREIGN,)),
    )
    text = shown_by(shell, dataset)
    assert "<script" not in text and "\x1b" not in text and "\u202e" not in text
    facts = cells(text)
    safe = "<script>alert('x')</script>\\x1b[31m\\u202e&"
    assert facts["title"] == facts["note"] == safe and facts["classes"].startswith(f"2: {safe}, bbb")
    assert facts["labels"] == "classification, 3 of 5 nodes"
    assert cells(shown_by(shell, NodeDataset(name="n", hypergraph=TRIOS)))["labels"] == "none"


def test_a_solution_says_how_the_solve_ended(shell):
    x = torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0]])
    solution = diffuse(TRIOS, x)
    facts = cells(shown_by(shell, solution))
    assert facts["outcome"] == "The tolerance was reached." and facts["steps"] == f"{solution.steps:,}"
    assert (facts["nodes"], facts["columns"]) == ("5", "1")


def test_a_run_is_a_table_of_its_scores_and_floors(shell, tmp_path):
    dataset = contextual_sbm(2, nodes_per_class=30, num_hyperedges=30)
    plan = make_plan(dataset, "mlp", splits=2, settings={"epochs": 2, "hidden": 4, "layers": 1})
    summary = train(dataset, plan, out=tmp_path / "run")
    facts = cells(shown_by(shell, summary))
    assert facts["title"] == f"mlp on {dataset.name}" and facts["accuracy"] == summary.headline
    assert facts["majority class"].endswith("%") and facts["folder"] == str(tmp_path / "run")


def test_figures_are_returned_and_shown(shell, tmp_path):
    figure = draw(NodeDataset(name="trios", hypergraph=TRIOS))
    assert isinstance(figure, Figure)
    assert shown_by(shell, figure, "image/png").startswith(b"\x89PNG")
    assert draw(NodeDataset(name="trios", hypergraph=TRIOS), tmp_path / "a.png") is not None
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_progress_bars_are_shown_in_a_notebook_only_and_removed(shell, monkeypatch):
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    assert not notebook.shows_bars()  # IPython in a terminal has no kernel
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr(files, "_BAR_APPEARS_AFTER", -1.0)
    monkeypatch.setattr(notebook, "_SECONDS_BETWEEN", -1.0)
    with capture_output() as captured:
        bar = files.DelayedBar(f"Reading {FOREIGN}", 8)
        bar.show(2)
        bar.close()
    contents = [output.data.get("text/html", "") for output in captured.outputs]
    assert any("value='2'" in content and "25 %" in content and "&lt;script&gt;" in content for content in contents)
    assert not any("<script" in content for content in contents) and contents[-1] == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    assert not notebook.shows_bars()
