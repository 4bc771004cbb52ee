import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["frames", "hypernetx", "networkx", "pyg", "xgi"])
def test_examples_run(module):
    result = doctest.testmod(import_module(f"edhnn.interop.{module}"))
    assert result.attempted
    assert not result.failed
