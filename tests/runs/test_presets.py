"""Presets: the numbers of parameters are those of the paper, and settings override the preset."""

import pytest
import torch

from edhnn import DataError, Hypergraph, NodeDataset, UsageError, load_dataset
from edhnn.configuration import configure
from edhnn.datasets.registry import catalog
from edhnn.models.registry import MODELS
from edhnn.runs.plan import Plan, make_plan, parse_settings
from edhnn.runs.presets import find_preset, recorded_presets
from edhnn.training.config import TrainConfig
from edhnn.training.loop import make_adam
from edhnn.training.objective import make_objective

PARAMETERS = {
    "paper": dict(
        zip(
            ["cora", "citeseer", "pubmed", "cora-ca", "dblp-ca", "congress", "senate", "walmart", "house"],
            [567_559, 1_148_422, 1_970_691, 263_751, 262_630, 209_838, 2_029_314, 2_031_627, 523_138],
            strict=True,
        )
    ),
    "official": {
        "cora": 435_207, "citeseer": 1_016_070, "pubmed": 2_226_691, "cora-ca": 213_575, "dblp-ca": 212_454,
        "senate": 2_029_314, "house": 490_242,
    },
}  # fmt: skip


def stand_in(name):
    """Return a small dataset with the name, width and number of classes of a catalogued one."""
    paper = catalog()[name].paper
    labels = torch.arange(paper.classes)
    hypergraph = Hypergraph.from_hyperedges([[0, 1]], num_nodes=paper.classes)
    x = torch.zeros(paper.classes, paper.features)
    return NodeDataset(name=name, hypergraph=hypergraph, x=x, y=labels, task="classification")


@pytest.mark.parametrize(("preset", "name"), [(preset, name) for preset in PARAMETERS for name in PARAMETERS[preset]])
def test_parameters_are_those_of_the_papers_and_the_released_models(preset, name):
    dataset = stand_in(name)
    assert make_plan(dataset, preset=preset).num_parameters(dataset) == PARAMETERS[preset][name]


def test_every_recorded_preset_makes_a_model():
    for preset, models in recorded_presets().items():
        for model, sections in models.items():
            for name in sections:
                if name != "common" and catalog()[name].paper is not None:
                    plan = make_plan(stand_in(name), model, preset=preset)
                    assert plan.num_parameters(stand_in(name)) > 0
                    assert plan.origin.startswith(f"preset {preset}: ")


def test_the_released_recipe_without_rho_is_called_invariant():
    assert find_preset(stand_in("cora"), name="official").model == "invariant"
    assert find_preset(stand_in("senate"), name="official").model == "ed-hnn"


def test_the_default_preset_is_the_papers_or_auto(tiny):
    assert find_preset(stand_in("cora"), name="paper").origin.startswith("preset paper")
    assert find_preset(load_dataset("csbm-4")).options["hidden"] == 256
    assert find_preset(stand_in("cora")).origin.startswith("preset auto")  # only its name is that of the catalogue
    preset = find_preset(tiny)
    assert preset.origin.startswith("preset auto")
    assert preset.options["hidden"] == 32
    with pytest.raises(UsageError, match="It has them for: cora, .*preset='auto'"):
        find_preset(tiny, name="paper")
    with pytest.raises(UsageError, match="official' has no sizes of 'ed-hnn' for 'walmart'"):
        find_preset(stand_in("walmart"), name="official")


