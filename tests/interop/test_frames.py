from dataclasses import replace

import pandas
import polars
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings

from edhnn import DataError, Hypergraph, Ids, NodeDataset, UsageError
from edhnn.data.dataset import sparse_features
from edhnn.interop.frames import from_frame, to_pandas, to_polars
from edhnn.interop.records import column_request
from tests.interop.cases import assert_same, build, cases

BASKETS = {"item": ["milk", "bread", "milk", "milk"], "basket": [9, 9, 7, 7], "amount": [1.0, 2.0, 0.5, 3.0]}
LIBRARIES = pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pa.table])
DENSE = (None, "float32", "named")


def as_frames_hold(dataset: NodeDataset) -> NodeDataset:
    """Return the dataset with the changes that frames make: numbers become names, and real labels float32."""
    names, features = dataset.class_names, dataset.feature_names
    if dataset.y is not None and names is None and dataset.task != "regression":
        width = range(dataset.num_classes)
        names = tuple(width) if dataset.task == "classification" else tuple(f"label_{column}" for column in width)
    if dataset.x is not None and features is None:
        features = tuple(f"x{column}" for column in range(dataset.num_features))
    y = dataset.y if dataset.task != "regression" else dataset.y.to(torch.float32)
    return replace(dataset, y=y, class_names=names, feature_names=features)


@given(cases(ids=("numbers", "integers", "text"), features=DENSE))
def test_datasets_round_trip_through_pandas(case):
    dataset = build(case)
    assert_same(to_pandas(dataset).to_dataset(), as_frames_hold(dataset))


@given(
    cases(ids=("numbers", "integers", "text"), features=DENSE, labels=(None, "named", "multilabel", "real", "targets"))
)
def test_datasets_round_trip_through_polars(case):
    dataset = build(case)
    assert_same(to_polars(dataset).to_dataset(), as_frames_hold(dataset))


@given(cases(ids=("integers",), features=(None,), labels=(None,)))
@settings(max_examples=30)
def test_pandas_and_polars_agree(case):
    dataset = build(case)
    for one, other in zip(_frames(to_pandas(dataset)), _frames(to_polars(dataset)), strict=True):
        assert list(one.columns) == other.columns
        assert len(one) == len(other)
    hypergraph = dataset.hypergraph
    counted = to_pandas(dataset).incidences.groupby("hyperedge").size()
    sizes = {name: size for name, size in zip(dataset.edge_ids, hypergraph.edge_size.tolist(), strict=True) if size}
    assert counted.to_dict() == sizes


def test_frames_join_by_their_ids():
    dataset = NodeDataset(
        name="pets",
        hypergraph=Hypergraph.from_hyperedges([[0, 1], [2], []], num_nodes=4, edge_weight=[1.0, 2.0, 3.0]),
        y=torch.tensor([1, -1, 1, 1]),
        task="classification",
        class_names=("cat", "dog"),
        x=torch.eye(4)[:, :2],
        node_ids=Ids(["a", "b", "c", "d"]),
        node_attributes={"age": [3, None, 5, 6]},
    )
    frames = to_pandas(dataset)
    joined = frames.incidences.merge(frames.nodes, on="node").merge(frames.hyperedges, on="hyperedge")
    assert joined["label"].tolist()[0] == "dog"
    assert list(frames.nodes["label"].cat.categories) == ["cat", "dog"]
    assert frames.nodes["age"].tolist() == [3, None, 5, 6]
    assert (frames.label, frames.features, frames.task) == (("label",), ("x0", "x1"), "classification")
    assert joined["weight"].tolist() == [1.0, 1.0, 2.0]
    assert to_polars(dataset).nodes["label"].dtype == polars.Enum(["cat", "dog"])


def test_a_string_names_one_column():
    nodes = pandas.DataFrame({"node": ["u", "v"], "ab": [1, 2], "a": [3, 4], "b": [5, 6]})
    pairs = pandas.DataFrame({"node": ["u", "v"], "hyperedge": [1, 1]})
    assert from_frame(pairs, nodes=nodes, features="ab").feature_names == ("ab",)
    assert column_request(None, "ab", None).features == ("ab",)


