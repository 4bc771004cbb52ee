"""The `edhnn` command: its verbs, its version and its exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

import edhnn
from edhnn.cli.flags import Command
from edhnn.cli.output import escape_unencodable_characters, open_closed_streams, print_message
from edhnn.errors import EdhnnError, MachineError, machine_errors, shown
from edhnn.runtime import configure_runtime


class _Verb(NamedTuple):
    """A verb: its function, and its line in ``edhnn --help``, which is also the docstring of the function."""

    module: str
    function: str
    summary: str


VERBS = {
    "data": _Verb("edhnn.cli.data", "app", "List, inspect, check, convert and download datasets."),
    "diffuse": _Verb(
        "edhnn.cli.diffuse",
        "diffuse_command",
        "Diffuse seed values over a hypergraph: minimise sum (h - x)^2 + strength * sum g(H_e).",
    ),
    "train": _Verb(
        "edhnn.cli.train",
        "train_command",
        "Train a model on several splits and write a run folder with its models, predictions and a report.",
    ),
    "tune": _Verb(
        "edhnn.cli.tune",
        "tune_command",
        "Search settings of a model by validation scores; test labels are not read. The same command resumes a search.",
    ),
    "predict": _Verb(
        "edhnn.cli.predict",
        "predict_command",
        "Predict for every node: of the training data, of a grown version, or of other data with the same features.",
    ),
    "evaluate": _Verb(
        "edhnn.cli.predict",
        "evaluate_command",
        "Compare the predictions of a run with labels. On its training data, only test labels are used.",
    ),
    "run": _Verb(
        "edhnn.cli.experiments",
        "run_command",
        "Run the cells of experiments that have no record. The same command resumes an interrupted run.",
    ),
    "report": _Verb(
        "edhnn.cli.experiments",
        "report_command",
        "Write a page that compares the records of `edhnn run` with the paper's tables and figures.",
    ),
    "models": _Verb(
        "edhnn.cli.models",
        "models_command",
        "List the models and their options. `edhnn train --set KEY=VALUE` sets an option.",
    ),
    "presets": _Verb(
        "edhnn.cli.models",
        "presets_command",
        "List the settings of the presets `paper` and `official` for each dataset, with their sources.",
    ),
}
"""The verbs. The module of a verb is imported when the verb is called, because most of them load PyTorch."""


class _InterruptedError(Exception):
    """Ctrl-C, wrapped so that Typer does not handle it."""


class _Verbs(TyperGroup):
    """The verbs. Ctrl-C in one of them reaches `main`; Typer would exit without a message.

    Contexts and commands are `Any`: they belong to click, or to the copy of click inside newer versions of Typer.
    """

    only_names = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        named = super().get_command(ctx, cmd_name)
        return named if named is None or self.only_names else load_verb(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.only_names = True
        super().format_help(ctx, formatter)
        self.only_names = False

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _shown_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _shown_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error


@contextmanager
def _shown_errors() -> Iterator[None]:
    """Escape the text of errors that Typer prints itself, such as an unknown option."""
    try:
        yield
    except Exception as error:
        message = getattr(error, "message", None)
        if isinstance(message, str):
            with suppress(AttributeError):  # an error of another library, whose message cannot be set
                error.message = shown(message)  # type: ignore[attr-defined]
        raise


def load_verb(name: str) -> Any:
    """Import the module of a verb and return its command."""
    verb = VERBS[name]
    if verb.module != "edhnn.cli.models":  # which loads no PyTorch
        _check_address_space()
    group = getattr(import_module(verb.module), verb.function)
    if not isinstance(group, typer.Typer):
        function, group = group, typer.Typer(add_completion=False)
        group.command(name, cls=Command)(function)
    command = typer.main.get_command(group)
    command.name = name
    return command


_ADDRESS_SPACE: Final = 1_200_000_000
"""Bytes of address space that a command with PyTorch needs at least."""


def _check_address_space() -> None:
    """Refuse a limit below which PyTorch aborts the process while it is loaded, without an exception."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE and "torch" not in sys.modules:
        raise MachineError(
            f"Not enough memory to load PyTorch, which needs {_ADDRESS_SPACE / 1e9:.1f} GB of address space. The limit "
            f"of this process is {limit / 1e9:.1f} GB. Raise it: ulimit -v {_ADDRESS_SPACE * 2 // 1000}."
        )


app = typer.Typer(
    cls=_Verbs,
    help="Hypergraph diffusion, classical and neural.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _verb in VERBS.items():
    app.command(_name, help=_verb.summary)(lambda: None)  # `_Verbs` replaces it by the command itself


def _show_version(show: bool) -> bool:
    if show:
        from edhnn.kernels.library import chosen, load

        built = load() is not None
        note = "" if built else " (the native ones are not built)"
        typer.echo(f"edhnn {edhnn.__version__}\nkernels: {chosen(built=built)}{note}")
        raise typer.Exit
    return show


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hypergraph diffusion, classical and neural."""
    del version


def main() -> None:
    """Run the command. Exit with 2 for an invalid request, 1 for work that failed, 130 for Ctrl-C."""
    configure_runtime()
    has_output = open_closed_streams()
    escape_unencodable_characters()
    try:
        with machine_errors():
            if not has_output:
                raise MachineError(
                    "Standard output is closed, so no result can be printed. Redirect it to a file or to /dev/null."
                )
            app()
    except EdhnnError as error:
        print_message(f"Error: {error}", style="red")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, _InterruptedError):
        print_message("Interrupted. No partial file was written.")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
