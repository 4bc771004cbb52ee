"""The tables as Markdown: ours, then in brackets the paper's and the difference; figures stand beside it as files."""

from __future__ import annotations

from collections.abc import Iterable

from edhnn.experiments.claims import Claim
from edhnn.experiments.report.choose import Content
from edhnn.experiments.report.curves import panels_of
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.view import CellText, View, cell_text


def markdown_report(content: Content) -> str:
    """All claims and tables."""
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
        notes = [f"- {note}" for note in notes_of(view)]
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
    """One table; floors first and ceilings last, their names in italics, the best of a column in bold."""
    ranked = bool(view.findings.ranks)
    headings = [
        "",
        *view.grid.columns,
        *(["mean rank"] if ranked else []),
        *(["win-tie-loss"] if view.findings.tested else []),
    ]
    lines = [_line(headings), _line(["---", *["---:"] * (len(headings) - 1)])]
    for line in view.grid.lines:
        cells = [_cell(cell_text(view, line.label, column)) for column in view.grid.columns]
        if ranked:
            cells.append(f"{view.findings.ranks[line.label]:.1f}" if line.label in view.findings.ranks else "–")
        if view.findings.tested:
            tally = view.findings.tally(line.label)
            cells.append("-".join(map(str, tally)) if any(tally) else "–")
        lines.append(_line([f"*{line.label}*" if line.kind != "network" else line.label, *cells]))
    return "\n".join(lines)


def _cell(text: CellText) -> str:
    ours = f"**{text.ours}**" if text.best else text.ours
    notes = f"<sup>{','.join(map(str, text.footnotes))}</sup>" if text.footnotes else ""
    paper = f" ({text.paper}{f'; {text.difference}' if text.difference else ''})" if text.paper else ""
    return f"{ours}{f' {text.mark}' if text.mark else ''}{notes}{paper}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
