"""Round trips through one format; `tests/contract/test_formats.py` tests the rules of all formats."""

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError, Hypergraph, Ids, NodeDataset, Provenance, UsageError, read_dataset, write_dataset
from edhnn.data.dataset import sparse_features
from tests.contract.test_formats import (
    after_losing,
    files_in,
    labelled,
    plain,
    table_options,
    through,
    with_variants,
)
from tests.interop.cases import assert_same, build, cases, without_empty_weights
from tests.strategies import examples

TABLES = ["t.csv", "t.tsv", "t.parquet", "t.csv.gz"]
WHOLE = ["t.hif.json", "t.hif.json.gz", "t"]  # formats that store everything
LINES = ["hyperedges-t.txt", "hyperedges-t.txt.gz", "t.hgr", "t.hgr.gz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("round_trips")


@settings(max_examples=examples(120))
@given(cases(), st.sampled_from(WHOLE), st.booleans())
def test_hif_and_folders_store_everything(folder, case, name, variant):
    dataset = with_variants(build(case), variant)
    back, dropped = through(dataset, folder / name)
    assert dropped == []
    assert back.name == dataset.name
    assert_same(without_empty_weights(back), without_empty_weights(dataset))


@settings(max_examples=60)
@given(st.lists(st.integers(0, 2**53 - 1), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_hmetis_keeps_integer_weights(folder, weights, of_edges, of_nodes):
    edge_weight = [float(weight) for weight in weights] if of_edges else None
    dataset = NodeDataset(
        name="w",
        hypergraph=Hypergraph.from_hyperedges([[0, 2], [1], [0, 1, 2]], edge_weight=edge_weight),
        node_attributes={"weight": weights} if of_nodes else {},
        node_ids=Ids([1, 2, 3]),
        edge_ids=Ids([1, 2, 3]),
    )
    back, dropped = through(dataset, folder / "w.hgr")
    assert dropped == []
    assert_same(back, dataset)


TEXTS = st.sampled_from(
    ["", "1", "2.5", "true", "nan", "a", 'quo"te', "two\nlines", "\r", "2020-01-01", "12:30", "é", " x"]
)


@settings(max_examples=examples(200))
@given(st.lists(st.none() | TEXTS, min_size=2, max_size=4), st.sampled_from(TABLES), st.booleans())
def test_text_survives_or_its_loss_is_reported(folder, texts, name, as_class):
    count, node_ids = len(texts), Ids([f"n{number}" for number in range(len(texts))])
    hypergraph = Hypergraph.from_hyperedges([list(range(count))])
    if as_class:
        names = tuple(sorted({text for text in texts if text}))
        y = torch.tensor([names.index(text) if text else -1 for text in texts])
        dataset = NodeDataset(
            name="x", hypergraph=hypergraph, y=y, task="classification", class_names=names, node_ids=node_ids
        )
    else:
        dataset = NodeDataset(name="x", hypergraph=hypergraph, node_attributes={"word": texts}, node_ids=node_ids)
    back, dropped = through(dataset, folder / name, **table_options(dataset))
    same = back.class_names == dataset.class_names if as_class else dict(back.node_attributes) == {"word": texts}
    word = "label" if as_class else "word"
    assert (not same) == (f"that '{word}' is text (it looks like something else)" in dropped)
    assert same or "parquet" not in name


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "ids", [["b", "c", "a"], [30, -10, 20], ["3", "1", "2"], ["x", "", "y"], ["a\n", '"', ","], [2**62, 0, -(2**62)]]
)
def test_the_numbers_of_nodes_and_hyperedges_survive_tables(tmp_path, name, ids):
    hypergraph = Hypergraph.from_hyperedges([[1, 2], [0, 1], [0]])
    dataset = NodeDataset(name="x", hypergraph=hypergraph, node_ids=Ids(ids), edge_ids=Ids(ids))
    if "" in ids and "parquet" not in name:
        with pytest.raises(DataError, match="A text table cannot store an empty node id"):
            write_dataset(dataset, tmp_path / name)
        assert files_in(tmp_path) == {}
        return
    back, dropped = through(dataset, tmp_path / name)
    assert_same(back, after_losing(dataset, dropped))
    assert bool(dropped) == (ids == ["3", "1", "2"] and "parquet" not in name)


def test_nothing_more_than_needed_is_written(tmp_path):
    plain = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0, 1], [1, 2]]))
    assert write_dataset(plain, tmp_path / "t.csv").paths == [tmp_path / "t.csv"]
    isolated = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0, 1], []], num_nodes=3))
    written = write_dataset(isolated, tmp_path / "u.csv").paths
    assert [path.name for path in written] == ["u.csv", "u.nodes.csv", "u.hyperedges.csv"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("task", "class_names", "loss", "label"),
    [
        ("multilabel", ("r", "g"), "`label=['r', 'g']` `task='multilabel'`", ("r", "g")),
        ("multilabel", ("dark red", "g"), "`label=['dark red', 'g']` `task='multilabel'`", ("dark red", "g")),
        ("regression", None, "`label=['label0', 'label1']` `task='regression'`", ("label0", "label1")),
    ],
)
def test_tables_report_how_to_read_several_labels(tmp_path, name, task, class_names, loss, label):
    y = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    dataset = replace(plain(), x=torch.rand(3, 1), y=y, task=task, class_names=class_names)
    dropped = write_dataset(dataset, tmp_path / name).dropped
    assert dropped == [f"which columns are labels (read with {loss})"]
    back = read_dataset(tmp_path / name, label=label, task=task)
    assert (back.y.tolist(), back.feature_names) == (y.tolist(), ("x0",))


