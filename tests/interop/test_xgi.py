import pytest
import torch
import xgi
from hypothesis import given, settings

from edhnn import DataError, Hypergraph, Ids, NodeDataset, UsageError
from edhnn.interop.xgi import from_xgi, to_xgi
from tests.interop.cases import assert_same, build, cases, without_empty_weights

BASKETS = xgi.Hypergraph({"monday": ["milk", "bread"], "tuesday": ["milk"], "never": [], "again": ["milk"]})


@given(cases())
def test_datasets_round_trip(case):
    dataset = without_empty_weights(build(case))
    back = from_xgi(to_xgi(dataset))
    assert_same(back, dataset)
    assert back.name == "drawn"
    assert back.provenance.details["origin"]["details"] == {"sha256": "0f"}


@given(cases())
@settings(max_examples=30)
def test_xgi_has_the_same_sizes_and_degrees(case):
    dataset = build(case)
    network, hypergraph = to_xgi(dataset), dataset.hypergraph
    assert (network.num_nodes, network.num_edges) == (hypergraph.num_nodes, hypergraph.num_edges)
    assert list(network.nodes) == list(dataset.node_ids)
    assert network.nodes.degree.aslist() == hypergraph.degree.tolist()
    assert network.edges.size.aslist() == hypergraph.edge_size.tolist()


def test_attributes_have_the_names_of_xgi():
    dataset = NodeDataset(
        name="pets",
        hypergraph=Hypergraph.from_hyperedges([[0, 1], [2]], edge_weight=[2.0, 0.5]),
        x=torch.tensor([[1.0], [2.0], [3.0]]),
        y=torch.tensor([1, 0, -1]),
        task="classification",
        class_names=("cat", "dog"),
    )
    network = to_xgi(dataset)
    assert network.nodes[0] == {"label": "dog", "features": [1.0]}
    assert "label" not in network.nodes[2]
    assert [network.edges[edge]["weight"] for edge in network.edges] == [2.0, 0.5]
    assert str(network).startswith("Hypergraph named pets")


def test_a_hyperedge_added_later_does_not_overwrite_an_old_one():
    dataset = NodeDataset(name="two", hypergraph=Hypergraph.from_hyperedges([[0], [1]]), edge_ids=Ids([5, 0]))
    network = to_xgi(dataset)
    network.add_edge([0, 1])
    assert network.num_edges == 3


def test_a_network_without_a_manifest_keeps_everything():
    network = BASKETS.copy()
    network.add_node("tea", kind="leaf", price=3.0)
    network.set_node_attributes({"milk": {"kind": "liquid", "price": 1.5}, "bread": {"price": 2.0}})
    network.set_edge_attributes({"monday": {"weight": 3, "till": 2}})
    network["place"] = "corner shop"
    dataset = from_xgi(network, label="kind", features=["price"])
    assert list(dataset.node_ids) == ["milk", "bread", "tea"]
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1], [0], [], [0]]
    assert dataset.hypergraph.edge_weight.tolist() == [3, 1, 1, 1]
    assert dataset.edge_attributes == {"till": [2, None, None, None]}
    assert dataset.class_names == ("leaf", "liquid")
    assert dataset.y.tolist() == [1, -1, 0]
    assert dataset.x.tolist() == [[1.5], [2.0], [3.0]]
    assert dataset.feature_names == ("price",)
    details = dataset.provenance.details
    assert (details["attributes"], details["label_columns"]) == ({"place": "corner shop"}, ["kind"])
    assert from_xgi(network).node_attributes["kind"] == ["liquid", None, "leaf"]


def test_a_named_label_overrides_the_manifest():
    dataset = NodeDataset(
        name="n",
        hypergraph=Hypergraph.from_hyperedges([[0, 1]]),
        y=torch.tensor([0, 1]),
        task="classification",
        node_attributes={"colour": ["red", "blue"]},
    )
    again = from_xgi(to_xgi(dataset), label="colour")
    assert again.class_names == ("blue", "red")
    assert again.node_attributes == {"label": [0, 1]}


def test_weights_of_memberships_follow_their_node():
    hypergraph = Hypergraph(torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1, None, torch.tensor([0.25, 4.0]))
    network = to_xgi(NodeDataset(name="n", hypergraph=hypergraph, node_ids=Ids(["b", "a"])))
    assert network.edges[0]["incidence_weight"] == {"b": 0.25, "a": 4.0}
    network.add_node_to_edge(0, "new")
    assert from_xgi(network).hypergraph.incidence_weight.tolist() == [0.25, 4.0, 1.0]


