"""Numbers of parameters: formulas, and the values of the released models."""

import pytest

from edhnn.models.registry import make_model

SIZES = {  # features and classes
    "cora": (1433, 7),
    "citeseer": (3703, 6),
    "pubmed": (500, 3),
    "cora-ca": (1433, 7),
    "dblp-ca": (1425, 6),
    "congress": (100, 2),
    "senate": (100, 2),
    "walmart": (100, 11),
    "house": (100, 2),
}
F, C = 1433, 7


def count(name: str, dataset: str = "cora", **options) -> int:
    in_features, classes = SIZES[dataset]
    return make_model(name, in_features=in_features, num_classes=classes, **options).num_parameters()


def perceptron(wide: int, hidden: int, out: int, layers: int, *, norm: bool = True, input_norm: bool = True) -> int:
    """Return the number of parameters of a perceptron."""
    total = 2 * wide if norm and input_norm else 0
    if layers == 1:
        return total + wide * out + out
    total += wide * hidden + hidden + (layers - 2) * (hidden**2 + hidden) + hidden * out + out
    return total + (2 * hidden * (layers - 1) if norm else 0)


PAPER = {  # phi, rho, update, classifier layers; c, q
    "cora": (0, 1, 1, 1, 256, 256),
    "citeseer": (0, 1, 1, 1, 256, 256),
    "pubmed": (2, 2, 1, 2, 512, 256),
    "cora-ca": (1, 1, 1, 2, 128, 96),
    "dblp-ca": (1, 1, 1, 2, 128, 96),
    "congress": (2, 2, 2, 2, 156, 128),
    "senate": (2, 2, 2, 2, 512, 256),
    "walmart": (2, 2, 2, 2, 512, 256),
    "house": (2, 2, 2, 2, 256, 128),
}
README = {
    "cora": (0, 0, 1, 1, 256, 256),
    "citeseer": (0, 0, 1, 1, 256, 256),
    "pubmed": (2, 2, 2, 2, 512, 256),
    "cora-ca": (0, 0, 1, 2, 128, 96),
    "dblp-ca": (0, 0, 1, 2, 128, 96),
    "senate": (2, 2, 2, 2, 512, 256),
    "house": (2, 2, 2, 1, 256, 128),
}
PAPER_II = {
    "cora": (1, 1, 0, 1, 128, 96),
    "citeseer": (1, 1, 1, 1, 128, 96),
    "pubmed": (2, 2, 1, 2, 512, 256),
    "cora-ca": (1, 1, 1, 2, 128, 96),
    "dblp-ca": (1, 1, 1, 2, 128, 96),
    "congress": (2, 2, 1, 2, 156, 128),
    "senate": (2, 2, 1, 2, 512, 256),
    "walmart": (2, 2, 1, 2, 512, 256),
    "house": (2, 2, 1, 2, 256, 128),
}


def sized(layers: tuple[int, ...]) -> dict[str, int]:
    names = ("phi_layers", "rho_layers", "update_layers", "classifier_layers", "hidden", "classifier_hidden")
    return dict(zip(names, layers, strict=True))


@pytest.mark.parametrize(
    ("dataset", "expected"),
    list(zip(PAPER, (567559, 1148422, 1970691, 263751, 262630, 209838, 2029314, 2031627, 523138), strict=True)),
)
def test_ed_hnn_with_the_sizes_of_the_paper(dataset, expected):
    assert count("ed-hnn", dataset, **sized(PAPER[dataset])) == expected


@pytest.mark.parametrize(
    ("dataset", "expected"), list(zip(README, (435207, 1016070, 2226691, 213575, 212454, 2029314, 490242), strict=True))
)
def test_ed_hnn_with_the_sizes_of_the_readme(dataset, expected):
    options = sized(README[dataset]) | {"norm": "none" if dataset == "pubmed" else "layer"}
    name = "ed-hnn" if options["rho_layers"] else "invariant"  # a rho of 0 layers does not depend on the node
    assert count(name, dataset, **options) == expected


@pytest.mark.parametrize(
    ("dataset", "expected"),
    list(zip(PAPER, (699913, 1280776, 2497541, 297161, 296040, 259292, 2556164, 2558477, 655492), strict=True)),
)
def test_ed_hnn_with_the_printed_update(dataset, expected):
    assert count("ed-hnn", dataset, update="concat", degree="log", **sized(PAPER[dataset])) == expected