def named(dataset, *columns):
    return replace(dataset, provenance=Provenance("f.csv", "csv", (), {"label_columns": list(columns)}))


@pytest.mark.parametrize("name", WHOLE)
def test_the_names_of_label_columns_survive(tmp_path, name):
    targets = replace(plain(), y=torch.rand(3, 2), task="regression")
    for dataset, columns in ((labelled(), ["kind"]), (targets, ["low", "high"])):
        back, dropped = through(named(dataset, *columns), tmp_path / name)
        assert (back.reading.get("label_columns"), dropped) == (columns, [])
        assert through(back, tmp_path / name)[0].reading.get("label_columns") == columns
    assert through(named(labelled(), "one", "too", "many"), tmp_path / name)[0].reading.get("label_columns") is None


def test_label_columns_of_an_earlier_release_are_read(tmp_path):
    write_dataset(named(labelled(), "kind"), tmp_path / "t")
    file = tmp_path / "t" / "source.json"
    source = json.loads(file.read_text())
    source["provenance"] = {"notes": [], "details": {"label_columns": [source.pop("label_columns")[0]]}}
    file.write_text(json.dumps(source))
    assert read_dataset(tmp_path / "t").reading.get("label_columns") == ["kind"]


@pytest.mark.parametrize("name", TABLES)
def test_tables_keep_the_names_of_label_columns_or_report_their_loss(tmp_path, name):
    assert through(named(labelled(), "kind"), tmp_path / name)[0].reading.get("label_columns") == ["kind"]
    dataset = named(replace(plain(), y=torch.tensor([0.5, 1.0, 2.0]), task="regression"), "price")
    loss = "which column is the label (read with `label='price'` `task='regression'`)"
    back, dropped = through(dataset, tmp_path / name, label="price", task="regression")
    assert (dropped, back.y.tolist()) == ([loss], [0.5, 1.0, 2.0])
    shadowed = replace(dataset, node_attributes={"class": ["a", "b", "c"]})
    assert loss in through(shadowed, tmp_path / name)[1]
    for taken in (dict(node_attributes={"price": ["a", "b", "c"]}), dict(x=torch.rand(3, 1), feature_names=("price",))):
        back, dropped = through(replace(dataset, **taken), tmp_path / name)
        assert dropped == ["the names of the label columns price (written as label)"]
        assert back.reading.get("label_columns") == ["label"]
    targets = named(replace(plain(), y=torch.rand(3, 2), task="regression"), "id", "t2")
    assert "the names of the label columns id, t2 (written as label0, label1)" in through(targets, tmp_path / name)[1]


