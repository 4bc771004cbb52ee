"""Parts of the pages that are made from the package itself: public names, the command, formats, models, layers.

Nothing here imports Sphinx, so the tests use it without the extra `docs`.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import edhnn

ROOT = Path(__file__).parents[2]
PACKAGE = Path(edhnn.__file__).parent
ALONE = {"edhnn.errors": "errors", "edhnn.runtime": "runtime"}  # modules without a list of names of their own


UNSAID = {"edhnn.experiments.BOUNDS": "Floors and ceilings by name: what features alone reach, what can be known."}
"""Descriptions of constants whose source has none."""


@dataclass(frozen=True, slots=True)
class PublicName:
    """A public name: the package that offers it, and the module that defines it."""

    package: str
    name: str
    module: str

    @property
    def target(self) -> str:
        """The address under which the API reference documents the name."""
        room = ".".join(self.module.split(".")[:2])
        return f"{self.package if self.package != 'edhnn' else room}.{self.name}"


def packages() -> list[str]:
    """List the packages that have a list of public names, the top level first."""
    return ["edhnn", *sorted(f"edhnn.{stub.parent.name}" for stub in PACKAGE.glob("*/__init__.pyi"))]


def public_names(package: str) -> list[PublicName]:
    """Read the public names of a package from its ``__init__.pyi``; sub-packages are left out."""
    stub = PACKAGE.joinpath(*package.split(".")[1:]) / "__init__.pyi"
    imports = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    return [
        PublicName(package, alias.name, f"{package}.{node.module}")
        for node in imports
        if node.module
        for alias in node.names
    ]


def directive_for(name: PublicName) -> str:
    """Write the autodoc directive of a public name."""
    value = getattr(importlib.import_module(name.package), name.name)
    kind = "autoclass" if isinstance(value, type) else "autofunction" if callable(value) else "autodata"
    kind = "autoexception" if isinstance(value, type) and issubclass(value, BaseException) else kind
    bases = getattr(value, "__bases__", ())
    options = {"autoclass": "   :members:", "autodata": "   :no-value:"}.get(kind, "")
    if kind == "autoclass" and bases != (object,):
        options += "\n   :show-inheritance:"
    return f".. {kind}:: {name.target}\n{options}\n"


def names_of_package(package: str) -> str:
    """Make the reference of a package: a table of its names, then each name with its docstring."""
    names = public_names(package)
    own = [name for name in names if package != "edhnn" or name.target.rpartition(".")[0] in ALONE]
    table = ["| name | what it is |", "|---|---|"]
    table += [f"| {{py:obj}}`{name.name} <{name.target}>` | {summary_of(name)} |" for name in names]
    body = "\n".join(directive_for(name) for name in own)
    return "\n".join([*table, "", "```{eval-rst}", f".. py:currentmodule:: {package}", "", body, "```", ""])


def summary_of(name: PublicName) -> str:
    """Return the first sentence of a docstring, as Markdown for a table cell."""
    text = docstring_of(name).strip().split("\n\n")[0]
    text = re.sub(r"\s+", " ", text)
    text = re.split(r"(?<=[a-z`)$])\.\s|\s(?:Paper|Differs):", text + " ")[0].strip().rstrip(".")
    return re.sub(r"`+", "`", text).replace("|", r"\|")


def docstring_of(name: PublicName) -> str:
    """Return the docstring of a public name; that of a constant is the string below its assignment."""
    value = getattr(importlib.import_module(name.package), name.name)
    if isinstance(value, type) or callable(value):
        return value.__doc__ or ""
    body = ast.parse(Path(importlib.import_module(name.module).__file__ or "").read_text()).body
    for before, after in pairwise(body):
        targets = [before.target] if isinstance(before, ast.AnnAssign) else getattr(before, "targets", [])
        if any(getattr(target, "id", "") == name.name for target in targets) and isinstance(after, ast.Expr):
            return str(ast.literal_eval(after.value))
    return UNSAID.get(f"{name.package}.{name.name}", "")


def verbs() -> Iterator[tuple[str, Any]]:
    """Give every verb of the command by its full name, with its click command."""
    from edhnn.cli.main import VERBS, load_verb

    for name in VERBS:
        command = load_verb(name)
        below = getattr(command, "commands", None)
        if below:
            yield from ((f"{name} {child}", each) for child, each in below.items())
        else:
            yield name, command


def command_reference() -> str:
    """Describe every verb with its arguments and options."""
    parts = []
    for name, command in verbs():
        parts += [f"## edhnn {name}", "", _escaped(command.help or ""), ""]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [
            each for each in command.params if each.param_type_name == "option" and not getattr(each, "hidden", False)
        ]
        shown = " ".join(_argument(each) for each in arguments)
        parts += ["```text", f"edhnn {name} {shown} [OPTIONS]".replace("  ", " "), "```", ""]
        if arguments:
            parts += ["| argument | meaning |", "|---|---|"]
            parts += [f"| `{_argument(each)}` | {_escaped(each.help or '')} |" for each in arguments] + [""]
        panels: dict[str, list[Any]] = {}
        for each in options:
            panels.setdefault(getattr(each, "rich_help_panel", None) or "Options", []).append(each)
        for panel, members in panels.items():
            parts += [f"| {panel} | meaning |", "|---|---|"]
            parts += [f"| {_option(each)} | {_meaning(each)} |" for each in members] + [""]
    return "\n".join(parts)


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or (parameter.name or "").upper()).strip("[]")
    name = f"{name}..." if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return names if parameter.is_flag else f"{names} {parameter.metavar or _value(parameter)}"


def _value(parameter: Any) -> str:
    """Name the value of an option: its choices or its type. New Typers keep annotations, old ones click's types."""
    described = getattr(parameter, "type_descriptor", None)
    if described is None:
        choices, kind = getattr(parameter.type, "choices", ()), str(parameter.type.name).upper()
    else:
        annotation = described.annotation
        if get_origin(annotation) is list:
            annotation = get_args(annotation)[0]
        choices = get_args(annotation) if get_origin(annotation) is Literal else ()
        kind = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER"}.get(getattr(annotation, "__name__", ""), "PATH")
    return " or ".join(f"`{choice}`" for choice in choices) or kind


