r"""The tables as LaTeX with ``booktabs``: per column ours, the paper's, and the difference."""

from __future__ import annotations

from edhnn.experiments.report.choose import Content
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.view import CellText, View, cell_text

_LETTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "≈": r"$\approx$",
    "▲": r"$\uparrow$", "▼": r"$\downarrow$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def latex_report(content: Content) -> str:
    """All tables, each a ``table*`` with its notes below."""
    head = ["% Made by edhnn report, from records. Needs \\usepackage{booktabs} and \\usepackage{graphicx}.", ""]
    return "\n".join([*head, *(latex_table(view) for view in content.views)])


def latex_table(view: View) -> str:
    """One table; rules between floors, networks and ceilings, the best of a column in bold."""
    parts = _parts(view)
    columns = view.grid.columns
    top = " & ".join(["", *(rf"\multicolumn{{{len(parts)}}}{{c}}{{{escape(column)}}}" for column in columns)])
    under = " & ".join(["", *(part for _ in columns for part in parts)])
    body: list[str] = []
    kind = view.grid.lines[0].kind
    for line in view.grid.lines:
        if line.kind != kind:
            body.append(r"\midrule")
        kind = line.kind
        cells = [part for column in columns for part in _cell(cell_text(view, line.label, column), parts)]
        body.append(" & ".join([escape(line.label), *cells]) + r" \\")
    notes = " ".join(escape(note) for note in notes_of(view, ranked=False))
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{escape(view.heading)}}}",
            rf"\label{{tab:{view.name}}}",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * (len(parts) * len(columns))}}}",
            r"\toprule",
            rf"{top} \\",
            rf"{under} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\par\smallskip\footnotesize {notes}",
            r"\end{table*}",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text with LaTeX's own letters and those it lacks spelled out."""
    return "".join(_LETTERS.get(letter, letter) for letter in text)


def _parts(view: View) -> list[str]:
    """What a column is divided into: the paper's numbers only where there are any."""
    places = [(line.label, column) for line in view.grid.lines for column in view.grid.columns]
    if not any(place in view.published.numbers for place in places):
        return ["ours"]
    return ["ours", "paper"] if view.published.unit else ["ours", "paper", "difference"]


def _cell(text: CellText, parts: list[str]) -> list[str]:
    ours = rf"\textbf{{{escape(text.ours)}}}" if text.best else escape(text.ours)
    ours += f" {escape(text.mark)}" if text.mark else ""
    ours += rf"\textsuperscript{{{','.join(map(str, text.footnotes))}}}" if text.footnotes else ""
    found = {"ours": ours, "paper": escape(text.paper), "difference": escape(text.difference)}
    return [found[part] for part in parts]
