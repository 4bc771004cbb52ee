"""Seeds of a diffusion: only text and integers are ids of nodes."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from edhnn import DataError, Hypergraph, Limits, NodeDataset
from edhnn.io.tables.reader import read_seeds


@pytest.mark.parametrize("nodes", [[[1], [0]], [True, False], [1.0, 0.0]])
def test_ids_of_other_types_match_no_node(tmp_path, nodes):
    pair = NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    path = tmp_path / "seeds.parquet"
    pa.parquet.write_table(pa.table({"node": nodes, "value": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match="row 1: Every seed must be a node of the hypergraph"):
        read_seeds(path, pair, Limits())
    pa.parquet.write_table(pa.table({"node": ["1", "0"], "value": [1.0, 2.0]}), path)
    assert read_seeds(path, pair, Limits()).tolist() == [[2.0], [1.0]]
