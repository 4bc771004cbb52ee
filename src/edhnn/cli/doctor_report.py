"""The doctor's report for people: facts, findings by severity with remedies, and what training would cost."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from edhnn.cli.output import facts_table, number
from edhnn.data.doctor.examine import Diagnosis
from edhnn.data.doctor.finding import SEVERITIES, Finding
from edhnn.data.doctor.forecast import Forecast
from edhnn.data.files import size_in_words
from edhnn.typing import JsonObject

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_SHOWN_CLASSES = 8


def print_report(console: Console, diagnosis: Diagnosis, forecast: Forecast) -> None:
    """Print the whole report.

    Args:
        console: Where to; colours appear on a terminal only.
        diagnosis: What `examine` found.
        forecast: What `forecast` expects.
    """
    console.print(facts_table(str(diagnosis.facts["name"]), list(_fact_rows(diagnosis.facts))))
    console.print()
    console.print(_summary(diagnosis))
    for finding in diagnosis.findings:
        console.print(Padding(_finding_text(finding), (0, 0, 0, 2)))
        if finding.remedy:
            console.print(Padding(Text(finding.remedy, style="italic"), (0, 0, 0, 6)))
    console.print()
    console.print(_forecast_title(forecast))
    console.print(_forecast_table(forecast))
    for line in _forecast_remarks(forecast):
        console.print(line)


def _fact_rows(facts: JsonObject) -> Iterator[tuple[str, str]]:
    yield "nodes", number(facts["num_nodes"])
    yield "hyperedges", number(facts["num_hyperedges"])
    yield "memberships", number(facts["num_incidences"])
    yield "features", number(facts["num_features"])
    yield "task", number(facts["task"])
    if facts["task"] is not None:
        yield "labelled nodes", number(facts["labelled_nodes"])
    if facts["class_counts"] is not None:
        yield "classes", number(facts["num_classes"])
        yield "nodes per class", _class_balance(facts["class_counts"])
    yield "degree, mean and largest", f"{number(facts['mean_degree'])}, {number(facts['max_degree'])}"
    yield (
        "hyperedge size, mean and largest",
        f"{number(facts['mean_hyperedge_size'])}, {number(facts['max_hyperedge_size'])}",
    )
    yield "components, largest", f"{number(facts['components'])}, {number(facts['largest_component'])} nodes"
    if facts["task"] == "classification":
        yield "clique homophily (the paper's)", number(facts["clique_homophily"])
        yield "  without the node itself", number(facts["clique_homophily_without_self"])
        yield "  and weighted by shared hyperedges", number(facts["clique_homophily_weighted"])
        yield "  over pairs", number(facts["clique_edge_homophily"])


def _class_balance(counts: list[int]) -> str:
    shown = ", ".join(f"{count:,}" for count in counts[:_SHOWN_CLASSES])
    return f"{shown}, ..." if len(counts) > _SHOWN_CLASSES else shown


def _summary(diagnosis: Diagnosis) -> Text:
    if not diagnosis.findings:
        return Text("Findings: none", style="bold green")
    parts = [
        (f"{count} {severity}{'' if count == 1 else 's'}", STYLES[severity])
        for severity in SEVERITIES
        if (count := diagnosis.count(severity))
    ]
    words = Text("Findings: ", style="bold")
    for place, (part, style) in enumerate(parts):
        words.append(", " if place else "").append(part, style=style)
    return words


def _finding_text(finding: Finding) -> Text:
    words = Text()
    words.append(finding.severity, style=STYLES[finding.severity]).append(f" {finding.code}: ", style="bold")
    words.append(finding.message)
    if finding.examples:
        more = ", ..." if finding.count > len(finding.examples) else ""
        words.append(f" First: {', '.join(repr(name) for name in finding.examples)}{more}", style="dim")
    return words


def _forecast_title(forecast: Forecast) -> Text:
    size = forecast.size
    words = f"{size.num_iterations} iterations, {size.epochs} epochs, {size.splits} splits"
    return Text(f"Training ED-HNN (textbook form, width {size.hidden}, {words})", style="bold")


def _forecast_table(forecast: Forecast) -> Table:
    rates = forecast.rates
    measured = f"{rates.flops_per_second / 1e9:.0f} GFLOP/s, {rates.bytes_per_second / 1e9:.1f} GB/s"
    return facts_table(
        "",
        [
            ("parameters", number(forecast.parameters)),
            ("peak memory", size_in_words(forecast.peak_bytes)),
            ("a training step", duration_in_words(forecast.seconds_per_step)),
            ("the whole run", duration_in_words(forecast.seconds_per_run)),
            ("measured on this machine", measured),
        ],
    )


def _forecast_remarks(forecast: Forecast) -> Iterator[Text]:
    if forecast.machine_bytes is None:
        return
    memory = size_in_words(forecast.machine_bytes)
    if forecast.fits:
        yield Text(f"It fits in this machine's memory, {memory}.", style="green")
    else:
        yield Text(f"It does not fit in this machine's memory, {memory}: take a narrower model.", style="bold red")


def duration_in_words(seconds: float) -> str:
    """A duration for people: ``12 ms``, ``3.4 s``, ``5.0 min``, ``2.1 h``, ``3.0 days``."""
    for bound, divisor, unit in ((1, 1e-3, "ms"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < bound:
            value = seconds / divisor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