def test_a_baseline_has_its_recorded_sizes_on_the_catalogue_and_auto_elsewhere(tiny):
    preset = find_preset(stand_in("cora"), "hgnn", "paper")
    assert (preset.options["hidden"], preset.origin) == (512, "preset paper: robustness study")
    assert find_preset(stand_in("senate"), "hgnn", "paper").options["hidden"] == 256
    sizes = find_preset(stand_in("cora"), "unigcnii", "paper")
    assert "learning_rate" in sizes.train
    assert not {"learning_rate", "weight_decay"} & set(sizes.options)
    assert find_preset(tiny, "hgnn").origin.startswith("preset auto")
    assert find_preset(tiny, "hgnn").options["hidden"] == 32
    assert find_preset(tiny, "unigat").options["hidden"] == 4  # of eight heads
    for heads, hidden in ((1, 32), (4, 8), (64, 1)):
        assert make_plan(tiny, "unigat", settings={"heads": heads}).options["hidden"] == hidden
    with pytest.raises(UsageError, match="It has them for: none"):
        find_preset(stand_in("cora"), "hgnn", "official")


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_planned_by_rule_and_as_recorded(model, tiny):
    assert make_plan(tiny, model).num_parameters(tiny) > 0
    for name in ("cora", "senate") if model not in ("auto", "belief-diffusion") else ():  # ours are not of a paper
        assert make_plan(stand_in(name), model, preset="paper").num_parameters(stand_in(name)) > 0


def test_settings_override_the_file_and_the_file_overrides_the_preset(tmp_path):
    (tmp_path / "run.toml").write_text(
        'preset = "paper"\nsplits = 3\n[options]\nhidden = 32\ndropout = 0\n[train]\nepochs = 7\nweight_decay = 1\n'
    )
    settings = parse_settings(["hidden=16", "schedule=cosine", "input-dropout=0"])
    plan = make_plan(stand_in("senate"), settings=settings, file=tmp_path / "run.toml")
    assert (plan.options["hidden"], plan.options["dropout"], plan.options["num_iterations"]) == (16, 0.0, 8)
    assert plan.options["input_dropout"] == 0.0
    assert plan.train == TrainConfig(epochs=7, weight_decay=1.0, schedule="cosine").for_model("ed-hnn")
    assert plan.num_splits == 3
    assert "given: " in plan.origin


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("hidden", "key=value"),
        ("hiden=3", "Did you mean 'hidden'"),
        ("hidden=wide", "'hidden' must be of type int. Got 'wide'"),
        ("schedule=cosinus", "Did you mean 'cosine'"),
        ("epochs=0", "'epochs' must lie in"),
        ("dropout=1.5", "dropout rate"),
    ],
)
def test_invalid_settings_raise(word, message, tiny, without_shape_checks):
    with pytest.raises(UsageError, match=message):
        plan = make_plan(tiny, settings=parse_settings([word]))
        plan.num_parameters(tiny)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("modle = 'mlp'", UsageError, "Did you mean 'model'"),
        ("[train]\nepoch = 3", UsageError, "Did you mean 'epochs'"),
        ("splits = 'ten'", UsageError, "must be of type int"),
        ("seed = -1", UsageError, "'seed' in '.*run.toml' must be 0 or more. Got -1"),
        ("splits = ", DataError, "must be TOML"),
    ],
)
def test_invalid_files_raise(text, error, message, tiny, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(error, match=message):
        make_plan(tiny, file=tmp_path / "run.toml")
    with pytest.raises(UsageError, match="File not found"):
        make_plan(tiny, file=tmp_path / "other.toml")


def test_a_plan_checks_its_values():
    with pytest.raises(UsageError, match="at least 1 split"):
        Plan(num_splits=0)
    with pytest.raises(UsageError, match="Did you mean 'hidden'"):
        Plan(options={"hiden": 3})
    with pytest.raises(UsageError, match="model must be one of"):
        Plan(model="transformer")


def test_models_trained_without_singletons_have_no_transforms(tiny):
    assert make_plan(tiny, "mlp").train.transforms == ()
    assert make_plan(tiny, "hgnn").train.transforms == ("add_singletons",)


@pytest.mark.parametrize("name", ["cora", "senate"])
def test_unigcnii_decays_its_layers_more_than_its_ends(name):
    preset = find_preset(stand_in(name), "unigcnii", "paper")
    model = Plan(model="unigcnii", options=preset.options).make_model(
        stand_in(name), make_objective(stand_in(name), torch.arange(2)), 0
    )
    optimiser = make_adam(model, configure(TrainConfig, preset.train))
    assert sorted({group["weight_decay"] for group in optimiser.param_groups}) == [5e-4, 0.01]
