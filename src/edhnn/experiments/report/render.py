"""Write a report to a folder (the page ``index.html``, the tables as Markdown, the figures), or return it as JSON.

The page is self-contained. This module computes the values for its template ``page.html.j2``. The headings of a table
are buttons that sort it; a wide table scrolls inside its own box.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edhnn.experiments.analysis.claims import Claim
from edhnn.experiments.analysis.grid import Measured
from edhnn.experiments.report.content import Content
from edhnn.experiments.report.figures import panels_of, picture, plot_json, plotly_available, plotly_script
from edhnn.experiments.report.notes import METHOD, environments, totals
from edhnn.experiments.report.view import CellText, View, cell_text, format_p, format_value
from edhnn.io.files import atomic_file, check_folder
from edhnn.plotting.style import save_figure
from edhnn.runs.presets import list_presets, tabulate
from edhnn.typing import JsonObject

_MEANING = {"▼": "worse than {}", "▲": "better than {}", "≈": "not distinguishable from {}"}
_NO_NUMBER = ("–", None)
_Number = tuple[str, str | None]
"""A text and the number to sort by."""


def render_page(content: Content, pictures: Mapping[str, bytes]) -> str:
    """Render the page as HTML.

    Args:
        content: The content of the report.
        pictures: PNG images of the figures, by the names of the experiments.
    """
    templates = Environment(
        loader=PackageLoader("edhnn.experiments", "report"), autoescape=True, undefined=StrictUndefined
    )
    interactive = bool(pictures) and plotly_available()
    links = [("claims", "Claims")] if content.claims else []
    links += [(view.name, _link_text(view)) for view in content.views]
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
    """Return the values for the section of an experiment."""
    axis, value = view.grid.experiment.axis, view.grid.kind.axis
    plots = [(panel.title, plot_json(panel, axis, value)) for panel in panels_of(view)] if interactive else []
    return {
        "name": view.name,
        "heading": view.heading,
        "picture": "" if png is None else base64.b64encode(png).decode(),
        "plots": plots,
        "key": bool(view.published.numbers) and not view.published.unit,
        "headings": _headings(view),
        "groups": _groups(view),
        "meaning": {mark: text.format(view.findings.reference) for mark, text in _MEANING.items()},
        "notes": notes,
        "details": _details(view),
        "text": view.grid.experiment.text,
    }


def _headings(view: View) -> list[str]:
    ranked, tested = view.findings.ranks, view.findings.tested
    return ["", *view.grid.columns, *(["mean rank"] if ranked else []), *(["win-tie-loss"] if tested else [])]


def _groups(view: View) -> list[list[dict[str, Any]]]:
    """Return the rows of the main table in groups with headings: floors, networks and ceilings."""
    groups: dict[str, list[dict[str, Any]]] = {line.kind: [] for line in view.grid.lines}
    if len(groups) > 1:
        for line in view.grid.lines:
            groups[line.kind] = [{"group": view.grid.kind.groups[line.kind]}]
    for line in view.grid.lines:
        groups[line.kind].append(
            {
                "group": "",
                "label": line.label,
                "shade": "" if line.kind == "network" else line.kind,
                "scores": [cell_text(view, line.label, column) for column in view.grid.columns],
                "numbers": _rank_and_tally(view, line.label),
            }
        )
    return list(groups.values())


def _rank_and_tally(view: View, row: str) -> list[_Number]:
    """Return the numbers that follow the scores of a row, as many as `_headings` has."""
    numbers: list[_Number] = []
    if view.findings.ranks:
        rank = view.findings.ranks.get(row)
        numbers.append(_NO_NUMBER if rank is None else (f"{rank:.1f}", f"{rank:.6g}"))
    if view.findings.tested:
        tally = view.findings.tally(row)
        numbers.append(("-".join(map(str, tally)), str(tally[0] - tally[2])) if any(tally) else _NO_NUMBER)
    return numbers


def _details(view: View) -> dict[str, Any]:
    """Return the table of all cells with a score: interval, splits, epochs, test, origin of the settings."""
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
    summary, contrast = view.findings.summaries[row, column], view.findings.contrasts.get((row, column))
    epochs = cell.epochs or cell.cell.settings.get("train", {}).get("epochs")
    adjusted, parameters = None if contrast is None else contrast.adjusted, cell.mean_of("num_parameters")
    interval = "–"
    if summary.low is not None and summary.high is not None:
        interval = f"{format_value(summary.low, view.kind)} to {format_value(summary.high, view.kind)}"
    numbers: list[tuple[str, float | None]] = [
        (column, None),
        (format_value(summary.mean, view.kind), summary.mean),
        ("–" if summary.std is None else format_value(summary.std, view.kind), summary.std),
        (interval, summary.low),
        (f"{summary.count} of {max(summary.count, cell.requested)}", summary.count),
        ("–" if epochs is None else str(epochs), epochs),
        ("–" if adjusted is None else format_p(adjusted), adjusted),
        ("–" if parameters is None else f"{parameters:,.0f}", parameters),
    ]
    return [(text, None if value is None else f"{value:.9g}") for text, value in numbers]


def _sizes(model: str) -> Iterator[tuple[str, str, Sequence[str], Sequence[Sequence[str]], str]]:
    """Yield a table of the sizes of a model for each preset: title, label, headings, rows, note."""
    for name, presets in list_presets(model).items():
        sizes = tabulate(presets)
        common = ", ".join(f"{key} {value}" for key, value in sizes.common.items())
        note = f"For all: {common}. {'; '.join(sizes.origins)}."
        title = f"{model}, preset {name}"
        yield title, f"Sizes of {title}", sizes.headings, sizes.rows, note


def _link_text(view: View) -> str:
    paper = view.grid.experiment.paper
    return view.name if paper == "none" else f"{paper} ({view.name})" if "-" in view.name else paper


def markdown_report(content: Content) -> str:
    """Return all claims and tables as Markdown: our numbers, and in brackets the paper's and the difference."""
    parts = ["# The paper's evidence, measured again\n"]
    for heading, papers in (("The paper's claims", True), ("Questions of ours", False)):
        claims = [claim for claim in content.claims if claim.papers is papers]
        parts += [f"## {heading}\n", _claims_table(claims), ""] if claims else []
    if content.claims:
        parts += [
            "The p values of a claim are corrected over the comparisons of the claim, which the page of `edhnn report` "
            "lists. Those of a table's marks are corrected over the whole table, so the two can differ.\n"
        ]
    for view in content.views:
        drawn = [f"![{view.heading}](figures/{view.name}.png)\n"] if panels_of(view) else []
        notes = [f"- {note}" for note in content.notes[view.name]]
        parts += [f"## {view.heading}\n", *drawn, markdown_table(view), "", *notes, ""]
    if content.absent:
        parts += ["## Not run\n", *(f"- {heading}" for heading in content.absent), ""]
    return "\n".join(parts)


