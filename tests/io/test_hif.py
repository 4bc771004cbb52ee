"""HIF: rules, errors, the lossless round trip and streaming."""

import gzip
import json
import random

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError, Limits, read_dataset, read_hif, write_hif
from edhnn.errors import EdhnnError, LimitError
from edhnn.io import dataset_from_document
from edhnn.io.hif import reader as hif_reader
from tests.strategies import examples

# The reference for the fast reader: the rules of the format as a JSON schema, checked by an independent library.
# JSON Schema accepts 1.0 as an integer, but an id must be written as an integer, so the test checks ids separately.
ID = {"type": ["string", "integer"]}
SCHEMA = {
    "type": "object",
    "required": ["incidences"],
    "additionalProperties": False,
    "properties": {
        "network-type": {"enum": ["undirected", "directed", "asc"]},
        "metadata": {"type": "object"},
        "incidences": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["edge", "node"],
                "additionalProperties": False,
                "properties": {
                    "edge": ID,
                    "node": ID,
                    "weight": {"type": "number"},
                    "direction": {"enum": ["head", "tail"]},
                    "attrs": {"type": "object"},
                },
            },
        },
        **{
            section: {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": [key],
                    "additionalProperties": False,
                    "properties": {key: ID, "weight": {"type": "number"}, "attrs": {"type": "object"}},
                },
            }
            for section, key in (("nodes", "node"), ("edges", "edge"))
        },
    },
}


