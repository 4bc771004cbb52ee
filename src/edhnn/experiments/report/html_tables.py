"""Tables of the page. A heading is a button that sorts; a wide table scrolls inside its own box."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from edhnn.experiments.gathered import LineKind, Measured
from edhnn.experiments.report.numbers import shown, shown_p
from edhnn.experiments.report.view import CellText, View, cell_text

_GROUPS: dict[LineKind, str] = {
    "floor": "Floors: nothing of the hypergraph",
    "network": "Networks",
    "ceiling": "Ceiling: it is known how the data were made",
}
_GROUPS_OF_STEPS: dict[LineKind, str] = {"floor": "Floor: nothing learned", "network": "Learned"}
_MEANING = {"▼": "worse than {}", "▲": "better than {}", "≈": "not distinguishable from {}"}


def main_table(view: View) -> str:
    """Ours over the paper's, floors shaded above the rest and ceilings below, ranks, the tally of the reference row."""
    findings = view.findings
    headings = ["", *view.grid.columns]
    headings += ["mean rank"] if findings.ranks else []
    headings += ["win-tie-loss"] if findings.tested else []
    names = _GROUPS if view.kind == "accuracy" else _GROUPS_OF_STEPS
    groups: dict[LineKind, list[str]] = {line.kind: [] for line in view.grid.lines}
    if len(groups) > 1:
        for kind, rows in groups.items():
            rows.append(f'<tr class="group"><th scope="rowgroup" colspan="{len(headings)}">{names[kind]}</th></tr>')
    for line in view.grid.lines:
        cells = [_cell(cell_text(view, line.label, column), findings.reference) for column in view.grid.columns]
        if findings.ranks:
            rank = findings.ranks.get(line.label)
            cells.append("<td>–</td>" if rank is None else f'<td data-sort="{rank:.6g}">{rank:.1f}</td>')
        if findings.tested:
            tally = findings.tally(line.label)
            said = "-".join(map(str, tally))
            cells.append(f'<td data-sort="{tally[0] - tally[2]}">{said}</td>' if any(tally) else "<td>–</td>")
        shade = f' class="{line.kind}"' if line.kind != "network" else ""
        groups[line.kind].append(f'<tr{shade}><th scope="row">{escape(line.label)}</th>{"".join(cells)}</tr>')
    return _box(view.heading, headings, *groups.values())


def detail_table(view: View) -> str:
    """Every cell with a number: interval, splits, epochs, test, where its settings come from."""
    headings = [
        "row",
        "column",
        "mean, s" if view.kind == "timing" else "mean",
        "std",
        "95 % interval",
        "splits",
        "epochs",
        "adjusted p",
        "parameters",
        "origin",
    ]
    rows = []
    for line in view.grid.lines:
        for column in view.grid.columns:
            cell = view.grid.measured(line.label, column)
            if cell is not None:
                rows.append(_detail(view, line.label, column, cell))
    return _box(f"{view.heading}, every cell", headings, rows)


def plain_table(label: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    body = [
        "<tr>" + f'<th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    ]  # fmt: skip
    return _box(label, headings, body)


def _detail(view: View, row: str, column: str, cell: Measured) -> str:
    summary, contrast = view.findings.summaries[row, column], view.findings.contrasts.get((row, column))
    kind, parameters = view.kind, cell.mean_of("num_parameters")
    epochs = cell.epochs or cell.cell.settings.get("train", {}).get("epochs")
    interval = "–" if summary.low is None or summary.high is None else (
        f"{shown(summary.low, kind)} to {shown(summary.high, kind)}"
    )  # fmt: skip
    adjusted = None if contrast is None else contrast.adjusted
    texts = [
        (escape(column), None),
        (shown(summary.mean, kind), summary.mean),
        ("–" if summary.std is None else shown(summary.std, kind), summary.std),
        (interval, summary.low),
        (f"{summary.count} of {max(summary.count, cell.asked)}", summary.count),
        ("–" if epochs is None else str(epochs), epochs),
        ("–" if adjusted is None else escape(shown_p(adjusted)), adjusted),
        ("–" if parameters is None else f"{parameters:,.0f}", parameters),
    ]
    cells = "".join(
        f"<td>{text}</td>" if value is None else f'<td data-sort="{value:.9g}">{text}</td>' for text, value in texts
    )
    return f'<tr><th scope="row">{escape(row)}</th>{cells}<td class="text">{escape(cell.cell.source)}</td></tr>'


def _cell(text: CellText, reference: str) -> str:
    classes = " ".join(name for name, on in (("best", text.best), ("none", text.value is None)) if on)
    sort = "" if text.value is None else f' data-sort="{text.value:.9g}"'
    mark = ""
    if text.mark:
        meaning = escape(_MEANING[text.mark].format(reference))
        mark = f' <span class="mark" role="img" aria-label="{meaning}" title="{meaning}">{text.mark}</span>'
    notes = f"<sup>{','.join(map(str, text.footnotes))}</sup>" if text.footnotes else ""
    difference = ""
    if text.difference:
        difference = f' <span class="{"far" if text.far else "near"}">({escape(text.difference)})</span>'
    paper = f'<span class="paper">{escape(text.paper)}{difference}</span>' if text.paper else ""
    opening = f'<td class="{classes}"{sort}>' if classes else f"<td{sort}>"
    return f'{opening}<span class="ours">{escape(text.ours)}{mark}{notes}</span>{paper}</td>'


def _box(label: str, headings: Sequence[str], *groups: Sequence[str]) -> str:
    head = "".join(
        f'<th scope="col"><button type="button">{escape(heading) if heading else "name"}</button></th>'
        for heading in headings
    )
    bodies = "".join("<tbody>\n{}\n</tbody>".format("\n".join(rows)) for rows in groups)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}"><table class="sortable">'
        f"<thead><tr>{head}</tr></thead>\n{bodies}</table></div>"
    )
