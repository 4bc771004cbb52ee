"""Configurations: valid and invalid values of fields, and the error messages."""

from dataclasses import FrozenInstanceError, asdict, dataclass, make_dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edhnn.configuration import Configuration, Count, Fraction, Natural, Positive, configure, convert_values
from edhnn.errors import UsageError
from edhnn.models.registry import MODELS, make_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes(Configuration):
    layers: Count = 2
    extra: Natural = 0
    rate: Fraction = 0.5
    scale: Positive = 1.0
    shift: float = 0.0
    patience: Count | None = None
    norm: Literal["layer", "batch"] = "layer"
    tied: bool = True
    names: tuple[str, ...] = ()

    def check(self):
        """Raise for an invalid pair of values."""
        if self.layers == 7 and self.extra == 7:
            raise UsageError("'layers' and 'extra' must not both be 7.")


@pytest.mark.parametrize("make", [lambda values: Sizes(**values), lambda values: configure(Sizes, values)])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"layers": 0}, "'layers' must be at least 1. Got 0."),
        ({"layers": 2.0}, "'layers' must be of type int. Got 2.0."),
        ({"layers": True}, "'layers' must be of type int. Got True."),
        ({"layers": "2"}, "'layers' must be of type int. Got '2'."),
        ({"layers": float("nan")}, "'layers' must be a finite number. Got nan."),
        ({"extra": -1}, "'extra' must be at least 0. Got -1."),
        ({"rate": 2}, "'rate' must lie in 0..1. Got 2."),
        ({"scale": 0}, "'scale' must be more than 0. Got 0."),
        ({"shift": "0.5"}, "'shift' must be of type float. Got '0.5'."),
        ({"shift": float("-inf")}, "'shift' must be a finite number. Got -inf."),
        ({"shift": 10**400}, "'shift' must be a finite number. Got inf."),
        ({"patience": 0}, "'patience' must be at least 1. Got 0."),
        ({"patience": 1.5}, "'patience' must be of type int or None. Got 1.5."),
        ({"norm": "bach"}, "The norm must be one of layer, batch. Got 'bach' instead. Did you mean 'batch'?"),
        ({"norm": None}, "'norm' must be of type str. Got None."),
        ({"tied": 1}, "'tied' must be of type bool. Got 1."),
        ({"names": "a"}, "'names' must be of type list. Got 'a'."),
        ({"names": [1]}, r"'names' must be of type list. Got [1]."),
        ({"layers": 7, "extra": 7}, "'layers' and 'extra' must not both be 7."),
    ],
)
def test_invalid_values_raise_in_every_way_to_make_a_configuration(make, values, words):
    with pytest.raises(UsageError) as caught:
        make(values)
    assert str(caught.value) == words


def test_values_are_converted_to_the_type_of_the_field():
    made = Sizes(layers=np.int64(3), rate=1, shift=np.float32(0.25), names=["a", "b"], patience=np.int32(4))
    assert asdict(made) == {
        **asdict(Sizes()), "layers": 3, "rate": 1.0, "shift": 0.25, "names": ("a", "b"), "patience": 4
    }  # fmt: skip
    assert [type(value) for value in (made.layers, made.rate, made.shift, made.patience)] == [int, float, float, int]
    assert convert_values(Sizes, {"rate": 0}) == {"rate": 0.0}
    with pytest.raises(FrozenInstanceError):
        made.layers = 4


def test_an_unknown_field_raises_with_a_suggestion():
    with pytest.raises(UsageError, match="The setting must be one of layers, .* Did you mean 'layers'"):
        configure(Sizes, {"layer": 3}, what="setting")


def test_any_dataclass_can_be_configured():
    other = make_dataclass("Other", [("width", int, 3)], frozen=True)
    assert configure(other, {"width": 5}) == other(5)
    with pytest.raises(UsageError, match="'width' must be of type int"):
        configure(other, {"width": "wide"})


@given(st.dictionaries(st.sampled_from(["layers", "rate", "norm", "patience"]), st.none() | st.integers(-2, 3)))
def test_configure_and_the_constructor_accept_the_same_values(values):
    def outcome(make):
        try:
            return make()
        except UsageError as error:
            return type(error)  # the first of two invalid values may differ

    assert outcome(lambda: configure(Sizes, values)) == outcome(lambda: Sizes(**values))


@pytest.mark.parametrize("name", MODELS)
def test_configurations_of_models_survive_a_round_trip(name):
    config = make_config(name)
    assert make_config(name, **asdict(config)) == config
    assert convert_values(type(config), asdict(config)) == asdict(config)
