"""The verbs and options of the command are frozen, because users' scripts depend on them.

An intended change edits this file and the CHANGELOG.
"""

import click
import typer
from rich.text import Text

from edhnn.cli.main import VERBS, app

READ = {
    "--format", "--label", "--features", "--task", "--node-column", "--hyperedge-column", "--weight-column",
    "--id-column", "--nodes", "--hyperedges", "--data-dir", "--noise", "--feature-seed", "--max-bytes", "--max-nodes",
    "--json",
}  # fmt: skip
SURFACE = {
    "data list": {"--data-dir", "--json"},
    "data info": READ,
    "data doctor": READ | {"--picture", "--hidden", "--iterations", "--epochs", "--splits", "--strict"},
    "data clean": {"--encoding", "--separator", "--skip-lines", "--header", "--one-basket-per-line", "--merge-ids"}
    | {"--drop-bad-lines", "--drop-extra-fields", "--drop-empty", "--id-column", "--dry-run", "--force", "--max-bytes"}
    | {"--json"},
    "data convert": READ | {"--to", "--legacy-pickle", "--force"},
    "data fetch": {"--data-dir", "--force", "--deadline", "--json"},
    "diffuse": READ
    | {"--seeds", "--potential", "--power", "--strength", "--solver", "--step-size", "--tolerance", "--max-steps"}
    | {"--method", "--seed-column", "--top", "--cluster", "--max-cluster", "--restart", "--scaling"}
    | {"--ignore-weights", "--out", "--force", "--picture", "--spreadsheet-safe"},
    "train": READ
    | {"--model", "--preset", "--config", "--splits", "--epochs", "--seed", "--set", "--jobs", "--out", "--resume"}
    | {"--tensorboard", "--device", "--folds", "--group", "--split-column"},
    "tune": READ
    | {"--model", "--trials", "--space", "--splits", "--epochs", "--seed", "--set", "--prune", "--jobs", "--storage"}
    | {"--out", "--force", "--device", "--folds", "--group", "--split-column"},
    "predict": READ | {"--out", "--split", "--force", "--device", "--spreadsheet-safe"},
    "evaluate": READ | {"--split", "--device"},
    "run": {"--dataset", "--model", "--splits", "--epochs", "--budget", "--jobs", "--results", "--json"},
    "report": {"--results", "--out", "--json"},
    "models": {"--json"},
    "presets": {"--model", "--json"},
}


def commands(command, path=()):
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def test_verbs_and_options_are_as_frozen():
    found = {
        name: {
            option
            for parameter in command.params
            for option in getattr(parameter, "opts", ())
            if option.startswith("--")
        }
        for name, command in commands(typer.main.get_command(app))
    }
    assert {name: options - {"--help"} for name, options in found.items()} == SURFACE


def test_the_summary_of_a_verb_equals_its_help():
    group = typer.main.get_command(app)
    context = typer.Context(group)
    assert {name: group.get_command(context, name).help for name in group.list_commands(context)} == {
        name: verb.summary for name, verb in VERBS.items()
    }


def test_every_option_has_a_help_text():
    for name, command in commands(typer.main.get_command(app)):
        assert command.help, name
        for parameter in command.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (name, parameter.name)


def test_no_help_text_loses_words_as_markup():
    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            text = getattr(parameter, "help", None) or ""
            assert Text.from_markup(text).plain == text, (name, parameter.name)
