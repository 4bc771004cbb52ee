"""Weights of predictors: never far below the best, nothing for a predictor of noise; `auto` is saved as one model."""

from dataclasses import replace

import pytest
import torch

from edhnn import TrainConfig, fit, from_pretrained, make_model
from edhnn.data.fingerprints import node_hashes
from edhnn.training.blend import calibration_error, fit_blend
from edhnn.training.checkpoint import read_state, write_state
from edhnn.training.objective import Objective
from edhnn.training.pretrained import Pretrained

CLASSES = Objective(task="classification", num_outputs=3)
CONFIG = TrainConfig(epochs=4, learning_rate=0.01, label_inputs=0.8, base="linear")


def drawn(count, signal, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (count,), generator=generator)
    return [s * torch.eye(3)[y] + torch.randn(count, 3, generator=generator) for s in signal], y


@pytest.mark.parametrize("seed", range(5))
def test_a_blend_is_not_below_its_parts_by_more_than_noise(seed):
    outputs, y = drawn(4000, (1.0, 0.0, 2.0), seed)
    outputs[1] = 6 * outputs[1]  # sure and wrong
    valid, test = slice(0, 60), slice(60, None)
    blend = fit_blend([output[valid] for output in outputs], y[valid], CLASSES)
    assert sum(blend.weights) == pytest.approx(1) and min(blend.weights) >= 0
    answer = sum(factor * output for factor, output in zip(blend.coefficients, outputs, strict=True))
    accuracy = [CLASSES.metrics(output[test], y[test])["accuracy"] for output in (*outputs, answer)]
    assert accuracy[3] > max(accuracy[:3]) - 0.02
    assert blend.weights[2] > 0.4 and blend.weights[1] < 0.1


def test_a_network_that_adds_nothing_has_no_weight():
    (base, noise), y = drawn(3000, (1.5, 0.0), 0)
    blend = fit_blend([base, noise], y, CLASSES)
    assert blend.weights == (1.0, 0.0)
    assert blend.loss == pytest.approx(blend.losses[0])


def test_the_calibration_error_is_small_for_true_probabilities():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(20000, generator=generator)
    y = (torch.rand(20000, generator=generator) < p).long()
    error, bins = calibration_error(torch.stack([1 - p, p], dim=1), y)
    assert error < 0.02 and sum(row["nodes"] for row in bins) == 20000
    assert calibration_error(torch.tensor([[0.99, 0.01]] * 10), torch.ones(10, dtype=torch.int64))[0] > 0.9


@pytest.mark.parametrize("stop", [2, 6, 11])
def test_auto_resumes_in_every_part_and_is_saved_as_one_model(stop, tiny, split, tmp_path):
    def model():
        return make_model("auto", in_features=6, num_classes=2, hidden=8, classifier_hidden=8, beliefs_hidden=8)

    whole, taken = model(), {}

    def watch(record, snapshot):
        assert record.epoch == len(taken) + 1 and record.best_epoch <= record.epoch
        taken[record.epoch] = snapshot()

    result = fit(whole, tiny, split, CONFIG, watch=watch)
    assert result.epochs == 12 and len(result.parts["each"]) == 4
    write_state(taken[stop], tmp_path / "state.safetensors")
    again = model()
    resumed = fit(again, tiny, split, CONFIG, state=read_state(tmp_path / "state.safetensors", again))
    assert torch.equal(result.outputs, resumed.outputs)
    assert (result.best_epoch, result.valid, result.parts) == (resumed.best_epoch, resumed.valid, resumed.parts)
    knowledge = replace(result.knowledge, hashes=node_hashes(tiny)[split.train.numpy()])
    saved = Pretrained(name="auto", model=whole, objective=result.objective, config=CONFIG, knowledge=knowledge)
    folder = saved.save_pretrained(tmp_path / "model")
    answers = from_pretrained(folder).answers(replace(tiny, y=None, task=None, class_names=None))
    assert torch.equal(answers, result.outputs.softmax(dim=1))


def test_a_part_that_diverges_is_left_out(tiny, split):
    model = make_model("auto", in_features=6, num_classes=2, hidden=8, classifier_hidden=8, beliefs_hidden=8)
    result = fit(model, tiny, split, replace(CONFIG, learning_rate=1e30))
    assert result.outputs.isfinite().all() and result.epochs >= 8
    assert "ed-hnn" in result.parts["add_nothing"]
