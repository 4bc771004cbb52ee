"""Messages of the library name Python arguments; the command prints its own options instead."""

import json

import pytest
from typer.testing import CliRunner

from edhnn import UsageError
from edhnn.cli import flags
from edhnn.cli.main import app, load_verb
from tests.cli.test_data import baskets, here  # noqa: F401  (fixtures)


@pytest.fixture
def translate(monkeypatch):
    """Return a function that translates a message as a command does."""

    def run(verb, message):
        command = load_verb(verb.split()[0])
        if " " in verb:
            command = command.commands[verb.split()[1]]
        options = {option.name: option for option in command.params if option.opts[0].startswith("--")}
        monkeypatch.setattr(flags, "_options", options)
        return flags.translate_arguments(message)

    return run


@pytest.mark.parametrize(
    ("verb", "message", "expected"),
    [
        ("train", "Name the label column with `label=`.", "Name the label column with --label."),
        ("train", "Use fewer `jobs=2`.", "Use fewer --jobs 2."),
        ("train", "`max_bytes=` and `max_nodes=1000`", "--max-bytes and --max-nodes 1000"),
        ("train", "`edge_column=`, `edge='club'`", "--hyperedge-column, --hyperedge-column club"),
        ("train", "`node=`, `weight=`, `id=`", "--node-column, --weight-column, --id-column"),
        ("train", "`nodes=` `hyperedges=`", "--nodes --hyperedges"),
        ("train", "`num_splits=3`, `file=`", "--splits 3, --config"),
        ("train", "`resume=True`", "--resume"),
        ("train", '`task="regression"`', "--task regression"),
        ("train", "`label='a b'`", "--label 'a b'"),
        ("train", "`label=['a', 'b c']`", "--label a --label 'b c'"),
        ("train", "`features=['x', 'y']`", "--features x,y"),
        ("train", "`features=[]` or `features=''`", "--features '' or --features ''"),
        ("train", "`epochs=500`", "--epochs 500"),
        ("train", "`hidden=64`", "--set hidden=64"),
        ("train", "`learning_rate=1e-3`", "--set learning_rate=1e-3"),
        ("train", "`learning_rate=`", "--set learning_rate=VALUE"),
        ("train", "`tied=False`", "--set tied=false"),
        ("train", "`aggregate='sum'`", "--set aggregate=sum"),
        ("train", "`transforms=['add_singletons']`", """--set 'transforms=["add_singletons"]'"""),
        ("tune", "`space='wide'`, `storage=`", "--space wide, --storage"),
        ("predict", "`overwrite=True`", "--force"),
        ("predict", "`hidden=64` and `jobs=`", "`hidden=64` and `jobs=`"),
        ("run", "`workers=1`", "--jobs 1"),
        ("diffuse", "`max_steps=10`", "--max-steps 10"),
        ("data doctor", "`hidden=64`, `num_iterations=1`", "--hidden 64, --iterations 1"),
        ("data fetch", "`force=True`, `data_dir=`", "--force, --data-dir"),
        ("train", "`unknown=3`, `resume=False`, `jobs=None`", "`unknown=3`, `resume=False`, `jobs=None`"),
        ("train", "`edhnn data fetch cora --force`, label=, 'x=1'", "`edhnn data fetch cora --force`, label=, 'x=1'"),
    ],
)
def test_arguments_become_options_of_the_command(translate, verb, message, expected):
    assert translate(verb, message) == expected


def test_without_a_command_nothing_changes(monkeypatch):
    monkeypatch.setattr(flags, "_options", {})
    assert flags.translate_arguments("`label=` and `hidden=64`") == "`label=` and `hidden=64`"


def test_no_argument_with_another_name_is_a_setting():
    assert flags._setting_names() & set(flags._OPTION_OF) <= {"num_iterations"}  # --iterations, which only doctor has
    commands = {name: load_verb(name) for name in ("train", "tune", "diffuse", "run", "predict")}
    names = {option.name for command in commands.values() for option in command.params}
    names |= {option.name for command in load_verb("data").commands.values() for option in command.params}
    assert set(flags._OPTION_OF.values()) <= names


def test_every_command_has_the_class_that_translates():
    leaves = [load_verb(name) for name in ("train", "tune", "diffuse", "predict", "evaluate", "run", "report")]
    leaves += load_verb("data").commands.values()
    assert all(isinstance(command, flags.Command) for command in leaves)


def fail(message):
    def function(*_, **__):
        raise UsageError(message)

    return function


@pytest.mark.parametrize(
    ("patched", "arguments", "expected"),
    [
        ("edhnn.cli.options.read_dataset", ["data", "info", "baskets.csv"], "--label, --max-bytes 5, `hidden=64`"),
        ("edhnn.cli.options.read_dataset", ["train", "baskets.csv"], "--label, --max-bytes 5, --set hidden=64"),
        ("edhnn.cli.data.published_dataset", ["data", "fetch", "cora"], "`label=`, `max_bytes=5`, `hidden=64`"),
    ],
)
def test_errors_are_printed_with_options(baskets, here, monkeypatch, patched, arguments, expected):  # noqa: F811
    monkeypatch.setattr(patched, fail("`label=`, `max_bytes=5`, `hidden=64`"))
    code, output, errors = here(*arguments, folder=baskets)
    assert (code, output, errors) == (2, "", f"Error: {expected}\n")


def test_errors_of_the_machine_are_printed_with_options(baskets, here, monkeypatch):  # noqa: F811
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("edhnn.cli.train.make_plan", fail)
    code, _, errors = here("train", "baskets.csv", folder=baskets)
    assert code == 1
    assert "Not enough memory. Use a smaller width (--set hidden=64), fewer --jobs, or less data." in errors


def test_the_format_of_a_target_is_the_option_to(baskets, here, monkeypatch):  # noqa: F811
    monkeypatch.setattr("edhnn.cli.data.format_by_name", fail("Choose the format with `format=`."))
    assert (
        here("data", "convert", "baskets.csv", "out.v1", folder=baskets)[2] == "Error: Choose the format with --to.\n"
    )


def test_notes_and_findings_are_printed_with_options(baskets, here, monkeypatch):  # noqa: F811
    from dataclasses import replace

    from edhnn import read_dataset

    def read(*arguments, **options):
        dataset = read_dataset(*arguments, **options)
        notes = ("read with `node='item'`",)
        return replace(
            dataset, y=None, task=None, class_names=None, provenance=replace(dataset.provenance, notes=notes)
        )

    monkeypatch.setattr("edhnn.cli.options.read_dataset", read)
    note = "read with --node-column item"
    assert f"note: {note}" in here("data", "info", "baskets.csv", folder=baskets)[2]
    info = json.loads(here("data", "info", "baskets.csv", "--json", folder=baskets)[1])
    assert info["provenance"]["notes"] == [note]
    converted = json.loads(here("data", "convert", "baskets.csv", "b.hgr", "--json", folder=baskets)[1])
    assert converted["notes"] == [note]
    doctor = json.loads(here("data", "doctor", "baskets.csv", "--hidden", "8", "--json", folder=baskets)[1])
    findings = {finding["code"]: finding for finding in doctor["findings"]}
    assert findings["reader"]["message"] == note
    assert findings["no-labels"]["remedy"] == "Name the label column with --label."


def test_the_options_of_an_earlier_command_are_forgotten():
    CliRunner().invoke(app, ["train", "nothing.csv"])
    assert "settings" in flags._options
    CliRunner().invoke(app, ["models", "--json"])
    assert set(flags._options) == {"as_json"}