def test_an_incidence_weight_that_is_not_a_dictionary_stays_an_attribute():
    network = xgi.Hypergraph([[1, 2]])
    network.set_edge_attributes({0: {"incidence_weight": 3}})
    assert from_xgi(network).edge_attributes == {"incidence_weight": [3]}


def test_a_simplicial_complex_is_its_simplices():
    dataset = from_xgi(xgi.SimplicialComplex([[1, 2, 3]]))
    assert sorted(dataset.hypergraph.edge_size.tolist()) == [2, 2, 2, 3]
    assert "simplices" in dataset.provenance.notes[0]


def test_invalid_networks_raise_with_a_remedy():
    with pytest.raises(UsageError, match=r"no directions.*to_hypergraph"):
        from_xgi(xgi.DiHypergraph([([1], [2])]))
    with pytest.raises(UsageError, match=r"takes an xgi\.Hypergraph\. Got builtins\.list"):
        from_xgi([[1, 2]])
    pairs = xgi.Hypergraph()
    pairs.add_edge([(1, 2), 3])
    with pytest.raises(DataError, match=r"node id must be text.* Got \(1, 2\).*convert_labels_to_integers"):
        from_xgi(pairs)
    with pytest.raises(DataError, match=r"hyperedge id .* Got 1\.5 of type float"):
        from_xgi(xgi.Hypergraph({1.5: [1]}))
    with pytest.raises(DataError, match=r"node id .* Got True of type bool"):
        from_xgi(xgi.Hypergraph([[True]]))
    with pytest.raises(UsageError, match=r"kindd"):
        from_xgi(BASKETS, label="kindd")


@pytest.mark.parametrize("weight", [-1, "heavy", float("nan"), float("inf"), True])
def test_an_invalid_weight_raises_with_its_hyperedge(weight):
    network = BASKETS.copy()
    network.set_edge_attributes({"tuesday": {"weight": weight}})
    with pytest.raises(DataError, match=r"at hyperedge 'tuesday'"):
        from_xgi(network)


def test_invalid_names_and_duplicate_ids_raise():
    hypergraph = Hypergraph.from_hyperedges([[0], [1]])
    plain = {"name": "n", "hypergraph": hypergraph}
    with pytest.raises(DataError, match=r"hyperedge attribute may be called 'weight'"):
        to_xgi(NodeDataset(**plain, edge_attributes={"weight": ["a", "b"]}))
    with pytest.raises(DataError, match=r"node attribute may be called 'features'"):
        to_xgi(NodeDataset(**plain, x=torch.ones(2, 1), node_attributes={"features": [1, 2]}))
    with pytest.raises(DataError, match=r"'a' occurs twice"):
        to_xgi(NodeDataset(**plain, node_ids=Ids(["a", "a"])))
    with pytest.raises(DataError, match=r"Class names must be unique"):
        labels = {"y": torch.tensor([0, 1]), "task": "classification", "class_names": ("a", "a")}
        to_xgi(NodeDataset(**plain, **labels))
    with pytest.raises(DataError, match=r"Names of node attributes must be text. Got 3"):
        network = xgi.Hypergraph([[1]])
        network.set_node_attributes({1: {3: "three"}})
        from_xgi(network)


def test_an_invalid_manifest_or_record_raises():
    def written(**labels):
        hypergraph = Hypergraph.from_hyperedges([[0, 1]])
        return to_xgi(NodeDataset(name="n", hypergraph=hypergraph, x=torch.ones(2, 2), **labels))

    classes = {"y": torch.tensor([0, 1]), "task": "classification", "class_names": ("a", "b")}
    network = written(**classes)
    network["edhnn"] = {"task": "juggling"}
    with pytest.raises(DataError, match=r"'edhnn' of the xgi object .* Remove the attribute"):
        from_xgi(network)
    for invalid in ({"label": "c"}, {"label": ["a"]}, {"features": [1.0]}, {"features": ["x", "y"]}):
        network = written(**classes)
        network.set_node_attributes({1: invalid})
        with pytest.raises(DataError, match=r"'(label|features)' must .* remove the attribute 'edhnn'"):
            from_xgi(network)
    network = written(y=torch.ones(2), task="regression")
    network.set_node_attributes({1: {"label": "text"}})
    with pytest.raises(DataError, match=r"'label' must be a number at every node"):
        from_xgi(network)
    network = written(**{**classes, "class_names": None})
    network.set_node_attributes({1: {"label": -4}})
    with pytest.raises(DataError, match=r"must be a class number. Got -4 at node 1"):
        from_xgi(network)
    network = written()
    network.add_node(9)
    with pytest.raises(DataError, match=r"must be 2 numbers. Got None at node 9"):
        from_xgi(network)
