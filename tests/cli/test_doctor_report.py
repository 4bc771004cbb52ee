"""The doctor's report as text."""

import io

import pytest
import torch
from rich.console import Console

from edhnn import Hypergraph, Ids, NodeDataset
from edhnn.cli.data import duration_in_words, print_report
from edhnn.doctor.cost import forecast
from edhnn.doctor.diagnose import examine


def report(dataset, *, colours=False):
    output = io.StringIO()
    console = Console(
        file=output, width=100, highlight=False, force_terminal=colours, color_system="standard" if colours else None
    )
    print_report(console, examine(dataset), forecast(dataset))
    return output.getvalue()


def leaky(**known):
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2, 3], [3, 4], []], num_nodes=8)
    y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    return NodeDataset(**{"name": "leaky", "hypergraph": hypergraph, "y": y, "task": "classification", **known})


def test_it_shows_facts_findings_remedies_and_cost():
    text = report(leaky(edge_ids=Ids(["club", "pair", "none"])))
    for expected in (
        "leaky",
        "nodes per class",
        "4, 4",
        "clique homophily (the paper's)",
        "Findings: 1 error, 2 warnings, 1 note",
        "error label-leak: ",
        "First: 'club'",
        "Remove such hyperedges before training",
        "Training ED-HNN (width 256, 2 iterations, at most 500 epochs, 10 splits)",
        "memory of the whole run",
        "steps on the whole dataset",
    ):
        assert expected in text


def test_errors_come_before_warnings_and_in_red():
    text = report(leaky(), colours=True)
    assert text.index("label-leak") < text.index("isolated-nodes") < text.index("no-features")
    assert "\x1b[1;31merror" in text


def test_the_absence_of_findings_is_reported():
    ring = Hypergraph.from_hyperedges([[v, (v + 1) % 8] for v in range(8)])
    y = torch.arange(8) % 2
    x = torch.arange(1.0, 9.0)[:, None]
    assert "Findings: none" in report(NodeDataset(name="ring", hypergraph=ring, x=x, y=y, task="classification"))


def test_names_are_not_parsed_as_markup():
    text = report(leaky(name="[/red] odd", edge_ids=Ids(["[bold]club", "[/x]", "c"]), class_names=("[u]a", "b")))
    assert "[/red] odd" in text and "[bold]club" in text and "[u]a" in text


@pytest.mark.parametrize("num_nodes, hyperedges", [(0, []), (2, []), (1, [[0]])])
def test_degenerate_datasets_are_reported(num_nodes, hyperedges):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    assert "Findings: " in report(NodeDataset(name="odd", hypergraph=hypergraph))


@pytest.mark.parametrize("memory, words", [(None, None), (10**15, "It fits"), (1, "It does not fit")])
def test_whether_it_fits_is_reported_if_known(memory, words, monkeypatch):
    monkeypatch.setattr("edhnn.doctor.cost.total_memory", lambda: memory)
    text = report(leaky())
    assert ("this machine's memory" in text) == (words is not None)
    assert words is None or words in text


@pytest.mark.parametrize(
    "seconds, words",
    [(0.0012, "1.2 ms"), (0.25, "250 ms"), (3.42, "3.4 s"), (61.0, "1.0 min"), (7300.0, "2.0 h"), (2e5, "2.3 days")],
)
def test_durations_in_words(seconds, words):
    assert duration_in_words(seconds) == words
