"""The kinds of cells: their numbers compared with known values."""

import re

import numpy as np
import pytest
import torch

from edhnn import load_dataset
from edhnn.data.splits import Split
from edhnn.datasets.diffusion_pairs import read_pairs
from edhnn.doctor.summary import facts
from edhnn.experiments.jobs import jobs_of
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.kinds.bounds import BOUNDS
from edhnn.experiments.kinds.diffusion_steps import MODELS, DiffusionLayer
from edhnn.experiments.spec import packaged_experiment, parse_experiment
from edhnn.hypergraph import Hypergraph
from edhnn.runs.plan import choose_splits
from edhnn.seeding import derive_seed
from edhnn.training.floors import class_means, l1_logistic

HEAD = 'title = "t"\npaper = "none"\nkind = "{kind}"\nsplits = 1\n'
CELL = '[[row]]\nlabel = "r"\nmodel = "{model}"\n[[column]]\nlabel = "c"\ndataset = "{dataset}"\n{more}'


def job(kind, model, dataset, more=""):
    text = HEAD.format(kind=kind) + CELL.format(model=model, dataset=dataset, more=more)
    return jobs_of([parse_experiment(text, "x", None)])[0]


def perform(one, folder):
    return KINDS[one.cell.settings["kind"]].perform(one.cell.settings, one.split, folder, lambda: False)


def test_class_means_give_the_bayes_accuracy_of_two_balanced_classes():
    dataset = load_dataset("csbm-4")
    everything = torch.arange(5000)
    result = class_means(dataset, Split(everything, everything, everything))["value"]
    assert result == pytest.approx(76.02, abs=3 * 100 * np.sqrt(0.76 * 0.24 / 5000))  # Phi(1 / sqrt 2)


def test_bounds_exist_for_data_with_a_known_generator():
    where = {
        name: [data for data in ("cora", "digits", "senate", "csbm-4") if one.applies(data)]
        for name, one in BOUNDS.items()
    }
    assert where == {
        "l1-logistic": ["cora", "digits", "senate", "csbm-4"],
        "linear-base": ["cora", "digits", "senate", "csbm-4"],
        "class-means": ["senate", "csbm-4"],
        "degree-and-class-means": [],  # csbm-fixed only
        "belief-propagation": ["csbm-4"],
        "belief-propagation-labels": ["csbm-4"],
    }


def test_the_l1_floor_chooses_a_strong_penalty():
    dataset = load_dataset("csbm-4")
    result = l1_logistic(dataset, choose_splits(dataset, 1)[0])
    assert 73 < result["value"] < 79
    assert result["strength"] < 1  # ninety-eight of a hundred columns are noise


def test_statistics_are_those_of_the_data(tmp_path):
    result = perform(job("statistics", "clique_homophily", "csbm-4"), tmp_path)
    assert result["value"] == facts(load_dataset("csbm-4"))["clique_homophily"]


def test_timing_measures_steps_and_inferences(tmp_path, monkeypatch):
    monkeypatch.setattr("edhnn.experiments.kinds.timing._SECONDS", 0.01)
    result = perform(job("timing", "mlp", "csbm-1"), tmp_path)
    assert 0 < result["inference"] < result["value"] < 5


@pytest.mark.parametrize("model", MODELS)
def test_a_diffusion_layer_treats_the_states_of_a_batch_independently(model):
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [0, 3, 4]], num_nodes=5)
    layer = DiffusionLayer(model, 4, 0).eval()
    h = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    together = layer(h, hypergraph)
    assert together.shape == h.shape
    torch.testing.assert_close(together[1:2], layer(h[1:2], hypergraph))
    assert not torch.equal(together[0], together[1])


def size_of(model, width):
    return sum(parameter.numel() for parameter in DiffusionLayer(model, width, 0).parameters())


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_whole_networks_of_learned_diffusion_have_similar_sizes(width):
    sizes = {model: size_of(model, width) for model in MODELS}
    whole = [sizes.pop(model) for model in MODELS if model not in ("ed-hnn", "invariant")]
    assert max(whole) < 1.25 * min(whole)
    assert max(sizes.values()) < 0.4 * min(whole)


@pytest.mark.parametrize("name", ["figure3", "figure5"])
def test_sizes_in_the_notes_are_those_of_the_networks(name):
    experiment = packaged_experiment(name)
    assert [row.model for row in experiment.row] == [
        "ed-hnn-algorithm-1", "invariant-algorithm-1", "ed-hnn", "invariant", "alldeepsets", "allsettransformer"
    ]  # fmt: skip
    printed = [int(text.replace(",", "")) for text in re.findall(r"\d+,\d{3}", experiment.notes[1])]
    models = ("ed-hnn-algorithm-1", "invariant-algorithm-1", "alldeepsets", "allsettransformer", "ed-hnn")
    assert printed == [size_of(model, 64) for model in models]


def test_the_floor_is_measured_on_the_test_pairs(tmp_path):
    more = "options = { width = 2 }\ntrain = { epochs = 1, count = 20 }"
    result = perform(job("diffusion", "invariant", "admm-tv", more), tmp_path / "job")
    x, y, _ = read_pairs(tmp_path / "pairs-admm-tv-20")
    order = torch.randperm(20, generator=torch.Generator().manual_seed(derive_seed(0, "pairs"))).numpy()
    assert result["mean_absolute_change"] == pytest.approx(float(abs(y - x)[order[18:]].mean()), rel=1e-6)
    assert result["mean_absolute_change"] != pytest.approx(float(abs(y - x).mean()), rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
def test_a_diffusion_job_learns(tmp_path):
    more = "options = { width = 16 }\ntrain = { epochs = 25, count = 200 }"
    result = perform(job("diffusion", "ed-hnn", "admm-tv", more), tmp_path / "job")
    assert result["value"] < 0.7 * result["mean_absolute_change"]  # better than no step
    assert (tmp_path / "pairs-admm-tv-200").is_dir()
