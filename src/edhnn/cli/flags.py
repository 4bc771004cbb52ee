"""Translate the Python arguments in messages of the library into options of the command.

The library writes an argument as `` `label=` `` or `` `hidden=64` ``. The command prints ``--label`` if it has such an
option, ``--set hidden=64`` if it has ``--set`` and the name is a setting of a model or of training. It prints every
other argument unchanged.
"""

from __future__ import annotations

import json
import re
import shlex
from ast import literal_eval
from dataclasses import fields
from typing import Any

from typer.core import TyperCommand

_ARGUMENT = re.compile(r"`([a-z_][a-z0-9_]*)=([^`]*)`")
_OPTION_OF = {
    "node": "node_column",
    "edge": "edge_column",
    "weight": "weight_column",
    "id": "id_column",
    "overwrite": "force",
    "file": "config",
    "num_splits": "splits",
    "num_iterations": "iterations",
    "workers": "jobs",
    "datasets": "dataset",
    "models": "model",
}
"""Python arguments whose option has another name. All other names are those of the command's own arguments."""

_options: dict[str, Any] = {}  # the options of the command that runs, by the name of their argument


class Command(TyperCommand):
    """A command whose options replace Python arguments in messages while it runs, and in its error."""

    def invoke(self, ctx: Any) -> Any:
        """Store the options, then run the command."""
        _options.clear()
        _options.update((option.name, option) for option in self.params if option.opts[0].startswith("--"))
        return super().invoke(ctx)


def translate_arguments(message: str) -> str:
    """Replace Python arguments in a message by options of the command that runs."""
    return _ARGUMENT.sub(_translate, message)


def _translate(argument: re.Match[str]) -> str:
    name, text = argument.groups()
    option = _options.get(name) or _options.get(_OPTION_OF.get(name, ""))
    try:
        value = literal_eval(text) if text else ""
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the text can come from any file
        value = text
    if value is None or (value is False and option is not None):  # no option switches another one off
        return argument[0]
    if option is not None:
        return _write_option(option, text, value)
    if "settings" in _options and name in _setting_names():
        if isinstance(value, bool | list | tuple):
            value = json.dumps(value)  # also TOML, which --set reads
        shown = value if isinstance(value, str) else text
        return f"--set {shlex.quote(f'{name}={shown}')}" if text else f"--set {name}=VALUE"
    return argument[0]


def _write_option(option: Any, text: str, value: object) -> str:
    flag = option.opts[0]
    if option.is_flag or not text:
        return str(flag)
    if isinstance(value, list | tuple):
        values = [str(each) for each in value]
    else:
        values = [value if isinstance(value, str) else text]
    if option.multiple:
        return shlex.join(word for each in values for word in (flag, each))
    return shlex.join([flag, ",".join(values)])


def _setting_names() -> set[str]:
    """Return the names that ``--set`` accepts for at least one model."""
    from edhnn.models.registry import MODELS  # slow to import; commands with --set have imported it
    from edhnn.runs.plan import TRAIN_FIELDS

    return {*TRAIN_FIELDS, *(field.name for entry in MODELS.values() for field in fields(entry.config))}
