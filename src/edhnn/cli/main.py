"""The `edhnn` command: its verbs, its version, and how failures leave it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

import edhnn
from edhnn.cli.output import say, spell_out_what_cannot_be_shown
from edhnn.errors import EdhnnError, machine_errors
from edhnn.runtime import configure_runtime


class _Verb(NamedTuple):
    """A verb: where it is, and its line in ``edhnn --help``, which is the docstring of its function."""

    module: str
    function: str
    summary: str


VERBS = {
    "data": _Verb("edhnn.cli.data", "app", "Look at hypergraphs, mend and convert them."),
    "diffuse": _Verb(
        "edhnn.cli.diffuse",
        "diffuse_command",
        "Diffuse seed values over a hypergraph: minimise sum (h - x)^2 + strength * sum g(H_e), and say how well.",
    ),
    "train": _Verb(
        "edhnn.cli.train",
        "train_command",
        "Train a model: ten splits, 500 epochs, first best validation epoch; leaves a run folder with a report.",
    ),
    "tune": _Verb(
        "edhnn.cli.tune",
        "tune_command",
        "Search a model's sizes by validation scores; test labels are never read. Interrupted, run it again.",
    ),
    "predict": _Verb(
        "edhnn.cli.predict",
        "predict_command",
        "Predict for every node of a hypergraph: the one trained on, a grown one, or another with the same features.",
    ),
    "evaluate": _Verb(
        "edhnn.cli.predict",
        "evaluate_command",
        "Compare a run's predictions with the labels of a hypergraph; on the run's own data, with test labels only.",
    ),
    "run": _Verb(
        "edhnn.cli.experiments",
        "run_command",
        "Run experiments: every cell without a record. Interrupted, run it again; `edhnn report` shows the records.",
    ),
    "report": _Verb(
        "edhnn.cli.experiments",
        "report_command",
        "Write a page with the tables and figures beside the paper's, from the records of `edhnn run` alone.",
    ),
    "models": _Verb(
        "edhnn.cli.models",
        "models_command",
        "List the models and their options, which `edhnn train --set KEY=VALUE` sets.",
    ),
    "presets": _Verb(
        "edhnn.cli.models",
        "presets_command",
        "List the sizes that `edhnn train DATASET --preset paper` and `official` use, and where they come from.",
    ),
}
"""The verbs. A verb's module is imported when the verb is called, as most of them load PyTorch."""


class _InterruptedError(Exception):
    """Ctrl-C, on its way through Typer."""


class _Verbs(TyperGroup):
    """The verbs; Ctrl-C in one of them reaches `main`, where Typer would leave without a word.

    Contexts and commands are `Any`: they are click's, or those of the copy of click that newer Typers carry.
    """

    only_names = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        named = super().get_command(ctx, cmd_name)
        return named if named is None or self.only_names else load_verb(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.only_names = True
        super().format_help(ctx, formatter)
        self.only_names = False

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error


def load_verb(name: str) -> Any:
    """Import the module of a verb and make its command."""
    verb = VERBS[name]
    found = getattr(import_module(verb.module), verb.function)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=_Verbs,
    help="Hypergraph diffusion, classical and neural.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _verb in VERBS.items():
    app.command(_name, help=_verb.summary)(lambda: None)  # `_Verbs` puts the command itself in its place


def _show_version(wanted: bool) -> bool:
    if wanted:
        from edhnn.kernels.library import chosen, load

        built = load() is not None
        note = "" if built else " (the native ones are not built)"
        typer.echo(f"edhnn {edhnn.__version__}\nkernels: {chosen(built=built)}{note}")
        raise typer.Exit
    return wanted


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Hypergraph diffusion, classical and neural."""
    del version


def main() -> None:
    """Run the command. Exit 2 for a request that cannot be meant, 1 for work that failed, 130 for Ctrl-C."""
    configure_runtime()
    spell_out_what_cannot_be_shown()
    try:
        with machine_errors():
            app()
    except EdhnnError as error:
        say(f"Error: {error}", style="red")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, _InterruptedError):
        say("Interrupted; nothing was left half-written.")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