def _claims_table(claims: Iterable[Claim]) -> str:
    lines = [_line(["verdict", "claim", "evidence"]), _line(["---"] * 3)]
    for claim in claims:
        evidence = f"{claim.evidence[0]} {claim.rests_on}".rstrip()
        lines.append(_line([f"**{claim.verdict}**", f"{claim.statement} ({claim.experiment})", evidence]))
    return "\n".join(lines)


def markdown_table(view: View) -> str:
    """Return a table as Markdown, with floors and ceilings in italics and the best of a column in bold."""
    headings = _headings(view)
    lines = [_line(headings), _line(["---", *["---:"] * (len(headings) - 1)])]
    for line in view.grid.lines:
        cells = [_markdown_cell(cell_text(view, line.label, column)) for column in view.grid.columns]
        cells += [text for text, _ in _rank_and_tally(view, line.label)]
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
    """Write all files of a report; no partial file is written.

    Args:
        content: The content of the report.
        folder: The folder, which is created if missing. Files of an older report are replaced.

    Returns:
        The paths of the files, the page first.

    Raises:
        UsageError: if the folder is a file.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    images: dict[str, Path] = {}
    for view in content.views:
        panels = panels_of(view)
        if panels:
            images[view.name] = path = folder / "figures" / f"{view.name}.png"
            path.parent.mkdir(exist_ok=True)
            save_figure(picture(panels, view.grid.experiment.axis, view.grid.kind.axis), path)
    texts = {
        "index.html": render_page(content, {name: path.read_bytes() for name, path in images.items()}),
        "tables.md": markdown_report(content),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [*(folder / name for name in texts), *images.values()]


def report_data(content: Content) -> JsonObject:
    """Return tables and claims as a JSON object."""
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
        "splits_asked": cell.requested,
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
