"""Links: both orders of a hypergraph or a sparse matrix, checked once and kept while the hypergraph lives."""

import gc
import weakref

import pytest
import torch
from hypothesis import given

from edhnn import DataError, Hypergraph
from edhnn.kernels import Links, edge_links, node_links, sparse_links
from tests.kernels.network_references import list_links
from tests.strategies import hyperedge_lists


@given(hyperedge_lists())
def test_both_orders_hold_the_incidences(drawn):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    pairs = list(zip(hypergraph.node_index.tolist(), hypergraph.edge_index.tolist(), strict=True))
    wanted = {(v, e, number) for number, (v, e) in enumerate(pairs)}
    links = node_links(hypergraph)
    assert set(list_links(links)) == wanted
    assert {(v, e, number) for e, v, number in list_links(edge_links(hypergraph))} == wanted
    assert (links.num_rows, links.num_columns, links.num_links) == (num_nodes, len(hyperedges), len(pairs))
    Links(*links.parts)  # what was not checked would pass the check
    Links(*links.transposed().parts)
    for side in (links, links.transposed()):
        assert torch.equal(side.row_column[side.column_place], side.transposed().row_index)


def test_they_are_derived_once_and_die_with_the_hypergraph():
    hypergraph = Hypergraph.from_hyperedges([[0, 1], [1]])
    links = node_links(hypergraph)
    assert node_links(hypergraph) is links
    assert edge_links(hypergraph) is edge_links(hypergraph)
    gone = weakref.ref(links)
    del links, hypergraph
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_sparse_matrix():
    dense = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    assert list_links(sparse_links(dense.to_sparse_csr())) == [(0, 1, 0), (2, 0, 1), (2, 1, 2)]
    with pytest.raises(DataError, match="must be a sparse CSR matrix"):
        sparse_links(dense)


def test_what_native_code_could_not_trust_is_refused(without_shape_checks):
    good = node_links(Hypergraph.from_hyperedges([[0, 1], [1, 2]])).parts
    names = ("row_ptr", "row_column", "row_link", "column_ptr", "column_row", "column_link")

    def change(**parts):
        return Links(**dict(zip(names, good, strict=True)) | parts)

    change()
    bad = [
        ("row_ptr", torch.tensor([0, 1, 3, 5]), "must rise from 0 to the number of links, 4"),
        ("row_ptr", torch.tensor([0, 3, 1, 4]), "without falling"),
        ("row_ptr", torch.tensor([], dtype=torch.int64), "at least one number"),
        ("column_ptr", torch.tensor([0, 2, 4]).int(), "int64"),
        ("row_column", torch.tensor([0, 0, 1, 7]), "same links"),
        ("row_column", torch.tensor([0, 0, 1, -1]), "same links"),
        ("row_column", torch.tensor([0, 0, 1, 1, 1, 1, 1, 1])[::2], "contiguous"),
        ("row_link", torch.tensor([0, 1, 1, 3]), "each once"),
        ("row_link", torch.tensor([0, 1, 2, 4]), "each once"),
        ("column_row", torch.tensor([0, 1, 1, 9]), "same links"),
        ("column_link", torch.tensor([0, 1, 2]), "must be 4 contiguous numbers"),
    ]
    for name, value, message in bad:
        with pytest.raises(DataError, match=message):
            change(**{name: value})
