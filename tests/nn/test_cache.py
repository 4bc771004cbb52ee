"""What is derived from a hypergraph is kept for as long as it lives, and for it alone."""

import gc
import weakref

import torch

from edhnn.nn.cache import cached_per_features, cached_per_hypergraph
from tests.models.dense import build, features, sample


def test_made_once_per_hypergraph_and_key():
    made, first, second = [], sample(), sample()

    def make():
        made.append(len(made))
        return made[-1]

    assert [cached_per_hypergraph(first, "a", make) for _ in range(3)] == [0, 0, 0]
    assert (cached_per_hypergraph(first, "b", make), cached_per_hypergraph(second, "a", make)) == (1, 2)


def test_features_changed_in_place_or_by_option_are_read_again():
    joined, x, made = sample(), features(), []

    def make(given):
        made.append(given.sum())
        return made[-1]

    for _ in range(2):
        cached_per_features(joined, x, "sum", 1, make)
    assert len(made) == 1
    x.mul_(2)
    assert cached_per_features(joined, x, "sum", 1, make) == x.sum()
    cached_per_features(joined, x, "sum", 2, make)
    cached_per_features(joined, x, "sum", 2, make, torch.ones(1))
    assert len(made) == 4


def test_inference_tensors_are_served_and_read_again_when_changed():
    joined, model = sample(), build("hypernd").eval()
    with torch.inference_mode():
        x = features() * 1
        first = model(x, joined)
        assert first.isfinite().all()
        x.mul_(2).add_(1)
        assert torch.equal(model(x, joined), model(x.clone(), joined))


def test_training_goes_on_after_inference_mode():
    joined, x = sample(), features()
    for name in ("ce-gcn", "hypergcn", "hgnn", "legcn"):
        model = build(name)
        with torch.inference_mode():
            model(x, joined)
        model.train()(x, joined).sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


def test_half_precision_is_no_other_key():
    assert build("hypergcn").bfloat16()(features().bfloat16(), sample()).dtype == torch.bfloat16


def test_nothing_outlives_its_hypergraph():
    joined, x = sample(), features()
    for name in ("ce-gcn", "hgnn", "hypergcn", "hypernd", "hypersage", "legcn"):
        build(name)(x, joined)
    gone = weakref.ref(joined)
    del joined
    gc.collect()
    assert gone() is None