@pytest.mark.parametrize(
    ("dataset", "expected"),
    list(zip(PAPER_II, (251399, 558598, 2234371, 280519, 279398, 209838, 2029314, 2031627, 523138), strict=True)),
)
def test_ed_hnn_ii(dataset, expected):
    for form in ("main-text", "appendix"):
        assert count("ed-hnn-ii", dataset, form=form, **sized(PAPER_II[dataset])) == expected


def test_the_released_variants():
    assert count("mean-deg", hidden=64, classifier_hidden=64) == 125_575
    assert count("jump-link", hidden=64, classifier_hidden=64) == 104_839


def test_the_invariant_model_has_half_of_the_first_layer_of_rho():
    difference = perceptron(128, 64, 64, 2) - perceptron(64, 64, 64, 2)
    assert count("ed-hnn") - count("invariant") == difference


@pytest.mark.parametrize("hidden", [64, 512])
def test_plain_convolutions(hidden):
    for layers in (2, 3):
        expected = F * hidden + hidden + (layers - 2) * (hidden**2 + hidden) + hidden * C + C
        for name in ("ce-gcn", "hgnn", "hcha", "legcn"):
            assert count(name, hidden=hidden, layers=layers) == expected


def test_logistic_regression():
    assert count("mlp") == F * C + C


@pytest.mark.parametrize(("heads", "output_heads"), [(1, 1), (8, 1), (4, 2)])
def test_ce_gat(heads, output_heads):
    wide = 64 * heads
    expected = F * wide + 3 * wide + wide * C * output_heads + 2 * C * output_heads + C
    assert count("ce-gat", hidden=64, heads=heads, output_heads=output_heads) == expected


def test_hnhn():
    c = 128
    square = c * c + c
    assert count("hnhn", hidden=c) == F * c + c + c * C + C
    for layers in (2, 4):
        expected = (F * c + c + square) + (layers - 2) * 2 * square + (square + c * C + C)
        assert count("hnhn", hidden=c, layers=layers) == expected


def test_hypergcn():
    assert count("hypergcn") == F * C + C
    assert count("hypergcn", layers=2) == F * 16 + 16 + 16 * C + C
    assert count("hypergcn", layers=3) == F * 32 + 32 + 32 * 16 + 16 + 16 * C + C
    features, classes = SIZES["citeseer"]
    assert count("hypergcn", "citeseer", layers=2, exponent=4) == features * 64 + 64 + 64 * classes + classes


def test_unigcnii():
    for layers, hidden, heads in ((1, 64, 1), (4, 64, 8)):
        w = hidden * heads
        expected = F * w + w + layers * w * w + w * C + C
        assert count("unigcnii", layers=layers, hidden=hidden, heads=heads) == expected


def test_the_other_unignn_models():
    plain = F * 64 + 64 * C
    assert count("unigcn") == count("unisage") == plain
    assert count("unigin") == plain + 2
    assert count("unigat", scores="pair") == plain + 2 * (8 * 8 + C)
    assert count("unigat") == plain + (8 * 8 + C)  # without the vector that the released code does not use


def test_hypernd():
    assert count("hypernd", classifier_hidden=64) == 92_359


def test_alldeepsets():
    assert count("alldeepsets", hidden=256) == 835_897  # 836,921 printed: AllSet's unused norms are 4 x 256
    c, layers = 64, 2
    expected = (
        perceptron(F, c, c, 2) + (4 * layers - 1) * perceptron(c, c, c, 2) + perceptron(c, 64, C, 1, input_norm=False)
    )
    assert count("alldeepsets", hidden=c, layers=layers) == expected


@pytest.mark.parametrize(
    ("dataset", "hidden", "heads", "printed"),
    [
        ("cora", 256, 4, 1_134_343),
        ("citeseer", 512, 8, 5_379_078),
        ("pubmed", 256, 8, 655_619),
        ("cora-ca", 128, 8, 468_871),
        ("dblp-ca", 512, 8, 3_046_406),
        ("walmart", 256, 8, 452_875),
        ("house", 512, 8, 1_687_554),
    ],
)
def test_allsettransformer(dataset, hidden, heads, printed):
    unused = 4 * hidden  # the unused batch norms of the released code
    assert count("allsettransformer", dataset, hidden=hidden, heads=heads) == printed - unused


def test_hypersage():
    assert count("hypersage") == 23_063
