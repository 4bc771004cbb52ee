"""What the command prints is safe on a terminal, whatever names its files and arguments contain."""

import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn.cli.output import console, facts_table, print_json, print_line, print_message, print_table
from edhnn.io import files
from tests.cli.test_data import here  # noqa: F401  (fixture)
from tests.cli.test_train import TINY, write_people
from tests.strategies import examples

HOSTILE = "\x1b[31m\x07\x9b\r\u202e\u2066\u200b\u2028\x85\ufeff\nError: forged"
names = st.text(
    st.sampled_from("ab'\"`=[]{}%\\\x00\x1b\x07\x08\t\n\r\x7f\x85\x9b\u061c\u200e\u202e\u2069\u2028\ufeff"), min_size=1
)


class Terminal(StringIO):
    """A stream that holds what the command prints."""

    encoding = "utf-8"


def check(text: str, forged: str = "Error: forged") -> None:
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    assert not any(line.startswith(forged) for line in text.split("\n"))


@given(names)
@settings(max_examples=examples(100))
def test_no_printing_function_lets_a_name_through(name):
    output = Terminal()
    with redirect_stdout(output), redirect_stderr(output):
        print_message(f"note: '{name}' `label={name!r}` `label={name}`")
        print_line(name)
        print_table(("a", "b"), [(name, name)], title=name)
        console().print(facts_table(name, [(name, name)]))
        print_json({name: [name]})
    check(output.getvalue())


@given(names)
@settings(max_examples=examples(30))
def test_json_output_is_printable_and_exact(name):
    output = Terminal()
    with redirect_stdout(output):
        print_json({"name": name, "path": "\udcff\U000e0001é"})
    check(output.getvalue())
    assert json.loads(output.getvalue()) == {"name": name, "path": "\udcff\U000e0001é"}
    assert "é" in output.getvalue()