def write_text(folder, text, name="x.hif.json"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_json(folder, document):
    return read_hif(write_text(folder, json.dumps(document)))


EVERYTHING = {
    "network-type": "directed",
    "metadata": {"name": "zoo", "nested": {"list": [1, 2.5, None, True, {"deep": []}], "empty": {}}},
    "nodes": [
        {"node": 1, "weight": 2},
        {"node": "1", "weight": 2.0, "attrs": {"kind": "text, not number"}},
        {"node": 1},
        {"node": "alone", "attrs": {}},
        {"node": -7, "attrs": {"quote": 'a "quoted" }]{[ \\ word', "unicode": "Lovász é 🐘"}},
    ],
    "edges": [
        {"edge": "empty"},
        {"edge": 0, "weight": 0.5, "attrs": {"a": None}},
        {"edge": "0"},
        {"edge": "empty", "weight": 3},
    ],
    "incidences": [
        {"edge": 0, "node": 1, "direction": "head", "weight": 1},
        {"edge": 0, "node": "1", "direction": "tail", "attrs": {"since": 1999}},
        {"edge": 0, "node": 1, "direction": "head", "weight": 1},
        {"edge": "0", "node": "new", "weight": 12345678901234567890},
        {"edge": "late", "node": 12345678901234567890123, "weight": 1e-300},
        {"edge": "late", "node": -7},
    ],
}


@pytest.mark.parametrize("name", ["copy.hif.json", "copy.hif.json.gz"])
def test_writing_restores_the_document(tmp_path, name):
    document = read_json(tmp_path, EVERYTHING)
    write_hif(document, tmp_path / name)
    text = (tmp_path / name).read_bytes()
    again = json.loads(gzip.decompress(text) if name.endswith(".gz") else text)
    assert again == EVERYTHING
    assert json.dumps(again, sort_keys=True) == json.dumps(EVERYTHING, sort_keys=True)  # distinguishes 1 and 1.0


def test_the_hypergraph_of_a_document(tmp_path):
    document = read_json(tmp_path, EVERYTHING)
    hypergraph = document.hypergraph()
    assert document.node_ids.to_list() == [1, "1", "alone", -7, "new", 12345678901234567890123]
    assert document.edge_ids.to_list() == ["empty", 0, "0", "late"]
    assert list(hypergraph.hyperedges()) == [[], [0, 1], [4], [3, 5]]
    assert hypergraph.merged_memberships == 1
    assert hypergraph.edge_weight is not None
    assert hypergraph.edge_weight.tolist() == [3.0, 0.5, 1.0, 1.0]
    assert hypergraph.incidence_weight is not None
    assert hypergraph.incidence_weight.tolist() == [1.0, 1.0, 12345678901234567890.0, 1.0, 1e-300]


def test_a_dataset_reports_what_it_cannot_store(tmp_path):
    dataset = dataset_from_document(read_json(tmp_path, EVERYTHING), name="zoo", source="zoo.hif.json")
    assert dataset.provenance.details["left_behind"] == [
        "the directions",
        "the attributes of incidences",
        "the metadata",
        "1 duplicate records of incidences (merged; the largest weight is kept)",
        "1 duplicate records of nodes (merged; the last value of an attribute is kept)",
        "1 duplicate records of edges (merged; the last value of an attribute is kept)",
    ]
    assert dataset.node_attributes["weight"] == [2, 2.0, None, None, None, None]


@pytest.mark.parametrize("kind", ["directed", "asc"])
def test_a_dataset_reports_that_it_drops_the_network_type(tmp_path, kind):
    document = {"network-type": kind, "incidences": [{"edge": 1, "node": 2}]}
    dataset = dataset_from_document(read_json(tmp_path, document), name="a", source="a.hif.json")
    assert dataset.provenance.details["left_behind"] == [f"the network type '{kind}'"]
    assert dataset.provenance.notes == (f"only in the document, not in the dataset: the network type '{kind}'",)


def test_a_manifest_that_exceeds_the_limits_is_refused(tmp_path):
    def read_with_manifest(limits=None, record=None, **manifest):
        document = {"metadata": {"edhnn": {"name": "a", **manifest}}, "nodes": [{"node": 1, "attrs": record or {}}]}
        path = write_text(tmp_path, json.dumps({**document, "incidences": []}))
        return read_dataset(path, limits=limits)

    unlabelled = dict(task="regression", label_width=10**15)
    for record, manifest in (
        ({}, unlabelled),
        ({"label": 10**15}, dict(task="classification")),
        ({"features": {"0": 1.0}}, dict(num_features=10**15, sparse=True)),
    ):
        with pytest.raises(LimitError, match="x.hif.json, .*at most 1000000 .*Got 1000000000000"):
            read_with_manifest(record=record, **manifest)
    with pytest.raises(LimitError, match="labels must take at most 1.0 KiB. Got 1000 columns for 1 nodes, 11.7 KiB"):
        read_with_manifest(Limits(max_bytes=1024), task="regression", label_width=1000)
    assert read_with_manifest(task="regression", label_width=3).y.shape == (1, 3)
    for width in ({"num_features": -1}, {"task": "regression", "label_width": -1}):
        with pytest.raises(DataError, match=r"x.hif.json: .*'edhnn'.*>= 0.*Remove the attribute"):
            read_with_manifest(**width)


@pytest.mark.parametrize("label", [[1.0], [1.0, 2.0, 3.0], "12", 5])
def test_labels_must_have_the_width_of_the_manifest(tmp_path, label):
    manifest = {"name": "a", "task": "regression", "label_width": 2}
    document = {"metadata": {"edhnn": manifest}, "incidences": []}
    document["nodes"] = [{"node": 1, "attrs": {"label": [0.5, None]}}, {"node": 2}, {"node": 3, "attrs": {}}]
    path = write_text(tmp_path, json.dumps(document))
    assert read_dataset(path).y.isnan().tolist() == [[False, True], [True, True], [True, True]]
    document["nodes"][2]["attrs"]["label"] = label
    with pytest.raises(DataError, match="'label' must be 2 numbers at every node"):
        read_dataset(write_text(tmp_path, json.dumps(document)))


@pytest.mark.parametrize(("section", "key"), [("nodes", "node"), ("edges", "edge")])
def test_attributes_that_exceed_the_limits_are_refused(tmp_path, section, key):
    records = [{key: number, "attrs": {f"k{number}": "x"}} for number in range(100)]
    path = write_text(tmp_path, json.dumps({"incidences": [], section: records}))
    with pytest.raises(LimitError, match=f"{section}: The attributes of '{section}' must take .*Got 100 keys for 100"):
        read_dataset(path, limits=Limits(max_bytes=79_999))
    assert read_dataset(path, limits=Limits(max_bytes=80_000)).hypergraph.num_edges == (100 if key == "edge" else 0)
    claim = {f"{key}_attributes": [f"k{number}" for number in range(100)]}
    document = {
        "metadata": {"edhnn": {"name": "a", **claim}},
        "incidences": [],
        section: [{key: n} for n in range(100)],
    }
    with pytest.raises(LimitError, match="Got 100 keys for 100"):
        read_dataset(write_text(tmp_path, json.dumps(document)), limits=Limits(max_bytes=79_999))


def test_an_error_in_the_manifest_names_the_file(tmp_path):
    manifest = {"name": "a", "task": "multilabel", "label_width": 2, "class_names": ["a"]}
    document = {"metadata": {"edhnn": manifest}, "incidences": [], "nodes": [{"node": 1}]}
    with pytest.raises(DataError, match="x.hif.json: 'class_names' must name 2 label columns. Got 1"):
        read_dataset(write_text(tmp_path, json.dumps(document)))


def test_metadata_that_json_cannot_store_is_refused(tmp_path):
    document = read_json(tmp_path, {"incidences": []})
    document.metadata = {"where": object()}
    with pytest.raises(DataError, match="JSON cannot store the content of 'metadata'. Cause: "):
        write_hif(document, tmp_path / "out.hif.json")
    assert not (tmp_path / "out.hif.json").exists()


@pytest.mark.parametrize(
    "document",
    [
        {"incidences": []},
        {"incidences": [], "nodes": [], "edges": [], "metadata": {}},
        {"network-type": "directed", "incidences": [{"edge": 1, "node": 2}]},
        {"network-type": "asc", "incidences": [{"edge": 1, "node": 2}, {"edge": 1, "node": 2}]},
        {"incidences": [{"edge": "", "node": ""}]},
        {"incidences": [], "nodes": [{"node": 1}, {"node": 1}], "edges": [{"edge": 1}, {"edge": 1}]},
        {"incidences": [{"edge": 1, "node": 2, "attrs": {"anything": {"goes": [1, {"here": None}]}}}]},
    ],
)
def test_valid_corner_cases(tmp_path, document):
    jsonschema.validate(document, SCHEMA)
    write_hif(read_json(tmp_path, document), tmp_path / "copy.hif.json")
    assert json.loads((tmp_path / "copy.hif.json").read_bytes()) == document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "key 'incidences' is missing"),
        ({"incidences": {}}, "'incidences' must be an array"),
        ({"incidences": [], "extra": 1}, "Unknown key 'extra'"),
        ({"incidences": [{"edge": 1}]}, r"incidences\[0\]"),
        ({"incidences": [{"edge": 1, "node": 1}, {"edge": 1.0, "node": 1}]}, r"incidences\[1\]\.edge: .*float"),
        ({"incidences": [{"edge": 1, "node": True}]}, r"incidences\[0\]\.node: .*bool"),
        ({"incidences": [{"edge": 1, "node": None}]}, r"incidences\[0\]\.node"),
        ({"incidences": [{"edge": 1, "node": 1, "color": "red"}]}, r"incidences\[0\]: .*unknown field `color`"),
        ({"incidences": [{"edge": 1, "node": 1, "weight": "1"}]}, r"incidences\[0\]\.weight"),
        ({"incidences": [{"edge": 1, "node": 1, "weight": None}]}, r"incidences\[0\]\.weight"),
        ({"incidences": [{"edge": 1, "node": 1, "direction": "in"}]}, r"incidences\[0\]\.direction"),
        ({"incidences": [{"edge": 1, "node": 1, "attrs": []}]}, r"incidences\[0\]\.attrs"),
        ({"incidences": [1]}, r"incidences\[0\]"),
        ({"incidences": [], "nodes": [{"node": 1}, {"edge": 1}]}, r"nodes\[1\]"),
        ({"incidences": [], "nodes": [{"node": 1, "direction": "head"}]}, r"nodes\[0\]"),
        ({"incidences": [], "edges": [{"edge": [1]}]}, r"edges\[0\]\.edge"),
        ({"incidences": [], "network-type": "mixed"}, "'network-type'"),
        ({"incidences": [], "metadata": []}, "'metadata'"),
    ],
)
def test_invalid_documents_are_refused_with_the_record_named(tmp_path, document, message):
    with pytest.raises(DataError, match=message):
        read_json(tmp_path, document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expected '{'. Got the end of the file"),
        (b"[]", "Expected '{'. Got"),
        (b'{"incidences": [', "ends inside"),
        (b'{"incidences": [{"edge": 1, "node"', "ends inside"),
        (b'{"incidences": []', "Expected ','. Got the end of the file"),
        (b'{"incidences": []} {}', "must end after the document"),
        (b'{"incidences": [], }', "Expected a key in double quotes"),
        (b'{"incidences": [],, "nodes": []}', "Expected a key in double quotes"),
        (b'{"incidences": [{"edge":1,"node":1},]}', "incidences.*trailing comma"),
        (b'{"incidences": [{"edge":1,"node":1} {"edge":1,"node":1}]}', "incidences"),
        (b'{"incidences": [,{"edge":1,"node":1}]}', "incidences"),
        (b'{"incidences": [], "incidences": []}', "Duplicate key 'incidences'"),
        (b'{"incidences": [{"edge":1,"node":1,"weight":NaN}]}', "incidences"),
        (b'{"incidences": [{"edge":1,"node":1,"weight":1e999}]}', "incidences"),
        (b'{"incidences": [{"edge":1,"node":"\xff"}]}', "incidences"),
        (b'{"incidences": [{"edge":1,"node":"\\ud800"}]}', "incidences"),
        (b'{"incidences": [}', "Expected ']'. Got"),
        (b"\x1f\x8b\x08\x00broken", "gzip"),
        (gzip.compress(b'{"incidences": []}', mtime=0)[:-6], "gzip"),
    ],
)
def test_broken_text_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_hif(write_text(tmp_path, text))


