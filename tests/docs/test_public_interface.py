"""The public names of edhnn and its sub-packages are importable and documented, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import edhnn

MODULES = sorted(found.name for found in pkgutil.walk_packages(edhnn.__path__, "edhnn.") if "interop" not in found.name)
ROOMS = sorted(
    f"edhnn.{stub.parent.name}" for stub in Path(edhnn.__file__).parent.glob("*/__init__.pyi")
)  # each has a list of public names


@pytest.mark.parametrize("room", ["edhnn", *ROOMS])
def test_every_public_name_is_importable_and_documented(room):
    package = importlib.import_module(room)
    assert len(set(package.__all__)) == len(package.__all__) > 0
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        value = getattr(package, name)
        assert not inspect.ismodule(value), name  # a module of the same name would hide it
        if inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), name
            assert value.__module__.startswith(f"{room}."), name


def test_a_star_import_does_not_hide_modules_of_the_standard_library():
    names = {}
    exec("from edhnn import *", names)
    assert {"EDHNNClassifier", "EDHNNRegressor", "HypergraphLabelSpreading", "NodeSamples"} <= set(names)
    assert not {"io", "data", "typing", "errors"} & set(names)
    assert {room.removeprefix("edhnn.") for room in ROOMS} <= set(dir(edhnn))


def test_sub_packages_export_the_names_of_the_top_level():
    for name in edhnn.__all__:
        value = getattr(edhnn, name)
        _, room, *rest = value.__module__.split(".")
        if rest:
            assert name in importlib.import_module(f"edhnn.{room}").__all__, f"{name} in edhnn.{room}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="EDHNM"):
        edhnn.EDHNM  # noqa: B018


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_some_examples_exist():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(finder.find(importlib.import_module(module))) for module in MODULES) >= 8
