"""The `edhnn` command: its verbs, its version, and how failures leave it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import edhnn
from edhnn import kernels
from edhnn.cli.data import app as data_app
from edhnn.cli.diffuse import diffuse_command
from edhnn.cli.models import models_command
from edhnn.cli.output import say, spell_out_what_cannot_be_shown
from edhnn.cli.predict import evaluate_command, predict_command
from edhnn.cli.presets import presets_command
from edhnn.cli.report import report_command
from edhnn.cli.run import run_command
from edhnn.cli.train import train_command
from edhnn.cli.tune import tune_command
from edhnn.errors import EdhnnError, machine_errors


class _InterruptedError(Exception):
    """Ctrl-C, on its way through Typer."""


class _Verbs(TyperGroup):
    """The verbs; Ctrl-C in one of them reaches `main`, where Typer would leave without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error


app = typer.Typer(
    cls=_Verbs,
    help="Hypergraph diffusion, classical and neural.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.command("diffuse")(diffuse_command)
app.command("train")(train_command)
app.command("tune")(tune_command)
app.command("predict")(predict_command)
app.command("evaluate")(evaluate_command)
app.command("run")(run_command)
app.command("report")(report_command)
app.command("models")(models_command)
app.command("presets")(presets_command)


def _show_version(wanted: bool) -> bool:
    if wanted:
        note = "" if kernels.native_available() else " (the native ones are not built)"
        typer.echo(f"edhnn {edhnn.__version__}\nkernels: {kernels.active()}{note}")
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