def test_negative_weights_are_valid_in_hif_but_not_in_a_hypergraph(tmp_path):
    document = read_json(tmp_path, {"incidences": [{"edge": 1, "node": 1}, {"edge": 1, "node": 2, "weight": -1}]})
    with pytest.raises(DataError, match=r"incidences\[1\]: .*finite and 0 or more. Got -1"):
        document.hypergraph()


def test_limits(tmp_path):
    bomb = write_text(tmp_path, gzip.compress(b'{"incidences": [' + b" " * 10**6), "bomb.hif.json")
    with pytest.raises(LimitError, match="`max_bytes=`"):
        read_hif(bomb, Limits(max_bytes=10**5))
    deep = write_text(tmp_path, b'{"metadata": ' + b'{"a":' * 10**5 + b"1" + b"}" * 10**5 + b', "incidences": []}')
    with pytest.raises(LimitError, match="nested too deep"):
        read_hif(deep)
    in_attrs = b'{"incidences": [{"edge":1,"node":1,"attrs":' + b'{"a":' * 10**5 + b"1" + b"}" * 10**5 + b"}]}"
    with pytest.raises(LimitError, match="nested too deep"):
        read_hif(write_text(tmp_path, in_attrs))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property, because creating one for each is slow."""
    return tmp_path_factory.mktemp("hif")


IDS = st.one_of(st.integers(-3, 3), st.sampled_from(["", "1", "a", "é\n", '"', "\\", "}]", "{["]), st.integers())
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
WEIGHTS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
ATTRS = st.dictionaries(st.text(max_size=4), JSON, max_size=3)


def records(*keys):
    required = dict.fromkeys(keys, IDS)
    optional = {"weight": WEIGHTS, "attrs": ATTRS}
    if len(keys) == 2:
        optional["direction"] = st.sampled_from(["head", "tail"])
    return st.lists(st.fixed_dictionaries(required, optional=optional), max_size=6)


DOCUMENTS = st.fixed_dictionaries(
    {"incidences": records("edge", "node")},
    optional={
        "nodes": records("node"),
        "edges": records("edge"),
        "network-type": st.sampled_from(["undirected", "directed", "asc"]),
        "metadata": ATTRS,
    },
)


@settings(max_examples=examples(400))
@given(DOCUMENTS, st.randoms(use_true_random=False), st.sampled_from([31, 256, 4 * 2**20]))
def test_documents_survive_any_key_order_and_block_size(folder, document, random, block):
    keys = list(document)
    random.shuffle(keys)
    text = json.dumps({key: document[key] for key in keys}, indent=random.choice([None, 1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hif_reader, "_BLOCK_BYTES", block)
        read = read_hif(write_text(folder, text))
    write_hif(read, folder / "copy.hif.json")
    again = json.loads((folder / "copy.hif.json").read_bytes())
    assert again == document
    assert json.dumps(again, sort_keys=True) == json.dumps(document, sort_keys=True)


def mutate(document, random):
    """Change one value outside attrs and metadata."""
    copy = json.loads(json.dumps(document))
    wrong = random.choice([None, True, 1.5, 1, "x", [], {}, "head"])
    where = random.choice(["top", "record"])
    sections = [key for key in ("incidences", "nodes", "edges") if copy.get(key)]
    if where == "top" or not sections:
        copy[random.choice(["incidences", "nodes", "edges", "network-type", "metadata", "other"])] = wrong
    else:
        record = random.choice(copy[random.choice(sections)])
        key = random.choice(["edge", "node", "weight", "direction", "attrs", "other"])
        if random.random() < 0.3:
            record.pop(key, None)
        else:
            record[key] = wrong
    return copy


def ids_are_as_written(document):
    sections = [document.get(name) for name in ("incidences", "nodes", "edges")]
    ids = [
        r.get(k) for s in sections if isinstance(s, list) for r in s if isinstance(r, dict) for k in ("edge", "node")
    ]
    return not any(isinstance(value, float) for value in ids)


@settings(max_examples=examples(600))
@given(DOCUMENTS, st.integers(0, 2**32))
def test_the_reader_accepts_exactly_what_the_schema_accepts(folder, document, seed):
    mutated = mutate(document, random.Random(seed))
    valid = jsonschema.Draft7Validator(SCHEMA).is_valid(mutated) and ids_are_as_written(mutated)
    path = write_text(folder, json.dumps(mutated))
    try:
        read_hif(path)
        accepted = True
    except DataError:
        accepted = False
    assert accepted == valid


HUGE = b"9" * 400
WITH_MANIFEST = b'{"metadata":{"edhnn":{"name":"x",%s}},"nodes":[{"node":1,"attrs":%s}],"incidences":[]}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"incidences":[{"edge":1,"node":1,"weight":%s}]}' % HUGE,
        b'{"nodes":[{"node":1,"weight":%s}],"incidences":[]}' % HUGE,
        WITH_MANIFEST % (b'"num_features":1', b'{"features":[%s]}' % HUGE),
        WITH_MANIFEST % (b'"num_features":1,"sparse":true', b'{"features":{"0":%s}}' % HUGE),
        WITH_MANIFEST % (b'"task":"regression"', b'{"label":%s}' % HUGE),
        WITH_MANIFEST % (b'"task":"regression","label_width":1', b'{"label":[%s]}' % HUGE),
        WITH_MANIFEST % (b'"task":"classification"', b'{"label":99999999999999999999}'),
    ],
    ids=["weight", "node weight", "features", "sparse features", "label", "labels", "class"],
)
def test_numbers_beyond_all_floats_are_read_or_refused(tmp_path, text):
    """A run with 5,000 mutations found these texts. The everyday number of mutations does not."""
    (tmp_path / "x.hif.json").write_bytes(text)
    try:
        read_dataset(tmp_path / "x.hif.json")
    except EdhnnError:
        return
