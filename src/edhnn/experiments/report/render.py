"""Write a report to a folder: the page ``index.html``, the tables as Markdown, the figures; or give it as data.

The page is one file that needs no other. Its text is the template ``page.html.j2``; this module gives it the values.
A heading of a table is a button that sorts; a wide table scrolls inside its own box.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edhnn.experiments.analysis.claims import Claim
from edhnn.experiments.analysis.grid import Measured
from edhnn.experiments.report.content import Content
from edhnn.experiments.report.figures import panels_of, picture, plot_json, plotly_available, plotly_script, value_label
from edhnn.experiments.report.notes import METHOD, environments, totals
from edhnn.experiments.report.view import CellText, View, cell_text, shown, shown_p
from edhnn.io.files import atomic_file, check_folder
from edhnn.plotting.style import save_figure
from edhnn.runs.presets import list_presets, tabulate
from edhnn.typing import JsonObject

_MEANING = {"▼": "worse than {}", "▲": "better than {}", "≈": "not distinguishable from {}"}
_NO_NUMBER = ("–", None)
_Number = tuple[str, str | None]
"""A text, and the number that its column is sorted by."""


def render_page(content: Content, pictures: Mapping[str, bytes]) -> str:
    """Render the page.

    Args:
        content: What it is made from.
        pictures: PNG files of the figures, by the experiments' names.

    Returns:
        HTML.
    """
    templates = Environment(
        loader=PackageLoader("edhnn.experiments", "report"), autoescape=True, undefined=StrictUndefined
    )
    interactive = bool(pictures) and plotly_available()
    links = [("claims", "Claims")] if content.claims else []
    links += [(view.name, _short(view)) for view in content.views]
    links += [("method", "Method"), ("sizes", "Table 6"), ("environment", "Environment"), ("specs", "Specifications")]
    return templates.get_template("page.html.j2").render(
        links=links,
        claims=content.claims,
        names=[view.name for view in content.views],
        sections=[
            _section(view, content.notes[view.name], pictures.get(view.name), interactive) for view in content.views
        ],
        absent=content.absent,
        totals=totals(content.records),
        method=METHOD,
        sizes=[table for model in ("ed-hnn", "ed-hnn-ii") for table in _sizes(model)],
        environments=environments(content.records),
        plotly=plotly_script() if interactive else "",
    )


def _section(view: View, notes: Sequence[str], png: bytes | None, interactive: bool) -> dict[str, Any]:
    """Give the values of an experiment's section."""
    findings, axis = view.findings, view.grid.experiment.axis
    plots = [(one.title, plot_json(one, axis, value_label(view))) for one in panels_of(view)] if interactive else []
    return {
        "name": view.name,
        "heading": view.heading,
        "picture": "" if png is None else base64.b64encode(png).decode(),
        "plots": plots,
        "key": bool(view.published.numbers) and not view.published.unit,
        "headings": _headings(view),
        "groups": _groups(view),
        "meaning": {mark: text.format(findings.reference) for mark, text in _MEANING.items()},
        "notes": notes,
        "details": _details(view),
        "text": view.grid.experiment.text,
    }


def _headings(view: View) -> list[str]:
    ranked, tested = view.findings.ranks, view.findings.tested
    return ["", *view.grid.columns, *(["mean rank"] if ranked else []), *(["win-tie-loss"] if tested else [])]


def _groups(view: View) -> list[list[dict[str, Any]]]:
    """Give the rows of the main table: floors, networks and ceilings, each headed by its name."""
    groups: dict[str, list[dict[str, Any]]] = {line.kind: [] for line in view.grid.lines}
    if len(groups) > 1:
        for line in view.grid.lines:
            groups[line.kind] = [{"group": view.grid.kind.groups[line.kind]}]
    for line in view.grid.lines:
        cells = [cell_text(view, line.label, column) for column in view.grid.columns]
        numbers: list[_Number] = []
        if view.findings.ranks:
            rank = view.findings.ranks.get(line.label)
            numbers.append(_NO_NUMBER if rank is None else (f"{rank:.1f}", f"{rank:.6g}"))
        if view.findings.tested:
            tally = view.findings.tally(line.label)
            numbers.append(("-".join(map(str, tally)), str(tally[0] - tally[2])) if any(tally) else _NO_NUMBER)
        shade = "" if line.kind == "network" else line.kind
        groups[line.kind].append(
            {"group": "", "label": line.label, "shade": shade, "scores": cells, "numbers": numbers}
        )
    return list(groups.values())


