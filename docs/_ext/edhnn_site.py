"""Sphinx: fills placeholders, reads our docstrings ($math$, `names`), and writes mathematics as MathML."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from generated import docstring_of, filled, packages, public_names
from myst_nb.core import render
from sphinx.util import logging

logger = logging.getLogger(__name__)

_INLINE = re.compile(r"(``.+?``|:\w[\w:]*:`[^`]+`|`[^`]+`|\$[^$]+\$)", re.S)


def fill_page(app: Any, docname: str, source: list[str]) -> None:
    """Replace the placeholders of a page."""
    del app, docname
    source[0] = filled(source[0])


def as_restructured_text(text: str) -> str:
    """Turn our docstrings' notation into reStructuredText: mathematics between dollars, and no markup by accident."""
    blocks = re.split(r"((?:^[ ]*>>>.*(?:\n(?![ ]*$).*)*))", text, flags=re.M)  # examples stay as they are
    return "".join(block if block.lstrip().startswith(">>>") else _converted(block) for block in blocks)


def _converted(text: str) -> str:
    text = re.sub(r"\$\$(.+?)\$\$", lambda match: f"$\\displaystyle {' '.join(match[1].split())}$", text, flags=re.S)
    parts = []
    for part in _INLINE.split(text):
        if part.startswith("$") and len(part) > 2:
            parts.append(f":math:`{' '.join(part[1:-1].split())}`")
        elif part.startswith(("`", ":")) and part.endswith("`"):
            parts.append(part)
        else:
            parts.append(re.sub(r"([*|])|(?<=\w)_(?=[\s,.;:)]|$)", lambda match: "\\" + match[0], part))
    joined = ""
    for part in parts:  # a role must not touch a word
        touching = part.startswith(":math:") and joined and (joined[-1].isalnum() or joined[-1] in "-\\")
        joined += ("\\ " if touching else "") + part
    return re.sub(r"(:math:`[^`]+`)(?=[\w(])", r"\1\\ ", joined)


def read_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring; a constant gets the string below its assignment, where it is defined."""
    del app, obj, options
    text = "\n".join(lines)
    if what == "data":
        package, _, short = name.rpartition(".")
        found = (
            next((each for each in public_names(package) if each.name == short), None)
            if package in packages()
            else None
        )
        if found is not None:
            text = docstring_of(found)
    lines[:] = as_restructured_text(text).splitlines()


def short_signature(app: Any, what: str, name: str, obj: Any, options: Any, signature: str, result: str) -> Any:
    """Write a bounded number as its type: ``Annotated[int, Meta(ge=1)]`` is ``int``."""
    del app, what, name, obj, options
    plain = signature and re.sub(r"Annotated\[([\w.]+), [^\]]*?Meta\([^)]*\)\]", r"\1", signature)
    return plain, result


def skip_borrowed(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator for metadata routing."""
    del app, what, obj, skip, options
    return True if re.fullmatch(r"set_\w+_request", name.rpartition(".")[2]) else None


def mathml(node: nodes.Node, *, block: bool) -> str:
    """Turn the TeX of a node into MathML; TeX that docutils does not know is shown as it is, with a warning."""
    text = re.sub(r"\\[bB]igg?(?![a-zA-Z])", "", node.astext())  # sizes of brackets: MathML stretches them by itself
    text = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", text)
    try:
        return str(tex2mathml(text, as_block=block))
    except MathError as error:
        logger.warning("%s in $%s$", error, text, location=node)
        return f"<code>{escape(text)}</code>"


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write mathematics within a line."""
    self.body.append(f'<span class="math">{mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write mathematics on a line of its own."""
    self.body.append(f'<div class="math">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def joined_streams(outputs: list[Any]) -> list[Any]:
    """Join what a cell prints, remarks (standard error) before results; myst-nb breaks lines between the pieces."""
    joined: dict[str, Any] = {}
    others = []
    for output in outputs:
        if output["output_type"] != "stream":
            others.append(output)
        elif output["name"] in joined:
            joined[output["name"]]["text"] += output["text"]
        else:
            joined[output["name"]] = output
    for output in joined.values():
        output["text"] = re.sub(r"[ \t]+$", "", output["text"].rstrip(), flags=re.M) + "\n"
    return [joined[name] for name in ("stderr", "stdout") if name in joined] + others


def show_commands(app: Any, doctree: nodes.document) -> None:
    """Show a cell of shell commands as a reader types them: with prompts, without the notebook's ``%%bash``."""
    del app
    for block in doctree.findall(nodes.literal_block):
        first, _, commands = block.astext().partition("\n")
        if first.strip() == "%%bash":
            text = re.sub(r"^(?=\S)", "$ ", commands, flags=re.M)
            block.replace_self(nodes.literal_block(text, text, language="console"))


def setup(app: Any) -> dict[str, Any]:
    """Connect the parts."""
    render.coalesce_streams = joined_streams
    app.connect("source-read", fill_page)
    app.connect("doctree-read", show_commands)
    app.connect("autodoc-process-docstring", read_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-skip-member", skip_borrowed)
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
