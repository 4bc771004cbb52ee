"""The page: claims first, then every experiment with its figure, table and notes; one file that needs no other."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib import resources

from edhnn.experiments.claims import Claim
from edhnn.experiments.report.choose import Content
from edhnn.experiments.report.curves import panels_of, value_label
from edhnn.experiments.report.html_tables import detail_table, main_table, plain_table
from edhnn.experiments.report.method import METHOD, environments, totals
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.plots import plot_json, plotly_available, plotly_script
from edhnn.experiments.report.view import View
from edhnn.training.preset_table import tabulate
from edhnn.training.presets import list_presets

_KEY = """<p class="key">Above: ours. Below: the paper's, and in brackets ours minus the paper's,
<span class="far">in this colour</span> where they are far apart.</p>"""


def render_page(content: Content, pictures: Mapping[str, bytes]) -> str:
    """The page.

    Args:
        content: What it is made from.
        pictures: PNG files of the figures, by the experiments' names.

    Returns:
        HTML.
    """
    drawn = bool(pictures) and plotly_available()
    links = [("claims", "Claims")] if content.claims else []
    links += [(view.name, _short(view)) for view in content.views]
    links += [("method", "Method"), ("sizes", "Table 6"), ("environment", "Environment"), ("specs", "Specifications")]
    listed = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in links)
    sections = "\n".join(_section(view, content.claims, pictures.get(view.name), drawn) for view in content.views)
    absent = ""
    if content.absent:
        absent = f"<h2>Not run</h2><ul>{''.join(f'<li>{escape(text)}</li>' for text in content.absent)}</ul>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's evidence, measured again</title><link rel="icon" href="data:,">
<style>{_asset("page.css")}</style></head><body>
<header><h1>The paper's evidence, measured again</h1>
<p><i>Equivariant Hypergraph Diffusion Neural Operators</i> (ICLR 2023): every number below that is ours was made by
<code>edhnn run</code> and stands in its records; the paper's stand beside them as printed.
<span class="soft">{escape(totals(content.records))}</span></p>
<nav aria-label="Contents"><ul>{listed}</ul></nav></header>
<main>
{_claims_section(content)}
{sections}
{absent}
<h2 id="method">Method</h2>
<ul class="notes">{"".join(f"<li>{escape(text)}</li>" for text in METHOD)}</ul>
<h2 id="sizes">Table 6: Sizes</h2>
{"".join(_sizes(model) for model in ("ed-hnn", "ed-hnn-ii"))}
<h2 id="environment">Environment</h2>
<p>{escape(totals(content.records))}</p>
{plain_table("Machines and versions", *environments(content.records))}
<h2 id="specs">Specifications</h2>
<p>Each experiment is a TOML file; <code>edhnn run NAME</code> runs it.</p>
{"".join(_spec(view) for view in content.views)}
</main>
<footer><p class="soft">Made by <code>edhnn report</code>.</p></footer>
{f"<script>{plotly_script()}</script>" if drawn else ""}
<script>{_asset("page.js")}</script>
</body></html>
"""


def _claims_section(content: Content) -> str:
    if not content.claims:
        return ""
    shown = {view.name for view in content.views}
    theirs, ours = (_claims([claim for claim in content.claims if claim.papers is one], shown) for one in (True, False))
    return f"""<h2 id="claims">What the paper claims, and what was found</h2>
<p class="soft">A claim of many comparisons fails by one clear counterexample and holds only if every comparison is
clear. Holm's correction is over the comparisons of the claim; that of a table's marks is over all of the table, so the
two can differ.</p>
{theirs}{f"<h3>Not the paper's: what we asked besides</h3>{ours}" if ours else ""}"""


def _claims(claims: Sequence[Claim], shown: Collection[str] = ()) -> str:
    """A list; each names its experiment where sections to link to are given."""
    listed = "".join(_claim(claim, _place(claim.experiment, shown) if shown else "") for claim in claims)
    return f'<ul class="claims">{listed}</ul>' if listed else ""


def _place(experiment: str, shown: Collection[str]) -> str:
    """Where a claim's numbers are; no link to a section that is not there."""
    name = escape(experiment)
    return f' <a href="#{name}">{name}</a>' if experiment in shown else f" {name}"


def _claim(claim: Claim, place: str) -> str:
    badge = f'<span class="verdict {claim.verdict.replace(" ", "-")}">{claim.verdict}</span>'
    first, *more = claim.evidence
    rest = "".join(f"<p>{escape(text)}</p>" for text in more)
    details = f"<details><summary>Which</summary>{rest}</details>" if rest else ""
    said = f'<p>{escape(claim.statement)}{place}</p><p class="soft">{escape(f"{first} {claim.rests_on}".rstrip())}</p>'
    return f"<li>{badge}<div>{said}{details}</div></li>"


def _section(view: View, claims: Sequence[Claim], png: bytes | None, drawn: bool) -> str:
    said = _claims([claim for claim in claims if claim.experiment == view.name])
    key = _KEY if view.published.numbers and not view.published.unit else ""
    notes = "".join(f"<li>{escape(text)}</li>" for text in notes_of(view))
    return f"""<section><h2 id="{view.name}">{escape(view.heading)}</h2>
<p class="soft"><a href="#spec-{view.name}">The experiment {escape(view.name)} in full</a></p>
{said}{_figure(view, png, drawn)}
{key}{main_table(view)}
<ul class="notes">{notes}</ul>
<details><summary>Every cell: intervals, splits, tests, origins</summary>{detail_table(view)}</details></section>"""


def _figure(view: View, png: bytes | None, drawn: bool) -> str:
    if png is None:
        return ""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    image = f'<figure><img alt="{escape(view.heading)}" src="{source}"></figure>'
    bars = "Bars are sample standard deviations over splits"
    if not drawn:
        missing = (
            "A still picture: plotly, which draws interactive ones, is not installed (pip install 'edhnn[report]')."
        )
        return f'{image}<p class="key">{bars}. {escape(missing)}</p>'
    axis = view.grid.experiment.axis
    plots = "".join(
        f'<div class="plot" role="figure" aria-label="{escape(f"{view.heading}, {panel.title}")}">'
        f'<script type="application/json">{plot_json(panel, axis, value_label(view))}</script></div>'
        for panel in panels_of(view)
    )
    return f"""<div class="plots">{plots}</div><noscript>{image}</noscript>
<p class="key">{bars}; point at a mark for the interval, at a name to hide its curve. Dashes are floors.</p>"""


def _sizes(model: str) -> str:
    """The recorded sizes of a model, a table per preset."""
    parts = []
    for name, presets in list_presets(model).items():
        sizes = tabulate(presets)
        common = ", ".join(f"{key} {value}" for key, value in sizes.common.items())
        said = f"For all: {common}. {'; '.join(sizes.origins)}."
        parts.append(
            f"<h3>{escape(model)}, preset {escape(name)}</h3>"
            + plain_table(f"Sizes of {model}, preset {name}", sizes.headings, sizes.rows)
            + f'<p class="key">{escape(said)}</p>'
        )
    return "".join(parts)


def _spec(view: View) -> str:
    return (
        f'<details id="spec-{view.name}"><summary>{escape(view.name)}.toml</summary>'
        f"<pre>{escape(view.grid.experiment.text)}</pre></details>"
    )


def _short(view: View) -> str:
    paper = view.grid.experiment.paper
    return view.name if paper == "none" else f"{paper} ({view.name})" if "-" in view.name else paper


def _asset(name: str) -> str:
    return resources.files("edhnn.experiments.report").joinpath(name).read_text("utf-8")