def _meaning(parameter: Any) -> str:
    default = parameter.default
    plain = default if isinstance(default, str | int | float) and not isinstance(default, bool) else None
    if callable(default) or plain in (None, ""):
        return _escaped(parameter.help or "")
    return f"{_escaped(parameter.help or '')} Default: `{plain}`."


def _escaped(text: str) -> str:
    """Write plain help text as Markdown for a table cell; code between backticks stays."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text).strip())
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<>\[\]$^~])", r"\\\1", part) for part in parts
    ).replace("|", r"\|")


def formats_table() -> str:
    """List the registered file formats."""
    from edhnn.io import FORMATS

    rows = [f"| `{name}` | {', '.join(f'`{each}`' for each in found.patterns)} |" for name, found in FORMATS.items()]
    return "\n".join(["| `format=` | file names |", "|---|---|", *rows, ""])


def models_table() -> str:
    """List the registered models with their summaries and their classes."""
    from edhnn.models import MODELS

    rows = [
        f"| `{name}` | {{py:obj}}`~edhnn.models.{entry.model.__name__}` | {_escaped(entry.summary)} |"
        for name, entry in MODELS.items()
        if str(entry.model.__module__).startswith("edhnn.")
    ]
    return "\n".join(["| name | class | what it is |", "|---|---|---|", *rows, ""])


def adr_list() -> str:
    """List the decision records in a hidden table of contents and as links with their titles."""
    files = sorted((ROOT / "docs/adr").glob("0*.md"))
    titles = [re.sub(r"^#\s*(ADR )?0*\d+[.:]\s*", "", file.read_text().splitlines()[0]) for file in files]
    entries = [f"{int(file.name[:4])}. {title} <{file.stem}>" for file, title in zip(files, titles, strict=True)]
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *entries, "```", ""])


def layers_picture() -> str:
    """Draw the layers that the import linter enforces as an SVG; each imports only from those below it."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    width, height, gap = 720, 26, 6
    colours = ("#2a6f97", "#2a6f97", "#468faf", "#468faf", "#61a5c2", "#61a5c2", "#61a5c2", "#89c2d9", "#89c2d9")
    shapes, y = [], 4
    for number, layer in enumerate(contract["layers"]):
        rooms = [room.strip() for room in layer.split("|")]
        each = (width - gap * (len(rooms) - 1)) / len(rooms)
        fill = colours[min(number, len(colours) - 1)]
        text = "#ffffff" if number < 7 else "#012a4a"
        for place, room in enumerate(rooms):
            x = place * (each + gap)
            shapes.append(f'<rect x="{x:.0f}" y="{y}" width="{each:.0f}" height="{height}" rx="5" fill="{fill}"/>')
            middle = f'x="{x + each / 2:.0f}" y="{y + 18}" text-anchor="middle"'
            shapes.append(f'<text {middle} font-size="14" fill="{text}">{room}</text>')
        y += height + gap
    return (
        f'<svg viewBox="0 0 {width} {y}" width="100%" role="img" aria-label="The layers of the code, top to bottom" '
        f'font-family="sans-serif">{"".join(shapes)}</svg>\n'
    )


PARTS: dict[str, Callable[[], str]] = {
    "command reference": command_reference,
    "formats": formats_table,
    "models": models_table,
    "decisions": adr_list,
    "layers": layers_picture,
    **{f"names of {package}": (lambda package=package: names_of_package(package)) for package in packages()},
}
"""What a page can ask for with a comment ``<!-- made: NAME -->``."""
PLACEHOLDER = re.compile(r"^<!-- made: (.+?) -->$", re.M)


def filled(text: str) -> str:
    """Replace the placeholders of a page by what they name."""
    return PLACEHOLDER.sub(lambda match: PARTS[match[1]](), text)


def filled_listing(text: str) -> str:
    """Replace only the placeholder of the decisions, the one that adds pages."""
    return text.replace("<!-- made: decisions -->", adr_list())