@pytest.mark.parametrize("name", TABLES)
def test_tables_report_columns_that_a_reader_interprets_differently(tmp_path, name):
    columns = {"year": [2000, 2001, 2002], "class": ["a", "b", "c"], "phone": [5551234567, 1, 2], "flag": [True] * 3}
    dataset = replace(plain(), node_attributes=columns)
    back, dropped = through(dataset, tmp_path / name)
    assert dropped == [
        "that 'class' is an attribute (a reader uses it as the label)",
        "that 'year' is an attribute (a reader uses it as a feature)",
        "that 'flag' is an attribute (a reader uses it as a feature)",
    ]
    assert (back.class_names, back.feature_names) == (("a", "b", "c"), ("year", "flag"))
    assert back.node_attributes == {"phone": columns["phone"]}
    other = replace(plain(), x=torch.ones(3, 1), feature_names=("Target",), node_attributes={"note": ["a", "b", "c"]})
    back, dropped = through(other, tmp_path / name)
    assert dropped == ["that 'Target' is a feature (a reader uses it as the label)"]
    assert back.x is None
    real = replace(plain(), y=torch.tensor([1.0, 2.0, 1.0]), task="regression")
    back, dropped = through(real, tmp_path / name)
    assert dropped == ["that the labels are real values (read with `task='regression'`)"]
    assert back.task == "classification"
    wide = replace(plain(), x=torch.tensor([[16777217.0], [1.0], [2.0]], dtype=torch.float64))
    back, dropped = through(wide, tmp_path / name)
    assert dropped == [
        "that the features are float64 (a reader uses float32)",
        "that 'x0' is a feature (a reader uses it as an attribute, because 32 bits would round it)",
    ]
    assert back.node_attributes == {"x0": [16777217, 1, 2]}


def test_node_and_hyperedge_attributes_of_the_same_name_are_both_checked(tmp_path):
    loss = "that 'code' is text (it looks like something else)"
    for nodes, edges in ((["1", "2", "3"], ["a", "b"]), (["a", "b", "c"], ["1", "2"])):
        dataset = replace(plain(), node_attributes={"code": nodes}, edge_attributes={"code": edges})
        assert write_dataset(dataset, tmp_path / "t.csv", overwrite=True).dropped == [loss]


@pytest.mark.parametrize("column", [[{"a": 1}, {"b": 2}, None], [[1, 2.5], [3], None], [[1, None], [2.5], None]])
def test_parquet_refuses_what_it_would_change(tmp_path, column):
    with pytest.raises(
        DataError, match="column must have one type. The attribute 'deep' is mixed. Cause: .*lists or dictio"
    ):
        write_dataset(replace(plain(), node_attributes={"deep": column}), tmp_path / "t.parquet")
    assert files_in(tmp_path) == {}
    same = {"deep": [[1, 2], [3], None], "box": [{"a": 1}, None, {"a": 2}], "row": [np.array([1.5]), None, None]}
    back, _ = through(replace(plain(), node_attributes=same), tmp_path / "t.parquet")
    assert back.node_attributes == {**same, "row": [[1.5], None, None]}


@pytest.mark.parametrize("name", ["t", "t.hif.json"])
@pytest.mark.parametrize(
    "column",
    [
        [1.0, math.inf, None],
        ["a", math.nan, None],
        [[1.0], [[math.inf]], None],
        [{"a": [-math.inf]}, {"a": [1]}, None],
        [np.float32(math.inf), 1, None],
        [np.array([1.0]), torch.tensor([math.nan]), None],
    ],
)
@pytest.mark.parametrize("of", ["node", "edge"])
def test_infinity_and_nan_in_attributes_are_refused_at_any_depth(tmp_path, name, column, of):
    count = 3 if of == "node" else 2
    dataset = replace(plain(), **{f"{of}_attributes": {"score": column[:count]}})
    kind = "node" if of == "node" else "hyperedge"
    message = rf"{kind} [01]: .* can store finite numbers only. The .*'score' contains -?(inf|nan)"
    with pytest.raises(DataError, match=message):
        write_dataset(dataset, tmp_path / name)
    assert files_in(tmp_path) == {}


