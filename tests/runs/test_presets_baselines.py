"""The recorded sizes of the baselines: every key is an option, every section has an origin."""

from dataclasses import fields

import pytest

from edhnn.datasets.registry import catalog
from edhnn.models.registry import MODELS, make_model
from edhnn.runs.presets import baseline_presets

TABLE = baseline_presets()
TRAINING = {"learning_rate", "weight_decay"}
OURS = {"ed-hnn", "ed-hnn-ii", "invariant", "mean-deg", "jump-link", "belief-diffusion", "auto"}


def test_every_baseline_has_a_default():
    assert set(TABLE) == set(MODELS) - OURS
    assert all("default" in sections for sections in TABLE.values())


@pytest.mark.parametrize(("model", "dataset"), [(model, dataset) for model in TABLE for dataset in TABLE[model]])
def test_every_section_builds_its_model_and_has_an_origin(model, dataset):
    assert dataset == "default" or dataset in catalog()
    section = TABLE[model][dataset]
    assert section["origin"]
    merged = TABLE[model]["default"] | section
    options = {key: value for key, value in merged.items() if key not in TRAINING | {"origin"}}
    assert set(options) <= {field.name for field in fields(MODELS[model].config)}
    make_model(model, in_features=4, num_classes=2, **options)