def _details(view: View) -> dict[str, Any]:
    """Give the table of every cell with a number: interval, splits, epochs, test, origin of its settings."""
    mean = view.grid.kind.mean_heading
    headings = ["row", "column", mean, "std", "95 % interval", "splits", "epochs", "adjusted p", "parameters", "origin"]
    rows = [
        {"label": line.label, "numbers": _detail(view, line.label, column, cell), "source": cell.cell.source}
        for line in view.grid.lines
        for column in view.grid.columns
        if (cell := view.grid.measured(line.label, column)) is not None
    ]
    return {"headings": headings, "rows": rows}


def _detail(view: View, row: str, column: str, cell: Measured) -> list[_Number]:
    summary, contrast, kind = (
        view.findings.summaries[row, column],
        view.findings.contrasts.get((row, column)),
        view.kind,
    )
    epochs = cell.epochs or cell.cell.settings.get("train", {}).get("epochs")
    adjusted, parameters = None if contrast is None else contrast.adjusted, cell.mean_of("num_parameters")
    interval = "–"
    if summary.low is not None and summary.high is not None:
        interval = f"{shown(summary.low, kind)} to {shown(summary.high, kind)}"
    numbers: list[tuple[str, float | None]] = [
        (column, None),
        (shown(summary.mean, kind), summary.mean),
        ("–" if summary.std is None else shown(summary.std, kind), summary.std),
        (interval, summary.low),
        (f"{summary.count} of {max(summary.count, cell.asked)}", summary.count),
        ("–" if epochs is None else str(epochs), epochs),
        ("–" if adjusted is None else shown_p(adjusted), adjusted),
        ("–" if parameters is None else f"{parameters:,.0f}", parameters),
    ]
    return [(text, None if value is None else f"{value:.9g}") for text, value in numbers]


def _sizes(model: str) -> list[tuple[str, str, Sequence[str], Sequence[Sequence[str]], str]]:
    """Tabulate the recorded sizes of a model, a table per preset."""
    tables: list[tuple[str, str, Sequence[str], Sequence[Sequence[str]], str]] = []
    for name, presets in list_presets(model).items():
        sizes = tabulate(presets)
        common = ", ".join(f"{key} {value}" for key, value in sizes.common.items())
        note = f"For all: {common}. {'; '.join(sizes.origins)}."
        title = f"{model}, preset {name}"
        tables.append((title, f"Sizes of {title}", sizes.headings, sizes.rows, note))
    return tables


def _short(view: View) -> str:
    paper = view.grid.experiment.paper
    return view.name if paper == "none" else f"{paper} ({view.name})" if "-" in view.name else paper


def markdown_report(content: Content) -> str:
    """Write all claims and tables as Markdown: ours, then in brackets the paper's and the difference."""
    parts = ["# The paper's evidence, measured again\n"]
    for heading, papers in (("What the paper claims", True), ("What we asked besides", False)):
        claims = [claim for claim in content.claims if claim.papers is papers]
        parts += [f"## {heading}\n", _claims_table(claims), ""] if claims else []
    if content.claims:
        parts += [
            "A claim is corrected over its own comparisons, which the page of `edhnn report` lists; the marks of a "
            "table are corrected over all of the table, so the two can differ.\n"
        ]
    for view in content.views:
        drawn = [f"![{view.heading}](figures/{view.name}.png)\n"] if panels_of(view) else []
        notes = [f"- {note}" for note in content.notes[view.name]]
        parts += [f"## {view.heading}\n", *drawn, markdown_table(view), "", *notes, ""]
    if content.absent:
        parts += ["## Not run\n", *(f"- {heading}" for heading in content.absent), ""]
    return "\n".join(parts)


def _claims_table(claims: Iterable[Claim]) -> str:
    lines = [_line(["verdict", "claim", "found"]), _line(["---"] * 3)]
    for claim in claims:
        found = f"{claim.evidence[0]} {claim.rests_on}".rstrip()
        lines.append(_line([f"**{claim.verdict}**", f"{claim.statement} ({claim.experiment})", found]))
    return "\n".join(lines)