def test_hif_reports_details_that_json_cannot_store(tmp_path):
    details = {"attributes": {"pos": np.zeros(3), "strange": object(), "gap": math.nan, "fine": "x"}}
    dataset = replace(plain(), provenance=Provenance("networkx", "networkx", ("a note",), details))
    back, dropped = through(dataset, tmp_path / "t.hif.json")
    lost = ("attributes.strange", "attributes.gap")
    assert dropped == [f"the detail '{name}' of its provenance" for name in lost]
    origin = back.provenance.details["origin"]
    assert origin["details"] == {"attributes": {"pos": [0.0, 0.0, 0.0], "fine": "x"}}
    assert origin["notes"] == ["a note", f"details left out, because JSON cannot store them: {', '.join(lost)}"]


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [
        ("t.csv", ["t.nodes.csv", "t.hyperedges.csv"]),
        ("t.tsv.gz", ["t.nodes.tsv.gz", "t.hyperedges.tsv.gz"]),
        ("t.parquet", ["t.nodes.parquet", "t.hyperedges.parquet"]),
        ("hyperedges-t.txt", ["node-labels-t.txt", "label-names-t.txt", "node-names-t.txt", "node-labels-t.txt.gz"]),
    ],
)
def test_overwriting_removes_neighbours_that_would_be_read_with_the_file(tmp_path, name, neighbours):
    for neighbour in neighbours:
        (tmp_path / neighbour).write_bytes(b"stale")
        with pytest.raises(UsageError, match=f"{neighbour} exists already"):
            write_dataset(plain(), tmp_path / name)
        (tmp_path / neighbour).unlink()
    for neighbour in neighbours:
        (tmp_path / neighbour).write_bytes(b"stale")
    (tmp_path / "t.other.csv").write_bytes(b"not ours")
    written = write_dataset(plain(), tmp_path / name, overwrite=True)
    assert sorted(files_in(tmp_path)) == sorted([name, "t.other.csv"])
    assert sorted(path.name for path in written.removed) == sorted(neighbours)


DATE = np.datetime64("2020-01-01")


@pytest.mark.parametrize(
    ("name", "parts", "message"),
    [
        ("t.csv", dict(node_attributes={"a": [[1], [2], None]}), "A text table can store only text and numbers"),
        ("t.tsv", dict(edge_attributes={"a": [{"b": 1}, None]}), "A text table can store only text and numbers"),
        ("t.parquet", dict(node_attributes={"a": [1, "x", None]}), "column must have one type. The attribute 'a'"),
        ("t.csv", dict(node_attributes={"a": [2**64, 1, None]}), "column must have one type. The attribute 'a'"),
        ("t.csv", dict(node_attributes={"id": [1, 2, 3]}), "Column names must be unique. 'id'"),
        ("t.csv", dict(node_attributes={"label": [1, 2, 3]}), "Column names must be unique. 'label'"),
        ("t.csv", dict(x=torch.ones(3, 1), feature_names=("label",)), "Column names must be unique. 'label'"),
        ("t.parquet", dict(x=torch.ones(3, 2), feature_names=("a", "a")), "Column names must be unique. 'a'"),
        ("t.csv", dict(node_attributes={"a\nb": [1, 2, 3]}), r"must not contain line breaks. Got 'a\\nb'"),
        ("t.csv", dict(edge_attributes={"id": [1, 2]}), "Column names must be unique. 'id'"),
        ("t.csv", dict(node_ids=Ids(["a", 1, "b"])), "node ids in a table must be all text or all 64-bit integers"),
        ("t.parquet", dict(edge_ids=Ids([2**70, 1])), "hyperedge ids in a table must be"),
        ("t.csv", dict(edge_ids=Ids(["", "a"])), "cannot store an empty hyperedge id"),
        (
            "t.hgr",
            dict(node_attributes={"weight": [1, -1, 2]}),
            "node weights must be integers of 0 or more",
        ),
        ("t.hgr", dict(node_attributes={"weight": [1, 0.5, 2]}), "node weights must be integers"),
        ("t.hgr", dict(node_attributes={"weight": [1, None, 2]}), "node weights must be integers"),
        ("t.hgr", dict(node_attributes={"weight": [1, "x", 2]}), "node weights must be integers"),
        ("t.hgr", dict(node_attributes={"weight": [1, 10**30, 2]}), "node weights must be integers"),
        ("hyperedges-t.txt", dict(class_names=("a\n", "b")), r"must not contain line breaks. Got 'a\\n'"),
        ("hyperedges-t.txt", dict(y=torch.tensor([0, -1, 1])), "Cornell text cannot store unlabelled nodes"),
        (
            "t",
            dict(node_attributes={"a": [DATE.astype(object), 1, 2], "b": [object(), 1, 2]}),
            "JSON cannot store .* values of type object are not supported",
        ),
        (
            "t",
            dict(provenance=Provenance("x", "x", (), {"source": {"a": object()}})),
            "JSON cannot store .* values of type object are not supported",
        ),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_a_refused_write_changes_nothing(tmp_path, name, parts, message, exists):
    if exists:
        write_dataset(labelled(), tmp_path / name)
    before = files_in(tmp_path)
    with pytest.raises(DataError, match=message):
        write_dataset(replace(labelled(), **parts), tmp_path / name, overwrite=True)
    assert files_in(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


def test_weights_and_an_attribute_named_weight_conflict_in_tables(tmp_path):
    weighted = Hypergraph.from_hyperedges([[0, 1]], edge_weight=[2.0])
    both = NodeDataset(name="x", hypergraph=weighted, edge_attributes={"weight": ["heavy"]})
    with pytest.raises(DataError, match="Column names must be unique. 'weight'"):
        write_dataset(both, tmp_path / "t.csv")
    alone = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0]]), edge_attributes={"weight": [3]})
    back, dropped = through(alone, tmp_path / "t.csv")
    assert dropped == ["that 'weight' is an attribute of hyperedges (a reader uses it as their weight)"]
    assert back.hypergraph.edge_weight.tolist() == [3.0]
    text = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0]]), edge_attributes={"weight": ["big"]})
    back, dropped = through(text, tmp_path / "t.csv")
    assert (dropped, dict(back.edge_attributes)) == ([], {"weight": ["big"]})