def hostile_files(folder: Path) -> list[tuple[str, ...]]:
    """Write files with hostile names, columns, ids, keys and tokens; return the words that read each of them."""
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    one_line = HOSTILE.replace("\n", "").replace("\r", "")
    contents = {
        "column.csv": f"node,hyperedge,{one_line}\na,1,2\n",
        "columns.csv": f"{one_line},{one_line}x,c\na,1,2\n",
        "twice.csv": f"{one_line},{one_line}\na,1\n",
        "ids.csv": f"node,hyperedge\n{quoted},1\nb,1\n",
        "weights.csv": f"node,hyperedge,weight\na,1,{one_line}\nb,1,1\n",
        "key.hif.json": json.dumps({HOSTILE: 1, "incidences": []}),
        "id.hif.json": json.dumps({"incidences": [{"node": HOSTILE, "edge": HOSTILE, "weight": HOSTILE}]}),
        "type.hif.json": json.dumps({"network-type": HOSTILE, "incidences": [{"node": HOSTILE, "edge": 1}]}),
        "attributes.hif.json": json.dumps(
            {
                "incidences": [{"node": HOSTILE, "edge": HOSTILE}],
                "nodes": [{"node": HOSTILE, "attrs": {HOSTILE: HOSTILE, "label": HOSTILE}}],
            }
        ),
        "token.hgr": f"1 {one_line}\n1\n",
        "hyperedges-token.txt": f"1,{one_line}\n",
        f"{HOSTILE}.csv": "node,hyperedge\na,1\nb,1\n",
        f"{HOSTILE}.hif.json": "{",
        f"{HOSTILE}.xyz": "",
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8", newline="")
    (folder / os.fsdecode(b"\xff\xe9.csv")).write_text("node,hyperedge\na,1\nb,1\n")
    sources = [*contents, os.fsdecode(b"\xff\xe9.csv")]
    return [
        *(("info", source) for source in sources),
        ("doctor", "attributes.hif.json"),
        ("doctor", f"{HOSTILE}.csv"),
        ("info", "attributes.hif.json", "--label", HOSTILE),
        ("info", "ids.csv", "--node-column", HOSTILE),
        ("convert", "attributes.hif.json", f"{HOSTILE}.tsv"),
        ("convert", "ids.csv", f"{HOSTILE}.unknown"),
        ("fetch", HOSTILE),
        ("info", HOSTILE),
        (f"x{HOSTILE}",),
        ("info", f"--x{HOSTILE}"),
        ("info", "ids.csv", "--format", HOSTILE),
        ("info", "ids.csv", "--max-nodes", HOSTILE),
    ]


def test_hostile_files_and_arguments_print_only_safe_text(tmp_path, here, monkeypatch):  # noqa: F811
    monkeypatch.setenv("COLUMNS", "60")
    codes = set()
    for words in hostile_files(tmp_path):
        code, output, errors = here("data", *words, folder=tmp_path)
        check(output)
        check(errors)
        codes.add(code)
    assert codes == {0, 1, 2}


def test_a_run_on_a_file_whose_name_is_not_utf_8(tmp_path, here):  # noqa: F811
    name = os.fsdecode(b"p\xff\n[bold]{}%s")
    write_people(tmp_path, name, {"x": lambda v: v / 20, "label": lambda v: f"${v % 2}\x1b_{{"})
    run = f"run{name}"
    for words in (
        ("train", f"{name}.csv", "--out", run, *TINY),
        ("train", f"{name}.csv", "--out", run, "--resume", "--json", *TINY),
        ("predict", run, f"{name}.csv", "--out", f"{name}.parquet"),
        ("predict", run, f"{name}.csv", "--out", f"out{name}.csv", "--json"),
        ("evaluate", run, f"{name}.csv"),
        ("data", "info", f"{name}.parquet", "--node-column", "node", "--hyperedge-column", "prediction"),
        ("data", "convert", f"{name}.csv", f"{name}.hif.json"),
        ("data", "convert", f"{name}.csv", f"folder{name}"),
        ("data", "doctor", f"folder{name}", "--picture", f"{name}.png"),
    ):
        code, output, errors = here(*words, folder=tmp_path)
        assert code == 0, (words, errors)
        check(output)
        check(errors)
    page = (tmp_path / run / "report.html").read_text(encoding="utf-8")
    assert r"p\udcff" in page


def test_a_broken_link_as_a_target_is_refused_before_the_work(tmp_path, here):  # noqa: F811
    (tmp_path / "a.csv").write_text("node,hyperedge\na,1\nb,1\n")
    (tmp_path / "s.csv").write_text("node,value\na,1\n")
    commands = (
        ("data", "convert", "a.csv", "OUT.hif.json"),
        ("data", "convert", "a.csv", "OUT.csv", "--force"),
        ("data", "convert", "a.csv", "OUT", "--to", "folder"),
        ("data", "doctor", "a.csv", "--picture", "OUT.png"),
        ("data", "fetch", "cora", "--data-dir", "OUT"),
        ("data", "fetch", "cora", "--data-dir", "OUT/below"),
        ("diffuse", "a.csv", "--seeds", "s.csv", "--out", "OUT.csv"),
        ("train", "csbm-1", "--out", "OUT"),
        ("tune", "csbm-1", "--storage", "OUT.db"),
        ("tune", "csbm-1", "--out", "OUT.toml"),
        ("report", "--results", str(Path(__file__).parents[2] / "results"), "--out", "OUT"),
    )
    for number, words in enumerate(commands):
        target = tmp_path / next(word for word in words if word.startswith("OUT")).partition("/")[0]
        target.symlink_to(target.name if number % 2 else "nowhere/x")
        code, _, errors = here(*words, folder=tmp_path)
        assert code == 2, (words, errors)
        assert f"'{target.name}' is a symbolic link to " in errors
        assert target.is_symlink()
        target.unlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "tune") == ["a.csv", "s.csv"]
    shutil.rmtree(tmp_path / "tune", ignore_errors=True)


def test_the_progress_bar_shows_names_safely(monkeypatch, capsys):
    monkeypatch.setattr(files, "_BAR_APPEARS_AFTER", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = files.DelayedBar(f"Reading [bold]{HOSTILE}", 10)
    bar.show(5)
    progress = bar._progress
    assert progress.tasks[0].description.isprintable()
    assert not progress.columns[0].markup
    bar.close()
    assert "\x07" not in capsys.readouterr().err
