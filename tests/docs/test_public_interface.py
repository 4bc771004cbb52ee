"""What `import edhnn` offers: all of it importable, documented, and its examples true."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import edhnn

PUBLIC = sorted(name for name, value in vars(edhnn).items() if not name.startswith("_") and not inspect.ismodule(value))
MODULES = sorted(found.name for found in pkgutil.walk_packages(edhnn.__path__, "edhnn.") if "interop" not in found.name)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(edhnn, name))


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_some_examples_exist():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(finder.find(importlib.import_module(module))) for module in MODULES) >= 8