def test_invalid_names_and_targets_are_usage_errors(tmp_path):
    with pytest.raises(UsageError, match="format of 'a.xyz' cannot be determined from its name"):
        write_dataset(plain(), tmp_path / "a.xyz")
    with pytest.raises(UsageError, match="A Cornell file must be named 'hyperedges-NAME.txt'"):
        write_dataset(plain(), tmp_path / "a.xyz", format="cornell")
    with pytest.raises(UsageError, match="'.*nowhere' must exist before 'a.csv' is written into it"):
        write_dataset(plain(), tmp_path / "nowhere" / "a.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="must be a file. It is a folder"):
        write_dataset(plain(), tmp_path / "folder.csv", overwrite=True)
    write_dataset(plain(), tmp_path / "a.xyz", format="hif")
    assert read_dataset(tmp_path / "a.xyz", format="hif").hypergraph.num_edges == 2
    assert sorted(files_in(tmp_path)) == ["a.xyz"]


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_format_is_named(tmp_path):
    with pytest.raises(UsageError, match="The format must be one of hif, .*Got 'tables'.*Did you mean 'table'"):
        write_dataset(plain(), tmp_path / "a.csv", format="tables")


def test_a_matrix_of_one_target_stays_a_matrix_in_a_folder(tmp_path):
    for y, task in ((torch.ones(3, 1), "regression"), (torch.ones(3), "regression"), (torch.ones(3, 1), "multilabel")):
        dataset = replace(plain(), y=y, task=task)
        back, dropped = through(dataset, tmp_path / "t")
        assert dropped == []
        assert_same(back, dataset)


def test_compressed_files_are_compressed(tmp_path):
    for name in ("t.csv.gz", "t.hif.json.gz", "t.hgr.gz", "hyperedges-t.txt.gz"):
        for path in write_dataset(labelled(), tmp_path / name).paths:
            assert gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_floating_type_survives(tmp_path, name, kind, sparse):
    x = sparse_features(sp.csr_array(np.eye(3) / 3), kind) if sparse else torch.rand(3, 2).to(kind)
    dataset = replace(plain(), x=x, y=torch.rand(3, 2).to(kind), task="regression")
    back, dropped = through(dataset, tmp_path / name)
    assert dropped == []
    assert_same(back, dataset)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_tables_report_that_narrow_types_become_float32(tmp_path, name, kind):
    dataset = replace(plain(), x=torch.rand(3, 2).to(kind), feature_names=("a", "b"))
    back, dropped = through(dataset, tmp_path / name)
    assert dropped == [f"that the features are {str(kind).removeprefix('torch.')} (a reader uses float32)"]
    assert torch.equal(back.x, dataset.x.float())


@pytest.mark.parametrize("name", WHOLE)
def test_labels_of_an_empty_dataset_survive(tmp_path, name):
    nothing = NodeDataset(
        name="x", hypergraph=Hypergraph.from_hyperedges([], num_nodes=0), y=torch.zeros(0, 2), task="multilabel"
    )
    assert_same(through(nothing, tmp_path / name)[0], nothing)


AND_HIF = ["t.hif.json", "t"]


@pytest.mark.parametrize("name", AND_HIF)
def test_infinite_features_survive_or_are_refused(tmp_path, name):
    dataset = replace(plain(), x=torch.tensor([[1.0], [math.inf], [0.0]]))
    try:
        back, _ = through(dataset, tmp_path / name)
    except DataError:
        assert files_in(tmp_path) == {}
    else:
        assert_same(back, dataset)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("attribute", ["label", "features", "weight", "id"])
def test_attributes_with_reserved_names_survive_or_are_refused(tmp_path, name, attribute):
    dataset = labelled(x=torch.ones(3, 1), node_attributes={attribute: ["x", "y", "z"]})
    try:
        back, _ = through(dataset, tmp_path / name)
    except DataError:
        assert files_in(tmp_path) == {}
    else:
        assert_same(back, dataset)


@pytest.mark.parametrize("name", AND_HIF)
def test_arrays_and_their_scalars_are_stored_as_attributes(tmp_path, name):
    dataset = NodeDataset(
        name="x",
        hypergraph=Hypergraph.from_hyperedges([[0, 1]]),
        node_attributes={"scalar": [np.float32(0.5), torch.tensor(2)], "row": [np.array([1, 2]), None]},
    )
    expected = {"scalar": [0.5, 2], "row": [[1, 2], None]}
    assert through(dataset, tmp_path / name)[0].node_attributes == expected


def test_a_folder_describes_the_dataset_and_not_its_source(tmp_path):
    source = {"label_width": 2, "label_type": "float16", "features_type": "float64", "label_names": ["c"], "by": "us"}
    dataset = replace(labelled(x=torch.ones(3, 1)), class_names=None)
    dataset = replace(dataset, provenance=Provenance("t", "folder", (), {"source": source}))
    back, _ = through(dataset, tmp_path / "t")
    assert_same(back, dataset)
    assert not {"label_width", "label_type", "features_type", "label_names"} & set(back.provenance.details["source"])
    assert back.provenance.details["source"]["by"] == "us"


def test_a_folder_keeps_notes_and_details_of_every_reading(tmp_path):
    details = {"label_columns": ["kind"], "strange": object(), "source": {"by": "us"}}
    dataset = replace(plain(), provenance=Provenance("t.csv", "csv", ("a note",), details))
    back, dropped = through(dataset, tmp_path / "t")
    assert dropped == ["the detail 'strange' of its provenance"]
    first = {"notes": ["a note"], "details": {"label_columns": ["kind"]}}
    assert back.provenance.details["source"]["provenance"] == first
    again, dropped = through(back, tmp_path / "u")
    assert (dropped, again.provenance.details["source"]["provenance"]) == ([], first)
    noted = replace(again, provenance=replace(again.provenance, notes=("another",)))
    third, dropped = through(noted, tmp_path / "v")
    assert dropped == []
    assert third.provenance.details["source"]["provenance"] == {"notes": ["another"], "details": {"provenance": first}}


@pytest.mark.parametrize("name", TABLES)
def test_tables_report_that_a_class_without_a_name_is_lost(tmp_path, name):
    back, dropped = through(replace(labelled(), class_names=("", "b")), tmp_path / name)
    assert "the labels of the class '' (a reader treats them as missing)" in dropped
    assert back.y.tolist() == [-1, 0, -1]


def test_hmetis_reports_that_weights_become_integers(tmp_path):
    for weights, lost in ((["1", "2", "3"], True), ([1.0, 2.0, 3.0], True), ([1, 2, 3], False)):
        back, dropped = through(replace(plain(), node_attributes={"weight": weights}), tmp_path / "t.hgr")
        assert back.node_attributes["weight"] == [1, 2, 3]
        assert ("the type of the node weights (written as integers)" in dropped) == lost
