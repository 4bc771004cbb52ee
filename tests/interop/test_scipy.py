import numpy as np
import scipy.sparse as sp
from hypothesis import given

from edhnn import Hypergraph
from tests.interop.cases import build, cases


@given(cases(features=(None,), labels=(None,)))
def test_hypergraphs_round_trip_through_an_incidence_matrix(case):
    hypergraph = build({**case, "edge_weight": False}).hypergraph  # a matrix cannot hold hyperedge weights
    matrix = hypergraph.to_scipy()
    assert matrix.shape == (hypergraph.num_nodes, hypergraph.num_edges)
    assert np.diff(matrix.indptr).tolist() == hypergraph.degree.tolist()
    assert Hypergraph.from_scipy(matrix, weighted=hypergraph.incidence_weight is not None).same_as(hypergraph)
    assert Hypergraph.from_scipy(sp.csc_matrix(matrix)).edge_size.tolist() == hypergraph.edge_size.tolist()


def test_a_stored_zero_is_a_membership():
    matrix = sp.coo_array(([0.0, 2.0], ([0, 1], [0, 0])), shape=(3, 2))
    hypergraph = Hypergraph.from_scipy(matrix, weighted=True)
    assert list(hypergraph.hyperedges()) == [[0, 1], []]
    assert hypergraph.incidence_weight.tolist() == [0.0, 2.0]
