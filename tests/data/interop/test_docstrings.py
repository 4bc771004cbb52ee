import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["frames", "hypernetx", "networkx", "pyg", "to_frames", "xgi"])
def test_examples_run(module):
    result = doctest.testmod(import_module(f"edhnn.data.interop.{module}"))
    assert result.attempted
    assert not result.failed