@LIBRARIES
def test_one_frame_is_enough(frame):
    dataset = from_frame(frame(BASKETS), node="item", edge="basket", weight="amount")
    assert list(dataset.node_ids) == ["milk", "bread"]
    assert list(dataset.edge_ids) == [7, 9]
    assert list(dataset.hypergraph.hyperedges()) == [[0], [0, 1]]
    assert dataset.hypergraph.incidence_weight.tolist() == [3.0, 1.0, 2.0]
    assert dataset.provenance.notes == ("1 memberships given more than once were merged; the largest weight is kept",)
    assert "amount" in from_frame(frame(BASKETS), node="item", edge="basket").provenance.notes[0]


@LIBRARIES
def test_three_frames(frame):
    nodes = frame(
        {"item": ["tea", "milk", "bread"], "kind": ["leaf", None, "solid"], "price": [3, 1, 2], "eu": ["a", "b", "c"]}
    )
    baskets = frame({"basket": [1, 9, 7], "worth": [1.0, 2.0, 0.0]})
    dataset = from_frame(
        frame(BASKETS),
        node="item",
        edge="basket",
        nodes=nodes,
        hyperedges=baskets,
        edge_weight="worth",
        label="kind",
        features=["price"],
        name="shop",
    )
    assert list(dataset.node_ids) == ["tea", "milk", "bread"]
    assert list(dataset.hypergraph.hyperedges()) == [[], [1, 2], [1]]
    assert dataset.hypergraph.edge_weight.tolist() == [1.0, 2.0, 0.0]
    assert (dataset.y.tolist(), dataset.class_names) == ([0, -1, 1], ("leaf", "solid"))
    assert dataset.x.tolist() == [[3.0], [1.0], [2.0]]
    assert dataset.node_attributes == {"eu": ["a", "b", "c"]}


def test_ids_may_be_categorical():
    frame = pandas.DataFrame(BASKETS).astype({"item": "category"})
    assert list(from_frame(frame, node="item", edge="basket").node_ids) == ["milk", "bread"]
    frame = polars.DataFrame(BASKETS).with_columns(polars.col("item").cast(polars.Categorical))
    assert list(from_frame(frame, node="item", edge="basket").node_ids) == ["milk", "bread"]


def test_classes_keep_the_order_of_the_categories():
    pairs, kinds = {"node": ["a", "b"], "hyperedge": [1, 1]}, ["small", "large"]
    sizes = ["tiny", "small", "large"]
    nodes = pandas.DataFrame({"node": ["a", "b"], "size": pandas.Categorical(kinds, categories=sizes)})
    dataset = from_frame(pandas.DataFrame(pairs), nodes=nodes, label="size")
    assert (dataset.y.tolist(), dataset.class_names) == ([1, 2], ("tiny", "small", "large"))
    nodes = polars.DataFrame({"node": ["a", "b"], "size": polars.Series(kinds, dtype=polars.Enum(sizes))})
    assert from_frame(polars.DataFrame(pairs), nodes=nodes, label="size").class_names == ("tiny", "small", "large")
    nodes = nodes.with_columns(polars.col("size").cast(polars.Categorical))
    assert from_frame(polars.DataFrame(pairs), nodes=nodes, label="size").class_names == ("large", "small")


def test_the_pandas_index_is_ignored():
    frame = pandas.DataFrame(BASKETS, index=[5, 5, 6, 7])
    assert from_frame(frame, node="item", edge="basket").hypergraph.num_incidences == 3


@LIBRARIES
def test_frames_without_rows(frame):
    dataset = from_frame(frame({"node": [], "hyperedge": []}))
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (0, 0)
    dataset = from_frame(frame({"node": [], "hyperedge": []}), nodes=frame({"node": ["a"]}))
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (1, 0)


