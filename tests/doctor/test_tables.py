"""Every kind of dirt in a table: the doctor counts it, reads the rest, and its command fixes it."""

import csv
import gzip
import json
import shlex
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from benchmarks.shop import write_shop

from edhnn import DataError, LimitError, Limits, UsageError, read_dataset
from edhnn.cli.main import main
from edhnn.data.ids import Ids
from edhnn.doctor import Cleaning, check_table, clean_table, read_in_part
from edhnn.doctor.checks import check_ids, check_labels
from edhnn.doctor.spelling import spelling_groups
from tests.doctor.test_diagnose import healthy


@pytest.fixture
def here(monkeypatch, capsys):
    """Return a function that runs the command in this process and returns its exit code, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["edhnn", *words])
        monkeypatch.setenv("COLUMNS", "500")
        with pytest.raises(SystemExit) as caught:
            main()
        return SimpleNamespace(code=int(caught.value.code or 0), **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def succeed(here):
    def run(*words):
        done = here(*words)
        assert done.code == 0, done.err
        return done

    return run


@pytest.fixture
def refuse(here):
    def run(*words, code=2):
        done = here(*words)
        assert done.code == code, (done.out, done.err)
        return done.err

    return run


ROWS = b"node,edge,note\na,1,x\nb,1,y\nc,2,z\na,2,x\nd,3,y\ne,3,z\nb,3,\n"
MARKED = b"\xef\xbb\xbf"


def with_line(line, at=3):
    lines = ROWS.splitlines(keepends=True)
    return b"".join([*lines[:at], line + b"\n", *lines[at:]])


WIDE = "node,edge,note\na,1,Käse\nb,1,y\nc,2,\n".encode()
DIRT = {  # kind: content, code of the finding, its count, rows after the command
    "too few fields": (with_line(b"f,3"), "ragged-lines", 1, 7),
    "too many fields": (with_line(b"f,3,x,y"), "ragged-lines", 1, 7),
    "another separator": (with_line(b"f;3;x"), "mixed-separators", 1, 8),
    "empty fields after the last": (with_line(b"f,3,x,,"), "extra-fields", 1, 8),
    "an open quote": (with_line(b'f,"3,x'), "open-quotes", 1, 7),
    "text after a quote": (with_line(b'f,"3" inch,x'), "open-quotes", 1, 7),
    "zero bytes": (with_line(b"f,3,\0"), "zero-bytes", 1, 7),
    "the header again": (with_line(b"node,edge,note"), "repeated-header", 1, 7),
    "an empty line": (with_line(b""), "blank-lines", 1, 7),
    "an empty id": (with_line(b"f,,x"), "empty-ids", 1, 7),
    "only separators": (with_line(b",,"), "empty-ids", 2, 7),
    "latin-1": (WIDE.decode().encode("cp1252"), "not-utf-8", 1, 3),
    "two encodings": (WIDE + "d,2,Müsli\n".encode("cp1252"), "not-utf-8", 1, 3),
    "UTF-16": (ROWS.decode().encode("utf-16"), "encoding", 8, 7),
    "UTF-16 without a mark": (ROWS.decode().encode("utf-16-le"), "encoding", 8, 7),
    "titles": (b"Orders of May\n\n" + ROWS, "lines-above-header", 2, 7),
    "numbers for names": (b"1,2\n3,2\n1,4\n", "no-header", 1, 3),
    "data for names": (b"milk,1\nbread,1\nmilk,2\n", "no-header", 1, 3),
    "a repeated name": (ROWS.replace(b"note", b"node"), "column-names", 1, 7),
    "names missing": (b"node,edge,,\na,1,,\nb,1,,\n", "column-names", 1, 2),
    "a basket per line": (b"milk,bread,eggs\nmilk,beer\nbread\n", "one-basket-per-line", 3, 6),
    "CR alone": (ROWS.replace(b"\n", b"\r"), None, 0, 7),
}


def examined(path, **options):
    part = read_in_part(path, lambda cleaned: read_dataset(cleaned.get(path, path), **options), Limits())
    return part, {finding.code: finding for check in part.checks for finding in check.findings}


@pytest.mark.parametrize("kind", DIRT)
def test_each_kind_is_counted_and_its_command_fixes_it(tmp_path, succeed, kind):
    content, code, count, rows = DIRT[kind]
    path = tmp_path / "my orders.csv"
    path.write_bytes(content)
    part, found = examined(path)
    assert part.dataset is not None  # the rest was read
    command = part.checks[0].command(part.checks[0].needed.options())
    if code is not None:
        assert found[code].count == count
        command = part.checks[0].command(found[code].clean)
    words = shlex.split(command)
    assert words[:3] == ["edhnn", "data", "clean"]
    report = json.loads(succeed(*words[1:], "--json").out)
    target = tmp_path / "my orders.clean.csv"
    assert report["written"] == str(target)
    with target.open(encoding="utf-8", newline="") as stream:
        assert report["rows"] == rows == sum(any(row) for row in csv.reader(stream)) - 1
    again, left = examined(target)
    assert code not in left or (kind == "an empty line" and not left)
    assert again.refusal is None
    assert again.dataset.hypergraph.num_incidences > 0


def test_a_clean_table_has_no_findings_and_is_not_changed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS)
    assert check_table(path, Limits()).findings == ()
    report = clean_table(
        path, tmp_path / "out.csv", Cleaning(drop_bad_lines=True, drop_empty=True, ids=("node", "edge"))
    )
    assert (tmp_path / "out.csv").read_bytes() == ROWS
    assert not report.changes


def test_findings_have_line_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'node,edge\na,"two\nlines"\nb\nc,1,2\n\nd,1\n')
    (finding,) = [f for f in check_table(path, Limits()).findings if f.code == "ragged-lines"]
    assert "line 4: 'b'; line 5: 'c,1,2'" in finding.message


def test_encodings_are_offered_and_never_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("node,edge\nKäse,1\nMilch,1\n".encode("cp1252"))
    with pytest.raises(DataError, match="line 2: .*`encoding=`"):
        clean_table(path, tmp_path / "out.csv", Cleaning())
    assert not (tmp_path / "out.csv").exists()
    finding = examined(path)[1]["not-utf-8"]
    assert "'Käse' in cp1252" in finding.message and "'Kдse' in cp1251" in finding.message
    clean_table(path, tmp_path / "out.csv", Cleaning(encoding="cp1251"))
    assert "Kдse" in (tmp_path / "out.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("end", "mark", "quote"), [("\n", b"", ""), ("\r\n", MARKED, ""), ("\n", MARKED, '"'), ("\r\n", b"", '"')]
)
@pytest.mark.parametrize("separator", ",;\t|")
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_exports_of_spreadsheets_are_read_by_every_command(tmp_path, name, separator, end, mark, quote):
    cells = [["order", "product", "net, price"], ["1", "007", "1.234,50"], ["1", "12", "0,99"], ["2", "007", "1"]]
    quoted = quote or ('"' if separator == "," else "")
    text = "".join(separator.join(f"{quoted}{cell}{quoted}" for cell in row) + end for row in cells)
    content = mark + text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    dataset = read_dataset(path)
    assert {*dataset.node_ids, *dataset.edge_ids} == {1, 2, "007", "12"}
    said = [note for note in dataset.provenance.notes if "separated" in note]
    assert len(said) == (separator != ("\t" if "tsv" in name else ","))


SPELLINGS = {
    "zeros": (["007", "007", "7", "12"], {"7": "007"}),
    "decimals": (["12", "12.0", "12,00", "7.5"], {"12.0": "12", "12,00": "12"}),
    "case": (["Milk", "milk", "MILK", "milk"], {"Milk": "milk", "MILK": "milk"}),
    "spaces": ([" milk", "milk ", " milk", "eggs"], {" milk": "milk", "milk ": "milk"}),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_spellings_of_ids_are_merged_in_the_named_column_only(tmp_path, kind):
    names, kept = SPELLINGS[kind]
    path, target = tmp_path / "t.csv", tmp_path / "out.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["node", "edge"], *([name, name] for name in names)])
    report = clean_table(path, target, Cleaning(merge_ids=(f"{kind}:node",)))
    with target.open(newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    assert rows == [[kept.get(name, name), name] for name in names]
    assert [change.count for change in report.changes.values()] == [sum(name in kept for name in names)]
    dataset = healthy(node_ids=Ids([*dict.fromkeys(names), *"abcdefgh"][:10]))
    codes = {f"ids-differ-by-{kind}", "ids-read-alike"}
    (finding,) = [finding for finding in check_ids(dataset) if finding.code in codes]
    assert finding.clean == ("--merge-ids", f"{kind}:{{node}}")


def test_ids_that_may_have_lost_zeros_in_several_ways_are_left_alone(tmp_path):
    (group,) = spelling_groups({"7": 5, "07": 1, "007": 1}, ["zeros"])
    assert group.doubtful
    path = tmp_path / "t.csv"
    path.write_text("node,edge\n7,1\n07,1\n007,1\n")
    report = clean_table(path, tmp_path / "out.csv", Cleaning(merge_ids=("zeros:node",)))
    assert (tmp_path / "out.csv").read_text() == path.read_text()
    assert "'7', '07', '007'" in report.notes[0]


def test_several_kinds_are_merged_together():
    counts = {"0012.0": 1, "12": 1, "0012 ": 3}
    (group,) = spelling_groups(counts, ["zeros", "decimals", "spaces"])
    assert group.kept == "0012" and set(group.others) == set(counts)


def test_nearly_unique_labels_are_an_error():
    names = tuple(f"name {number}" for number in range(9))
    dataset = healthy(y=torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 8]), class_names=names)
    (finding,) = [finding for finding in check_labels(dataset) if finding.severity == "error"]
    assert finding.code == "nearly-unique-label" and finding.count == 9


def test_a_dirty_table_of_nodes_is_read_in_part(tmp_path, succeed):
    (tmp_path / "t.csv").write_bytes(ROWS)
    (tmp_path / "t.nodes.csv").write_bytes(b"id,kind\na,x\nb,y\nc,x,oops\nc,x\nd,y\ne,x\n")
    report = json.loads(succeed("data", "doctor", str(tmp_path / "t.csv"), "--json").out)
    assert report["facts"]["num_nodes"] == 5
    found = {finding["code"]: finding for finding in report["findings"]}
    assert "line 4" in found["not-readable"]["message"]
    assert "t.nodes.clean.csv" in found["ragged-lines"]["command"]


def test_the_doctor_shows_one_command_for_everything(tmp_path, succeed):
    path = tmp_path / "t.csv"
    path.write_bytes(MARKED + b"order;sku;price\n1;007;1,5\n1;7\n2;007;1,5\n2;;1\n")
    output = succeed("data", "doctor", str(path), "--node-column", "sku", "--hyperedge-column", "order").out
    command = output.split("All of these at once:")[1].strip().splitlines()[0]
    assert command.split()[5:] == ["--drop-bad-lines", "--drop-empty", "--id-column", "sku", "--id-column", "order"]
    succeed(*shlex.split(command)[1:])
    assert (tmp_path / "t.clean.csv").read_text() == "order;sku;price\n1;007;1,5\n2;007;1,5\n"


def test_a_dry_run_writes_nothing(tmp_path, succeed):
    path = tmp_path / "t.csv"
    path.write_bytes(with_line(b"f,3"))
    report = json.loads(
        succeed("data", "clean", str(path), str(tmp_path / "o.csv"), "--drop-bad-lines", "--dry-run", "--json").out
    )
    assert report["rows"] == 7 and report["written"] is None
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--merge-ids", "colour"], "kind of difference between ids must be one of spaces"),
        (["--merge-ids", "zeros:nowhere"], "column of 't.csv' must be one of node, edge, note"),
        (["--encoding", "klingon"], "encoding must be known"),
        (["--separator", "x"], "separator must be"),
        (["--header", "a,a"], "must be unique"),
        (["--one-basket-per-line", "--header", "a,b"], "no option about columns applies"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, refuse, options, message):
    (tmp_path / "t.csv").write_bytes(ROWS)
    assert message in refuse("data", "clean", str(tmp_path / "t.csv"), str(tmp_path / "o.csv"), *options)
    assert not (tmp_path / "o.csv").exists()


def test_a_bad_line_is_an_error_unless_it_may_be_dropped(tmp_path, refuse):
    path = tmp_path / "t.csv"
    path.write_bytes(with_line(b"f,3"))
    message = refuse("data", "clean", str(path), str(tmp_path / "o.csv"), "--merge-ids", "zeros", code=1)
    assert "line 4" in message and "--drop-bad-lines" in message
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UsageError, match="is the file to clean"):
        clean_table(path, path, Cleaning(drop_bad_lines=True), overwrite=True)


def test_columns_of_ids_are_not_guessed_from_lines_of_another_separator(tmp_path, refuse):
    path = tmp_path / "t.csv"
    path.write_text("\n\ufeffsku;order;price\n007;1;1,5\n9,2,1\n")
    options = ("--separator", ",", "--drop-bad-lines", "--drop-empty")
    message = refuse("data", "clean", str(path), str(tmp_path / "o.csv"), *options, code=1)
    assert "cannot be guessed" in message and "--separator" in message
    assert list(tmp_path.iterdir()) == [path]


def test_limits_apply_to_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS + b"x" * 1000)
    with pytest.raises(LimitError, match="line 9"):
        check_table(path, Limits(max_record_bytes=100))
    with pytest.raises(LimitError, match="`max_bytes=`"):
        clean_table(path, tmp_path / "o.csv", Cleaning(drop_bad_lines=True), limits=Limits(max_bytes=100))
    assert list(tmp_path.iterdir()) == [path]


def test_quotes_that_never_close_take_linear_time(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"node,edge\n" + b'a,"1\n' * 20_000)
    started = time.monotonic()
    (finding,) = check_table(path, Limits()).findings
    assert finding.count >= 10_000
    assert time.monotonic() - started < 10


def test_names_from_files_are_escaped(tmp_path, succeed):
    path = tmp_path / "t.csv"
    path.write_bytes(with_line(b"\x1b[31mred,3"))
    assert "\x1b" not in succeed("data", "doctor", str(path)).out


def test_lost_zeros_of_the_shop_are_found_and_merged(tmp_path, succeed):
    orders = write_shop(tmp_path, lines=3_000, products=60)
    truth = {line.split(",")[0] for line in (tmp_path / "departments.csv").read_text().splitlines()[1:]}
    columns = ("--node-column", "StockCode", "--hyperedge-column", "InvoiceNo")
    report = json.loads(succeed("data", "doctor", str(orders), *columns, "--json").out)
    found = {finding["code"]: finding for finding in report["findings"]}
    succeed(*shlex.split(found["ids-differ-by-zeros"]["command"])[1:])
    with (tmp_path / "orders.clean.csv").open(encoding="utf-8") as stream:
        codes = {row["StockCode"] for row in csv.DictReader(stream, delimiter=";")}
    assert codes <= truth and found["ids-differ-by-zeros"]["count"] > 0
