import pandas
import pytest
import torch
from hypothesis import given, settings

from edhnn import DataError, Hypergraph, NodeDataset, UsageError
from edhnn.interop.hypernetx import from_hypernetx, to_hypernetx
from edhnn.interop.records import import_library
from tests.interop.cases import assert_same, build, cases, without_empty_weights

hypernetx = import_library("hypernetx", "the tests")  # `import` would change the warning filters of all tests


@given(cases(incidences_only=True))
@settings(max_examples=40)
def test_datasets_round_trip(case):
    dataset = without_empty_weights(build(case))
    assert_same(from_hypernetx(to_hypernetx(dataset)), dataset)


@given(cases(incidences_only=True))
@settings(max_examples=15)
def test_hypernetx_has_the_same_shape_sizes_and_degrees(case):
    dataset = build(case)
    network, hypergraph = to_hypernetx(dataset), dataset.hypergraph
    assert network.shape == (hypergraph.num_nodes, hypergraph.num_edges)
    assert [network.size(edge) for edge in dataset.edge_ids] == hypergraph.edge_size.tolist()
    assert [network.degree(node) for node in dataset.node_ids] == hypergraph.degree.tolist()


def test_properties_have_the_names_of_hypernetx():
    dataset = NodeDataset(
        name="pets",
        hypergraph=Hypergraph(
            torch.tensor([0, 1, 1]),
            torch.tensor([0, 0, 1]),
            2,
            2,
            torch.tensor([2.0, 3.0]),
            torch.tensor([0.5, 2.0, 4.0]),
        ),
        y=torch.tensor([1, -1]),
        task="classification",
        class_names=("cat", "dog"),
        node_attributes={"weight": [1, 1], "age": [7, None]},
    )
    network = to_hypernetx(dataset)
    assert (network.name, network.nodes[0].label, network.nodes[0].age) == ("pets", "dog", 7)
    assert network.edges[1].weight == 3.0
    assert network.incidence_matrix(weights=True).toarray().tolist() == [[0.5, 0.0], [2.0, 4.0]]
    assert_same(from_hypernetx(network), dataset)


def test_a_hypergraph_without_a_manifest():
    cells = {"monday": {"milk": {"weight": 2}, "bread": {}}, "tuesday": {"milk": {"weight": 3}}}
    nodes = pandas.DataFrame(
        {"uid": ["tea", "bread", "milk"], "kind": ["leaf", None, "liquid"], "price": [3.0, 2.0, 1.0]}
    )
    network = hypernetx.Hypergraph(cells, node_properties=nodes, edge_properties={"tuesday": {"weight": 5, "till": 2}})
    dataset = from_hypernetx(network, label="kind", features=["price"])
    assert list(dataset.node_ids) == ["bread", "milk"]
    assert list(dataset.edge_ids) == ["tuesday", "monday"]
    assert list(dataset.hypergraph.hyperedges()) == [[1], [0, 1]]
    assert dataset.hypergraph.edge_weight.tolist() == [5.0, 1.0]
    assert dataset.hypergraph.incidence_weight.tolist() == [3.0, 1.0, 2.0]
    assert (dataset.y.tolist(), dataset.class_names) == ([-1, 0], ("liquid",))
    assert dataset.x.tolist() == [[2.0], [1.0]]
    assert dataset.edge_attributes == {"till": [2, None]}
    assert dataset.provenance.notes == ("1 nodes have properties but no incidence and were left out",)


def test_one_property_table_for_both_kinds():
    properties = pandas.DataFrame({"uid": ["e", 1, 2], "weight": [4.0, 1.0, 2.0]})
    dataset = from_hypernetx(hypernetx.Hypergraph({"e": [1, 2]}, properties=properties))
    assert dataset.hypergraph.edge_weight.tolist() == [4.0]
    assert dataset.node_attributes == {"weight": [1.0, 2.0]}
    assert dataset.provenance.notes == ()


def test_an_empty_hypergraph():
    dataset = from_hypernetx(hypernetx.Hypergraph())
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (0, 0)


def test_isolated_nodes_and_empty_hyperedges_raise():
    """The first assertion checks the reason: the installed HyperNetX drops both."""
    network = hypernetx.Hypergraph({"e": [1], "empty": []}, node_properties={1: {}, 2: {}})
    assert network.shape == (1, 1)
    hypergraph = Hypergraph.from_hyperedges([[0], []], num_nodes=4)
    with pytest.raises(DataError, match=r"isolated nodes or empty hyperedges\. Got 3 and 1 of them\. Remove"):
        to_hypernetx(NodeDataset(name="n", hypergraph=hypergraph))


def test_invalid_hypergraphs_raise():
    with pytest.raises(UsageError, match=r"takes a hypernetx\.Hypergraph\. Got builtins\.dict"):
        from_hypernetx({})
    network = hypernetx.Hypergraph({0: {"a": {"time": "early"}, "b": {}}})
    with pytest.raises(DataError, match=r"cell property 'time'.*ignore=\('time',\)"):
        from_hypernetx(network)
    assert "ignored on request: time" in from_hypernetx(network, ignore=["time"]).provenance.notes[0]
    with pytest.raises(DataError, match=r"node id .* Got .*1\.5.* of type float"):
        from_hypernetx(hypernetx.Hypergraph({0: [1.5]}))
    with pytest.raises(DataError, match=r"Got -1.* at the cell \(0, 'a'\)"):
        from_hypernetx(hypernetx.Hypergraph({0: {"a": {"weight": -1}, "b": {}}}))
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    with pytest.raises(DataError, match=r"'weight' must be a number at every node"):
        to_hypernetx(NodeDataset(name="n", hypergraph=hypergraph, node_attributes={"weight": [1, None]}))
    with pytest.raises(DataError, match=r"may be called 'misc_properties'"):
        to_hypernetx(NodeDataset(name="n", hypergraph=hypergraph, node_attributes={"misc_properties": [1, 2]}))