@LIBRARIES
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"node": ["a", None], "hyperedge": [1, 2]}, r"row 1: .* id in column 'node'"),
        ({"node": [1.0, 2.0], "hyperedge": [1, 2]}, r"'node' .* Got real numbers.*astype"),
        ({"node": [1.0, float("nan")], "hyperedge": [1, 2]}, r"'node' .* Got real numbers"),
        ({"node": [True, False], "hyperedge": [1, 2]}, r"must be text or integers. Got bool"),
        ({"node": [1, 2], "hyperedge": [[1], [2]]}, r"must be text or integers. Got .*list"),
    ],
)
def test_invalid_ids_raise(frame, columns, message):
    with pytest.raises(DataError, match=message):
        from_frame(frame(columns))


def test_invalid_ids_of_one_library_raise():
    with pytest.raises(DataError, match=r"must be of one type.*column node.*astype"):
        from_frame(pandas.DataFrame({"node": [1, "a"], "hyperedge": [1, 2]}))
    with pytest.raises(DataError, match=r"'node' of the incidence frame must be of one type"):
        objects = polars.Series("node", [1, "a"], dtype=polars.Object)
        from_frame(polars.DataFrame({"node": objects, "hyperedge": [1, 2]}))
    with pytest.raises(DataError, match=r"must fit 64 bits"):
        from_frame(pa.table({"node": pa.array([2**63], pa.uint64()), "hyperedge": [1]}))
    with pytest.raises(DataError, match=r"distinct names"):
        from_frame(pandas.DataFrame([[1, 2, 3]], columns=["node", "node", "hyperedge"]))


@LIBRARIES
def test_missing_and_duplicate_rows_raise(frame):
    pairs = frame({"node": ["a", "b"], "hyperedge": [1, 2]})
    with pytest.raises(DataError, match=r"row 1: .* must be in the node frame. 'b' is not"):
        from_frame(pairs, nodes=frame({"node": ["a"]}))
    with pytest.raises(DataError, match=r"row 0: .* must be in the hyperedge frame. 1 is not.*never the same id"):
        from_frame(pairs, hyperedges=frame({"hyperedge": ["1", "2"]}))
    with pytest.raises(DataError, match=r"row 2: .* one row in the node frame. 'a' has several"):
        from_frame(pairs, nodes=frame({"node": ["a", "b", "a"]}))


@LIBRARIES
@pytest.mark.parametrize("weight", [None, -1.0, float("inf")])
def test_invalid_weights_raise_with_their_row(frame, weight):
    with pytest.raises(DataError, match=r"row 1 of the incidence frame: Every 'w' must be a finite number"):
        from_frame(frame({"node": [1, 2], "hyperedge": [1, 2], "w": [1.0, weight]}), weight="w")


def test_text_weights_raise():
    with pytest.raises(DataError, match=r"Column 'w' of the incidence frame must hold numbers"):
        from_frame(pandas.DataFrame({"node": [1], "hyperedge": [1], "w": ["heavy"]}), weight="w")


def test_weights_that_64_bits_would_round_raise():
    with pytest.raises(
        DataError, match=r"Column 'w' of the incidence frame must hold numbers that fit a 64-bit float. .*993"
    ):
        from_frame(pandas.DataFrame({"node": [1], "hyperedge": [1], "w": [2**53 + 1]}), weight="w")


@pytest.mark.parametrize("to_frames", [to_pandas, to_polars])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_16_bit_numbers_become_32_bits(to_frames, kind):
    x, y = torch.tensor([[0.5], [1.5]]), torch.tensor([1.5, 2.5])
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    for labels in (y, torch.stack([y, y], dim=1)):
        narrow = NodeDataset(name="n", hypergraph=hypergraph, x=x.to(kind), y=labels.to(kind), task="regression")
        back = to_frames(narrow).to_dataset()
        assert torch.equal(back.x, x)
        assert torch.equal(back.y, labels)


