"""The picture of a dataset: drawn for every kind of dataset, with the right numbers, and without global state."""

import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from matplotlib.image import imread

from edhnn import Hypergraph, NodeDataset, UsageError
from edhnn.plotting.dataset import draw, picture
from tests.strategies import hyperedge_lists

GENERATOR = torch.Generator().manual_seed(1)
HYPEREDGES = [[0, 1, 2], [1, 2, 3], [4, 5]]


def dataset(hyperedges=HYPEREDGES, num_nodes=7, **known):
    return NodeDataset(
        **{"name": "seven", "hypergraph": Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes), **known}
    )


def classes(labels, **known):
    return dataset(y=torch.tensor(labels), task="classification", **known)


def long_tail():
    """Make degrees up to 500 with isolated nodes, which give logarithmic bins."""
    hyperedges = [[0, number] for number in range(1, 501)]
    return dataset(hyperedges, 520, y=torch.arange(520) % 60, task="classification")


KINDS = {
    "classes": classes([0, 0, 1, 1, 2, 2, -1]),
    "no co-members": dataset([[0], [1]], 7, y=torch.zeros(7, dtype=torch.int64), task="classification"),
    "one class": classes([0] * 7, class_names=("only",)),
    "unlabelled classes": classes([-1] * 7),
    "many classes": long_tail(),
    "long names": classes(
        [0, 1, 2, 0, 1, 2, 0], class_names=tuple(f"a class called {n}" for n in ("left", "right", "up"))
    ),
    "several labels": dataset(y=torch.tensor([[1.0, 0.0]] * 7), task="multilabel"),
    "real labels": dataset(y=torch.randn(7, generator=GENERATOR), task="regression"),
    "real labels, some broken": dataset(y=torch.tensor([np.nan, np.inf, 1, 2, 3, 4, 5]), task="regression"),
    "real labels, all infinite": dataset(y=torch.full((7,), np.inf), task="regression"),
    "no labels": dataset(),
    "nothing": dataset([], 0),
    "no hyperedges": dataset([], 3),
    "only empty hyperedges": dataset([[], []], 2),
    "one of each": dataset([[0]], 1),
    "dollars and markup": classes([0, 1, 0, 1, 0, 1, 0], name="$x_{ $ [b]", class_names=("$a$", "_^{")),
    "another script": classes([0, 1, 0, 1, 0, 1, 0], name="超グラフ", class_names=("猫", "犬\n")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_without_a_warning(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(KINDS[kind], tmp_path / "out.png")
    pixels = imread(tmp_path / "out.png")
    assert pixels.shape[:2] == (1200, 1650)
    assert pixels.std() > 0.01  # not blank
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


@settings(max_examples=15)
@given(hyperedge_lists())
def test_every_hypergraph_can_be_drawn(drawn):
    num_nodes, hyperedges = drawn
    assert len(picture(dataset(hyperedges, num_nodes)).axes) >= 4


def test_the_bars_are_the_counts():
    sizes, degrees, balance, _ = picture(KINDS["classes"]).axes[:4]
    assert [bar.get_height() for bar in sizes.patches] == [0, 0, 1, 2]
    assert [bar.get_height() for bar in degrees.patches] == [1, 4, 2]
    assert [bar.get_height() for bar in balance.patches] == [2, 2, 2]
    assert balance.get_title(loc="right") == "1 unlabelled"


def test_all_nodes_of_a_long_tail_are_drawn():
    degrees = picture(long_tail()).axes[1]
    assert degrees.get_xscale() == "log"
    assert sum(bar.get_height() for bar in degrees.patches) == 501
    assert "19 of 0 not drawn" in degrees.get_title(loc="right")


def test_wide_ranges_without_a_tail_have_a_linear_axis_and_all_values():
    wide = [list(range(size)) for size in range(40, 100)]
    panel = picture(dataset(wide, 100)).axes[0]
    assert panel.get_xscale() == "linear"
    assert sum(bar.get_height() for bar in panel.patches) == 60


def test_the_heat_map_shows_the_class_of_a_co_member():
    panel = picture(classes([0, 0, 1, 1, 2, 2, -1])).axes[3]
    np.testing.assert_allclose(panel.images[0].get_array(), [[1 / 3, 2 / 3, 0], [2 / 3, 1 / 3, 0], [0, 0, 1]])


def test_components_are_drawn_without_classes():
    panel = picture(dataset()).axes[3]
    assert [bar.get_height() for bar in panel.patches] == [4, 2, 1]


def test_the_title_has_name_and_counts():
    (title,) = [text.get_text() for text in picture(dataset()).texts]
    assert title == "seven: 7 nodes, 3 hyperedges, 8 memberships"


def test_the_same_dataset_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        draw(KINDS["classes"], str(tmp_path / name))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_no_global_figure_is_made(tmp_path):
    draw(dataset(), tmp_path / "out.png")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_a_missing_folder_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="must exist"):
        draw(dataset(), tmp_path / "absent" / "out.png")
