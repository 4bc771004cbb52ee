import sys
import warnings

import pytest

from edhnn import Hypergraph, MissingDependencyError, NodeDataset, interop
from edhnn.interop.records import import_library

DATASET = NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))


@pytest.mark.parametrize(
    ("library", "function"),
    [
        ("torch_geometric", "to_pyg"),
        ("torch_geometric", "from_pyg"),
        ("xgi", "to_xgi"),
        ("xgi", "from_xgi"),
        ("hypernetx", "to_hypernetx"),
        ("hypernetx", "from_hypernetx"),
        ("networkx", "to_networkx"),
        ("networkx", "from_networkx"),
        ("pandas", "to_pandas"),
        ("polars", "to_polars"),
    ],
)
def test_a_missing_library_raises_with_its_name_and_a_remedy(library, function, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=rf"{function} needs '{library}'.* pip install 'edhnn\[bridges\]'"):
        getattr(interop, function)(DATASET)


def test_a_broken_library_raises_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import a_missing_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"a_missing_module"):
        import_library("broken_library", "a test")


def test_the_warning_filters_of_the_process_do_not_change(tmp_path, monkeypatch):
    (tmp_path / "meddling_library.py").write_text("import warnings\nwarnings.simplefilter('ignore')\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(warnings.filters)
    import_library("meddling_library", "a test")
    assert list(warnings.filters) == before
