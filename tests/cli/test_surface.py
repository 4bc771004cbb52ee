"""The command's surface is frozen: verbs, options and the fields of `--json`. Other people's scripts depend on it.

A deliberate change edits this file and the CHANGELOG.
"""

import click
import typer

from edhnn.cli.main import app

READ = {
    "--format", "--label", "--features", "--task", "--node-column", "--hyperedge-column", "--weight-column",
    "--id-column", "--nodes", "--hyperedges", "--data-dir", "--noise", "--feature-seed", "--max-bytes", "--max-nodes",
    "--json",
}  # fmt: skip
SURFACE = {
    "data list": {"--data-dir", "--json"},
    "data info": READ,
    "data doctor": READ | {"--picture", "--hidden", "--iterations", "--epochs", "--splits", "--strict"},
    "data convert": READ | {"--to", "--legacy-pickle", "--force"},
    "data fetch": {"--data-dir", "--force", "--json"},
    "diffuse": READ
    | {"--seeds", "--potential", "--power", "--strength", "--solver", "--step-size", "--tolerance", "--max-steps"}
    | {"--ignore-weights", "--out", "--force", "--picture"},
    "train": READ
    | {"--model", "--preset", "--config", "--splits", "--epochs", "--seed", "--set", "--jobs", "--out", "--resume"}
    | {"--tensorboard"},
    "tune": READ
    | {"--model", "--trials", "--space", "--splits", "--epochs", "--seed", "--set", "--prune", "--jobs", "--storage"}
    | {"--out", "--force"},
    "predict": READ | {"--out", "--split", "--force"},
    "evaluate": READ | {"--split"},
    "run": {"--dataset", "--model", "--splits", "--epochs", "--budget", "--jobs", "--results", "--json"},
    "report": {"--results", "--out", "--json"},
    "models": {"--json"},
    "presets": {"--model", "--json"},
}


def commands(command, path=()):
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(path), command
        return
    for name, child in children.items():
        yield from commands(child, (*path, name))


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


def test_every_option_is_explained():
    for name, command in commands(typer.main.get_command(app)):
        assert command.help, name
        for parameter in command.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (name, parameter.name)
