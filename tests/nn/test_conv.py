"""`EDConv` beside PyG's layers."""

import copy
import pickle

import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import HypergraphConv, Sequential

from edhnn import DataError, Hypergraph, UsageError, make_model
from edhnn.data.dataset import sparse_features
from edhnn.nn import EDConv
from edhnn.nn.cache import hypergraph_of_pairs

INDEX = torch.tensor([[0, 1, 2, 2, 3, 0, 4], [0, 0, 0, 1, 1, 3, 3]])  # hyperedge 2 is empty, node 5 isolated
X = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.tensor([1.0, 2.0, 1.0, 0.5])
ATTRIBUTES = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def dense(layer, aggregate, weight=None, attributes=None):
    """Evaluate the formula of the docstring with loops over nodes and hyperedges."""
    phi, rho, update = layer.operator.phi, layer.operator.rho, layer.update
    rows = []
    for v in range(len(X)):
        total, size = torch.zeros(1, layer.hidden_channels, dtype=torch.float64), 0.0
        mine = INDEX[1][INDEX[0] == v].tolist()
        for e in mine:
            members = X[INDEX[0][INDEX[1] == e]].double()
            message = phi(members).mean(0) if aggregate == "mean" else phi(members).sum(0)
            parts = [X[v].double(), message] + ([] if attributes is None else [attributes[e].double()])
            w = 1.0 if weight is None else float(weight[e])
            total, size = total + w * rho(torch.cat(parts)[None]), size + w
        if aggregate == "mean" and size:
            total = total / size
        log = torch.tensor([max(len(mine), 1)]).double().log()
        rows.append(update(torch.cat([X[v].double(), total[0], log])[None]))
    return torch.cat(rows)


@pytest.mark.parametrize("aggregate", ["mean", "sum"])
@pytest.mark.parametrize(("weight", "attributes"), [(None, None), (WEIGHT, None), (WEIGHT, ATTRIBUTES)])
def test_the_layer_equals_its_formula(aggregate, weight, attributes):
    wide = 0 if attributes is None else 3
    layer = EDConv(4, 5, hidden_channels=7, edge_dim=wide, aggregate=aggregate, seed=1).double()
    out = layer(X.double(), INDEX, weight, attributes)
    torch.testing.assert_close(out, dense(layer, aggregate, weight, attributes), rtol=1e-9, atol=1e-9)
    hypergraph = Hypergraph(INDEX[0], INDEX[1], 6, 4, edge_weight=weight)
    assert torch.equal(layer(X.double(), hypergraph, None, attributes), out)


def test_it_trains_in_a_sequential_of_pyg_beside_hypergraph_conv():
    torch.manual_seed(0)
    signature = "x, hyperedge_index, hyperedge_weight"
    both = Sequential(
        signature,
        [
            (EDConv(4, 8), f"{signature} -> x"),
            torch.nn.ReLU(),
            (HypergraphConv(8, 8), f"{signature} -> x"),
            torch.nn.ReLU(),
            (EDConv(8, 2), f"{signature} -> x"),
        ],
    )
    optimiser, y = torch.optim.Adam(both.parameters(), 0.02), torch.tensor([0, 1, 0, 1, 1, 0])
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(both(X, INDEX, WEIGHT), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    with torch.autocast("cpu", torch.bfloat16):
        assert both(X, INDEX, WEIGHT).dtype == torch.bfloat16


def test_weights_follow_manual_seed_and_a_given_seed():
    torch.manual_seed(5)
    first, second = EDConv(4, 4), EDConv(4, 4)
    torch.manual_seed(5)
    again = EDConv(4, 4)
    outputs = [layer(X, INDEX) for layer in (first, second, again)]
    assert torch.equal(outputs[0], outputs[2]) and not torch.equal(outputs[0], outputs[1])
    before = torch.get_rng_state()
    given, same = EDConv(4, 4, dropout=0.5, seed=7), EDConv(4, 4, dropout=0.5, seed=7)
    assert torch.equal(given(X, INDEX), same(X, INDEX))
    assert torch.equal(torch.get_rng_state(), before)
    given.reset_parameters()
    assert not torch.equal(given.eval()(X, INDEX), same.eval()(X, INDEX))


def test_copies_pickles_and_state_dicts_give_the_same_numbers():
    layer, other = EDConv(4, 4, seed=1), EDConv(4, 4, seed=2)
    other.load_state_dict(layer.state_dict())
    expected = layer(X, INDEX)
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(X, INDEX), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": X[:, 1:]}, r"must have shape \[N, 4\]. Got \[6, 3\]"),
        ({"x": sparse_features(sp.csr_array(X.numpy()))}, "must be dense.*to_dense"),
        ({"hyperedge_index": INDEX[0]}, r"must have shape \[2, I\]. Got \[7\]"),
        ({"x": X[:3]}, "node number must lie in 0..2"),
        ({"hyperedge_weight": WEIGHT[:2]}, "hyperedge number must lie in 0..1, because there are 2 hyperedges. Got 3"),
        ({"hyperedge_weight": -WEIGHT}, "'edge_weight' must be finite and 0 or more. Got -1.0 at 0"),
        ({"hyperedge_weight": WEIGHT.clone().requires_grad_()}, "no gradient. Use hyperedge_weight.detach()"),
        ({"hyperedge_attr": ATTRIBUTES}, r"must be absent \(edge_dim=0\). Got \[4, 3\]"),
        ({"hyperedge_index": Hypergraph.from_hyperedges([[0, 1]])}, "a row per node, 2. Got 6 rows"),
        (
            {"hyperedge_index": Hypergraph.from_hyperedges([[0]], num_nodes=6), "hyperedge_weight": WEIGHT},
            "has its own weights",
        ),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_arguments_that_do_not_fit_raise_errors_that_name_both_sides(change, message):
    with pytest.raises((DataError, UsageError), match=message):
        EDConv(4, 4)(**{"x": X, "hyperedge_index": INDEX} | change)


def test_widths_are_checked():
    with pytest.raises(UsageError, match="'out_channels' must be an int of at least 1. Got 0"):
        EDConv(4, 0, hidden_channels=3)
    with pytest.raises(UsageError, match=r"'hyperedge_attr' must be of shape \[4, 3\].*Got None"):
        EDConv(4, 4, edge_dim=3)(X, INDEX)


def test_the_hypergraph_of_pairs_is_made_once_and_again_after_a_change():
    index, weight = INDEX.clone(), WEIGHT.clone()
    first = hypergraph_of_pairs(index, 6, 4, weight)
    assert hypergraph_of_pairs(index, 6, 4, weight) is first
    assert hypergraph_of_pairs(index, 6).edge_weight is None
    assert hypergraph_of_pairs(index, 7, 4, weight).num_nodes == 7
    index[0, 0], weight[0] = 5, 3.0
    changed = hypergraph_of_pairs(index, 6, 4, weight)
    assert changed.node_index.tolist() == [1, 2, 5, 2, 3, 0, 4] and changed.edge_weight[0] == 3.0
    with torch.inference_mode():
        assert hypergraph_of_pairs(INDEX.clone(), 6).num_edges == 4


def test_pairs_and_weights_give_the_numbers_of_the_hypergraph_in_a_model():
    model = make_model("ed-hnn", in_features=4, num_classes=3, hidden=8, classifier_hidden=8).eval()
    assert torch.equal(model(X, INDEX), model(X, Hypergraph(INDEX[0], INDEX[1], 6, 4)))
