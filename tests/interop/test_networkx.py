import networkx
import pytest
import torch
from hypothesis import given, settings
from networkx.algorithms import bipartite

from edhnn import DataError, Hypergraph, Ids, NodeDataset, UsageError
from edhnn.interop.networkx import from_networkx, to_networkx
from tests.interop.cases import assert_same, build, cases, without_empty_weights


@given(cases())
def test_datasets_round_trip(case):
    dataset = without_empty_weights(build(case))
    assert_same(from_networkx(to_networkx(dataset)), dataset)


@given(cases())
@settings(max_examples=30)
def test_the_graph_is_bipartite_and_has_the_same_degrees(case):
    dataset = build(case)
    graph, hypergraph = to_networkx(dataset), dataset.hypergraph
    assert bipartite.is_bipartite(graph)
    nodes = [key for key, side in graph.nodes(data="bipartite") if side == 0]
    edges = [key for key, side in graph.nodes(data="bipartite") if side == 1]
    assert [graph.nodes[key]["id"] for key in nodes] == list(dataset.node_ids)
    assert [graph.degree[key] for key in nodes] == hypergraph.degree.tolist()
    assert [graph.degree[key] for key in edges] == hypergraph.edge_size.tolist()
    if nodes and edges:
        matrix = bipartite.biadjacency_matrix(graph, nodes, edges, weight="weight")
        assert (matrix != hypergraph.to_scipy()).nnz == 0


def test_a_node_and_a_hyperedge_may_share_an_id():
    dataset = NodeDataset(
        name="one", hypergraph=Hypergraph.from_hyperedges([[0]]), node_ids=Ids([1]), edge_ids=Ids([1])
    )
    graph = to_networkx(dataset)
    assert list(graph.edges) == [(("node", 1), ("hyperedge", 1))]
    assert_same(from_networkx(graph), dataset)


def plain_graph() -> networkx.Graph:
    graph = networkx.Graph(name="shop")
    graph.add_nodes_from(["milk", "bread", "tea"], bipartite=0)
    graph.add_nodes_from([1, 2], bipartite=1)
    graph.add_edges_from([("milk", 1), (2, "milk"), ("bread", 1)])
    return graph


def test_a_plain_bipartite_graph():
    graph = plain_graph()
    graph.nodes["milk"]["id"] = "a column of its own"
    graph.nodes[2]["weight"] = 5
    graph.edges["milk", 1]["weight"] = 0.5
    dataset = from_networkx(graph)
    assert dataset.name == "shop"
    assert list(dataset.node_ids) == ["milk", "bread", "tea"]
    assert list(dataset.edge_ids) == [1, 2]
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1], [0]]
    assert dataset.hypergraph.incidence_weight.tolist() == [0.5, 1.0, 1.0]
    assert dataset.hypergraph.edge_weight.tolist() == [1.0, 5.0]
    assert dataset.node_attributes == {"id": ["a column of its own", None, None]}


def test_an_argument_may_name_the_nodes():
    graph = networkx.Graph([("milk", "b1"), ("bread", "b1")])
    dataset = from_networkx(graph, nodes=["milk", "bread"])
    assert (list(dataset.node_ids), list(dataset.edge_ids)) == (["milk", "bread"], ["b1"])


def test_an_example_graph_of_networkx():
    women = from_networkx(networkx.davis_southern_women_graph(), label=None)
    assert women.hypergraph.num_incidences == 89


def test_parallel_edges_are_one_membership():
    graph = networkx.MultiGraph(plain_graph())
    graph.add_edge("milk", 1, weight=3.0)
    dataset = from_networkx(graph)
    assert dataset.hypergraph.incidence_weight.tolist() == [3.0, 1.0, 1.0]
    assert dataset.provenance.notes == ("1 memberships given more than once were merged; the largest weight is kept",)


def test_invalid_graphs_raise_with_a_remedy():
    with pytest.raises(UsageError, match=r"no directions.*to_undirected"):
        from_networkx(networkx.DiGraph(plain_graph()))
    with pytest.raises(UsageError, match=r"Got builtins.dict"):
        from_networkx({})
    with pytest.raises(UsageError, match=r"'coffee', which is not in it"):
        from_networkx(plain_graph(), nodes=["coffee"])
    graph = plain_graph()
    graph.add_edge("milk", "bread")
    with pytest.raises(DataError, match=r"'milk' and 'bread' are both nodes"):
        from_networkx(graph)
    graph = plain_graph()
    graph.add_edge(2, 2)
    with pytest.raises(DataError, match=r"2 and 2 are both hyperedges"):
        from_networkx(graph)
    graph = plain_graph()
    graph.edges["milk", 1]["since"] = 1999
    with pytest.raises(DataError, match=r"'since' of the graph edge \('milk', 1\).*ignore=\('since',\)"):
        from_networkx(graph)
    assert "ignored on request: since" in from_networkx(graph, ignore=["since"]).provenance.notes[0]
    graph.edges["milk", 1]["weight"] = -2
    with pytest.raises(DataError, match=r"Got -2 at the graph edge \('milk', 1\)"):
        from_networkx(graph, ignore=["since"])
    assert from_networkx(graph, ignore=["since", "weight"]).hypergraph.incidence_weight is None
    graph = plain_graph()
    graph.add_node("no side")
    with pytest.raises(DataError, match=r"'bipartite'.* Got None at 'no side'.* `nodes=`"):
        from_networkx(graph)
    graph = networkx.relabel_nodes(plain_graph(), {"tea": 1.5})
    with pytest.raises(DataError, match=r"node id .* Got 1\.5 of type float.*relabel_nodes"):
        from_networkx(graph)
    with pytest.raises(DataError, match=r"Got \('hyperedge', 'tea'\)"):
        from_networkx(networkx.relabel_nodes(plain_graph(), {"tea": ("hyperedge", "tea")}))


@pytest.mark.parametrize("name", ["bipartite", "id"])
def test_reserved_attribute_names_raise(name):
    hypergraph = Hypergraph.from_hyperedges([[0]])
    with pytest.raises(DataError, match=rf"node attribute may be called '{name}'"):
        to_networkx(NodeDataset(name="n", hypergraph=hypergraph, node_attributes={name: [1]}))
    with pytest.raises(DataError, match=rf"hyperedge attribute may be called '{name}'"):
        to_networkx(NodeDataset(name="n", hypergraph=hypergraph, edge_attributes={name: [1]}))


def test_labels_are_the_class_names():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    labels = {"y": torch.tensor([1, -1]), "task": "classification", "class_names": ("cat", "dog")}
    graph = to_networkx(NodeDataset(name="n", hypergraph=hypergraph, **labels))
    assert graph.nodes["node", 0] == {"bipartite": 0, "id": 0, "label": "dog"}
    assert "label" not in graph.nodes["node", 1]
