"""Pairs of one diffusion step: equal to a solver's step, drawn from a seed, written without partial files."""

import json

import numpy as np
import pytest
import torch

from edhnn import (
    ADMM,
    CliqueExpansion,
    DataError,
    DiffusionProblem,
    GradientDescent,
    Hypergraph,
    LovaszCardinality,
    TotalVariation,
    UsageError,
    load_dataset,
)
from edhnn.datasets import diffusion_pairs
from edhnn.datasets.diffusion_pairs import admm_pairs, gradient_pairs, read_pairs, uniform_hypergraph

SMALL = Hypergraph.from_hyperedges([[0, 1, 2, 3], [2, 3, 4], [4, 5], [5], []], num_nodes=7)
STEPS = [
    ("gradient", "ce", {"clique": "laplacian"}, CliqueExpansion(normalisation="laplacian"), 0.5),
    ("gradient", "ce", {"clique": "literal"}, CliqueExpansion(), 0.5),
    ("gradient", "tv", {}, TotalVariation(power=2), 0.02),
    ("gradient", "lec", {}, LovaszCardinality(power=2), 0.1),
    ("admm", "tv", {}, TotalVariation(power=2), 0.5),
    ("admm", "lec", {}, LovaszCardinality(power=2), 0.5),
]
WRITERS = {"gradient": gradient_pairs, "admm": admm_pairs}


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("kind", "name", "options", "potential", "eta"), STEPS)
def test_an_output_is_one_solver_step_from_its_input(tmp_path, kind, name, options, potential, eta):
    about = WRITERS[kind](SMALL, name, tmp_path / "pairs", count=9, seed=3, **options)
    x, y, read_about = read_pairs(tmp_path / "pairs")
    assert read_about == about
    assert x.shape == y.shape == (9, 7) and x.dtype == y.dtype == np.float32
    h = torch.from_numpy(np.array(x.T, dtype=np.float64))
    problem = DiffusionProblem(hypergraph=SMALL, x=h, hyperedge_potential=potential)
    solver = GradientDescent(rule="fixed", step_size=eta) if kind == "gradient" else ADMM(step_size=eta)
    expected = solver.step(problem, solver.init(problem)).h.numpy().T
    np.testing.assert_array_equal(y, expected.astype(np.float32))
    assert not np.array_equal(x, y)
    np.testing.assert_array_equal(y[:, 6], x[:, 6])  # isolated
    assert about["variance_ratio"] == pytest.approx(expected.var() / h.numpy().var())
    assert (about["step_size"], about["power"], about["seed"], about["count"]) == (eta, 2, 3, 9)
    assert about["normalisation"] == (options.get("clique") if name == "ce" else None)
    assert ("warning" in about) == (options.get("clique") == "literal")