def markdown_table(view: View) -> str:
    """Write one table; floors first and ceilings last, their names in italics, the best of a column in bold."""
    headings = _headings(view)
    lines = [_line(headings), _line(["---", *["---:"] * (len(headings) - 1)])]
    for line in view.grid.lines:
        cells = [_markdown_cell(cell_text(view, line.label, column)) for column in view.grid.columns]
        if view.findings.ranks:
            cells.append(f"{view.findings.ranks[line.label]:.1f}" if line.label in view.findings.ranks else "–")
        if view.findings.tested:
            tally = view.findings.tally(line.label)
            cells.append("-".join(map(str, tally)) if any(tally) else "–")
        lines.append(_line([f"*{line.label}*" if line.kind != "network" else line.label, *cells]))
    return "\n".join(lines)


def _markdown_cell(text: CellText) -> str:
    ours = f"**{text.ours}**" if text.best else text.ours
    notes = f"<sup>{','.join(map(str, text.footnotes))}</sup>" if text.footnotes else ""
    paper = f" ({text.paper}{f'; {text.difference}' if text.difference else ''})" if text.paper else ""
    return f"{ours}{f' {text.mark}' if text.mark else ''}{notes}{paper}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write_report(content: Content, folder: Path) -> list[Path]:
    """Write all files of a report, each whole or not at all.

    Args:
        content: What the report is made from.
        folder: Where to; made if missing, files of an older report are replaced.

    Returns:
        The files, the page first.

    Raises:
        UsageError: if the folder is a file.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {view.name: (view, panels) for view in content.views if (panels := panels_of(view))}
    images: dict[str, Path] = {}
    for name, (view, panels) in drawn.items():
        images[name] = folder / "figures" / f"{name}.png"
        images[name].parent.mkdir(exist_ok=True)
        save_figure(picture(panels, view.grid.experiment.axis, value_label(view)), images[name])
    texts = {
        "index.html": render_page(content, {name: path.read_bytes() for name, path in images.items()}),
        "tables.md": markdown_report(content),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [*(folder / name for name in texts), *images.values()]


def report_data(content: Content) -> JsonObject:
    """Give tables and claims as JSON."""
    return {
        "claims": [{**asdict(claim), "evidence": list(claim.evidence)} for claim in content.claims],
        "tables": [_table(view, content.notes[view.name]) for view in content.views],
        "not_run": list(content.absent),
    }


def _table(view: View, notes: Sequence[str]) -> JsonObject:
    experiment, findings = view.grid.experiment, view.findings
    return {
        "name": view.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "kind": experiment.kind,
        "reference": findings.reference if findings.contrasts else None,
        "rows": [
            {
                "row": line.label,
                "kind": line.kind,
                "mean_rank": findings.ranks.get(line.label),
                "win_tie_loss": list(findings.tally(line.label)) if findings.contrasts else None,
                "cells": {
                    column: _json_cell(view, line.label, column)
                    for column in view.grid.columns
                    if (line.label, column) in view.grid.cells
                },
            }
            for line in view.grid.lines
        ],
        "notes": list(notes),
    }


def _json_cell(view: View, row: str, column: str) -> JsonObject:
    cell, summary = view.grid.cells[row, column], view.findings.summaries.get((row, column))
    printed, contrast = view.printed(row, column), view.findings.contrasts.get((row, column))
    return {
        "state": cell.state,
        "mean": None if summary is None else summary.mean,
        "std": None if summary is None else summary.std,
        "interval": None if summary is None or summary.low is None else [summary.low, summary.high],
        "splits": len(cell.values),
        "splits_asked": cell.asked,
        "inference": cell.mean_of("inference"),
        "paper": None if printed is None else {"mean": printed.mean, "std": printed.std},
        "difference": view.difference(row, column),
        "reference_is": None if contrast is None else contrast.result,
        "adjusted_p": None if contrast is None else contrast.adjusted,
        "source": cell.cell.source,
        "changed": cell.cell.changed,
        "epochs_instead": cell.epochs,
        "failures": list(cell.failures),
    }