def test_invalid_requests_raise():
    frame = pandas.DataFrame({"node": [1], "hyperedge": [1]})
    with pytest.raises(UsageError, match=r"column of the incidence frame must be one of node, hyperedge. Got 'nod'"):
        from_frame(frame, node="nod")
    with pytest.raises(UsageError, match=r"Pass it with `nodes=`"):
        from_frame(frame, label="kind")
    with pytest.raises(UsageError, match=r"Pass it with `hyperedges=`"):
        from_frame(frame, edge_weight="w")
    with pytest.raises(UsageError, match=r"column of the hyperedge frame"):
        from_frame(frame, hyperedges=pandas.DataFrame({"hyperedge": [1]}), edge_weight="w")
    with pytest.raises(UsageError, match=r"kind"):
        from_frame(frame, nodes=frame[["node"]], label="kind")
    with pytest.raises(UsageError, match=r"takes a pandas or polars DataFrame.* Got builtins\.dict"):
        from_frame({"node": [1], "hyperedge": [1]})
    with pytest.raises(UsageError, match=r"must be different columns. Got a, a"):
        from_frame(frame, node="a", edge="a")
    with pytest.raises(UsageError, match=r"must be different columns. Got node, hyperedge, node"):
        from_frame(frame, weight="node")
    for kinds in ([1], pandas.Categorical(["a"])):
        nodes = pandas.DataFrame({"node": [1], "kind": kinds})
        with pytest.raises(UsageError, match=r"'kind' is named as both"):
            from_frame(frame, nodes=nodes, label="kind", features=["kind"])
    with pytest.raises(UsageError, match=r"Collect it first"):
        from_frame(polars.LazyFrame({"node": [1], "hyperedge": [1]}))


def test_missing_features_and_real_categories_raise():
    frame = pandas.DataFrame({"node": [1], "hyperedge": [1]})
    with pytest.raises(DataError, match=r"row 0 \(node 1\)"):
        from_frame(
            frame, nodes=pandas.DataFrame({"node": [1], "price": [None]}).astype({"price": float}), features=["price"]
        )
    with pytest.raises(DataError, match=r"categories of the label 'kind' must be text or integers"):
        from_frame(frame, nodes=pandas.DataFrame({"node": [1], "kind": pandas.Categorical([0.5])}), label="kind")


@pytest.mark.parametrize("to_frames", [to_pandas, to_polars])
def test_data_that_frames_cannot_hold_raise(to_frames):
    plain = {"name": "n", "hypergraph": Hypergraph.from_hyperedges([[0, 1]])}
    labels = {"y": torch.tensor([0, 1]), "task": "classification"}
    for changed, message in (
        ({"node_ids": Ids([1, "a"])}, r"one type.*node column 'id'.*all text or all integers"),
        ({"x": sparse_features(sp.eye_array(2))}, r"sparse.*to_dense"),
        ({"node_attributes": {"mix": [1, "a"]}}, r"node column 'mix' has several"),
        (
            {"node_attributes": {"deep": [{"a": 1}, {"b": 2}]}},
            r"column 'deep' has several. Cause: its lists or dictionaries",
        ),
        ({"node_attributes": {"node": [1, 2]}}, r"Two would be called 'node'.*Rename"),
        ({"edge_attributes": {"weight": ["a"]}}, r"may be called 'weight' here"),
        ({**labels, "class_names": ("a", 1)}, r"all text or all integers"),
    ):
        with pytest.raises(DataError, match=message):
            to_frames(NodeDataset(**plain, **changed))


def test_pandas_columns_may_have_numbers_as_names():
    frame = pandas.DataFrame([["milk", 1, 0.5], ["bread", 1, 2.0]])
    dataset = from_frame(frame, node="0", edge="1", weight="2")
    assert dataset.node_ids.to_list() == ["milk", "bread"]
    assert dataset.hypergraph.incidence_weight.tolist() == [0.5, 2.0]


def test_an_unused_integer_class_raises_in_polars():
    labels = {"y": torch.tensor([0, 2]), "task": "classification"}
    dataset = NodeDataset(name="n", hypergraph=Hypergraph.from_hyperedges([[0, 1]]), **labels)
    with pytest.raises(DataError, match=r"Got the classes 0, 1, 2\. Make the class names text"):
        to_polars(dataset)
    assert to_pandas(dataset).to_dataset().y.tolist() == [0, 2]
    all_used = replace(dataset, y=torch.tensor([1, 0]))
    assert to_polars(all_used).to_dataset().class_names == (0, 1)


def _frames(frames):
    return frames.incidences, frames.nodes, frames.hyperedges