def test_the_admm_step_equals_the_closed_form(tmp_path):
    hypergraph = uniform_hypergraph(30, 40, 5, seed=1)
    admm_pairs(hypergraph, "tv", tmp_path / "pairs", count=2)
    x, y, _ = read_pairs(tmp_path / "pairs")
    h = torch.from_numpy(np.array(x.T, dtype=np.float64))
    p_ev = TotalVariation(power=2).prox(h[hypergraph.node_index], hypergraph, step_size=0.5)
    total = torch.zeros_like(h).index_add(0, hypergraph.node_index, p_ev)
    np.testing.assert_allclose(y.T, (total + h) / (hypergraph.degree[:, None] + 1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kind", "name", "options", "potential", "eta"), STEPS)
def test_a_seed_gives_the_same_bytes_for_any_block_size(tmp_path, monkeypatch, kind, name, options, potential, eta):
    WRITERS[kind](SMALL, name, tmp_path / "one", count=7, seed=5, **options)
    monkeypatch.setattr(diffusion_pairs, "VALUES_PER_BLOCK", 25)
    WRITERS[kind](SMALL, name, tmp_path / "two", count=7, seed=5, **options)
    WRITERS[kind](SMALL, name, tmp_path / "three", count=7, seed=6, **options)
    one, two, three = (files(tmp_path / folder) for folder in ("one", "two", "three"))
    assert set(one) == {"x.npy", "y.npy", "about.json"}
    assert (one["x.npy"], one["y.npy"]) == (two["x.npy"], two["y.npy"])
    ratio = json.loads(one["about.json"])["variance_ratio"]
    assert json.loads(two["about.json"])["variance_ratio"] == pytest.approx(ratio)
    assert one["x.npy"] != three["x.npy"]
    WRITERS[kind](SMALL, name, tmp_path / "two", count=7, seed=6, **options, overwrite=True)
    assert files(tmp_path / "two") == three


def test_inputs_do_not_depend_on_the_potential_and_have_the_paper_s_distribution(tmp_path):
    hypergraph = Hypergraph.from_hyperedges([[0, 1]], num_nodes=2000)
    gradient_pairs(hypergraph, "tv", tmp_path / "tv", count=300)
    gradient_pairs(hypergraph, "ce", tmp_path / "ce", count=300)
    x = read_pairs(tmp_path / "tv")[0]
    np.testing.assert_array_equal(x, read_pairs(tmp_path / "ce")[0])
    deviation = x.std(axis=1)
    assert 0.95 < deviation.min() < 1.5 and 9.5 < deviation.max() < 10.5
    assert deviation.mean() == pytest.approx(5.5, rel=0.06)
    random = np.random.RandomState(0)
    np.testing.assert_array_equal(x[0], random.normal(0, random.uniform(1, 10), 2000).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "clique", "ratio"),
    [("tv", "laplacian", 0.72), ("lec", "laplacian", 0.58), ("ce", "laplacian", 0.28), ("ce", "literal", 8.4e5)],
)
def test_variance_ratios_on_senate(real_data, tmp_path, name, clique, ratio):
    senate = load_dataset("senate", data_dir=real_data).hypergraph
    about = gradient_pairs(senate, name, tmp_path / "pairs", count=200, clique=clique)
    assert about["variance_ratio"] == pytest.approx(ratio, rel=0.1)


def test_the_checksum_and_counts_of_the_hyperedges_are_recorded(tmp_path):
    one, other = (
        gradient_pairs(uniform_hypergraph(9, 5, 3, seed=seed), "tv", tmp_path / str(seed), count=1) for seed in (0, 1)
    )
    assert one["hyperedges_sha256"] != other["hyperedges_sha256"]
    assert (one["num_nodes"], one["num_edges"], one["num_incidences"]) == (9, 5, 15)


def test_uniform_hypergraphs_have_the_requested_sizes_and_seed():
    drawn = uniform_hypergraph(seed=4)
    assert (drawn.num_nodes, drawn.num_edges) == (1000, 1000)
    assert set(drawn.edge_size.tolist()) == {20}
    assert drawn.same_as(uniform_hypergraph(1000, 1000, 20, seed=4))
    assert not drawn.same_as(uniform_hypergraph(seed=5))
    assert 10 < drawn.degree.float().std() ** 2 < 30  # 1000 draws with probability 1/50: variance 19.6
    with pytest.raises(UsageError, match=r"must lie in 0..3, the number of nodes. Got 4"):
        uniform_hypergraph(3, 1, 4)


def test_a_failure_leaves_no_file_and_changes_none(tmp_path, monkeypatch):
    weighted = Hypergraph(
        SMALL.node_index,
        SMALL.edge_index,
        SMALL.num_nodes,
        SMALL.num_edges,
        incidence_weight=torch.ones(SMALL.num_incidences),
    )
    with pytest.raises(DataError, match="do not support incidence weights"):
        gradient_pairs(weighted, "tv", tmp_path / "pairs")
    assert not list(tmp_path.iterdir())
    gradient_pairs(SMALL, "tv", tmp_path / "pairs", count=2)
    before = files(tmp_path / "pairs")
    with pytest.raises(UsageError, match="exists already"):
        gradient_pairs(SMALL, "lec", tmp_path / "pairs", count=2)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(diffusion_pairs, "content_digests", interrupted)
    with pytest.raises(KeyboardInterrupt):
        admm_pairs(SMALL, "lec", tmp_path / "pairs", count=2, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]
    assert files(tmp_path / "pairs") == before


def test_a_folder_without_pairs_is_not_replaced(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    (folder / "thesis.txt").write_text("three years")
    for make in (gradient_pairs, admm_pairs):
        with pytest.raises(UsageError, match="pairs' is not a pairs folder, so it is not replaced"):
            make(SMALL, "tv", folder, count=2, overwrite=True)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    (folder / "thesis.txt").unlink()
    gradient_pairs(SMALL, "tv", folder, count=2, overwrite=True)
    gradient_pairs(SMALL, "lec", folder, count=3, overwrite=True)
    assert read_pairs(folder)[2]["count"] == 3


@pytest.mark.usefixtures("without_shape_checks")
def test_invalid_arguments_raise_an_error(tmp_path):
    with pytest.raises(UsageError, match="potential must be one of ce, tv, lec. Got 'tvv' instead. Did you mean 'tv'"):
        gradient_pairs(SMALL, "tvv", tmp_path / "pairs")
    with pytest.raises(UsageError, match="clique expansion must be one of laplacian, literal"):
        gradient_pairs(SMALL, "ce", tmp_path / "pairs", clique="degree")
    with pytest.raises(UsageError, match="potential must be one of tv, lec. Got 'ce'"):
        admm_pairs(SMALL, "ce", tmp_path / "pairs")
    with pytest.raises(UsageError, match="at least one pair and one node. Got 0 pairs and 7 nodes"):
        admm_pairs(SMALL, "tv", tmp_path / "pairs", count=0)
    assert not list(tmp_path.iterdir())


def test_damaged_folders_raise_an_error(tmp_path):
    folder = tmp_path / "pairs"
    with pytest.raises(UsageError, match="File not found: '.*about.json'"):
        read_pairs(folder)
    gradient_pairs(SMALL, "tv", folder, count=3)
    x, y, about = read_pairs(folder)
    assert isinstance(x, np.memmap) and not y.flags.writeable
    y_bytes = (folder / "y.npy").read_bytes()
    (folder / "y.npy").write_bytes(y_bytes[:-8])
    with pytest.raises(DataError, match="y.npy: The file must be a complete npy array"):
        read_pairs(folder)
    (folder / "y.npy").write_bytes(b"")
    with pytest.raises(DataError, match="y.npy: The file must be a complete npy array"):
        read_pairs(folder)
    np.savez(folder / "y.npz", y=np.zeros((3, 7)))
    (folder / "y.npz").rename(folder / "y.npy")
    with pytest.raises(DataError, match="y.npy: The file must be a complete npy array"):
        read_pairs(folder)
    (folder / "y.npy").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match="y.npy: The file must be a complete npy array"):
        read_pairs(folder)
    about_bytes = (folder / "about.json").read_bytes()
    (folder / "about.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError, match="about.json: The file must be a JSON object"):
        read_pairs(folder)
    (folder / "about.json").write_bytes(about_bytes)
    (folder / "y.npy").unlink()
    with pytest.raises(UsageError, match="File not found: '.*y.npy'"):
        read_pairs(folder)
    (folder / "y.npy").write_bytes(y_bytes)
    (folder / "about.json").write_text(json.dumps({**about, "count": 4}))
    with pytest.raises(DataError, match=r"x.npy: The array must be float32 of shape \[4, 7\].*Got float32 of shape"):
        read_pairs(folder)
    (folder / "about.json").write_text("[]")
    with pytest.raises(DataError, match="about.json: The file must be a JSON object"):
        read_pairs(folder)
