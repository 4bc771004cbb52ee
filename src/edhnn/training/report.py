"""A run on one page: an HTML file that needs no other."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from edhnn.data.atomic import atomic_file
from edhnn.data.files import size_in_words
from edhnn.training.summary import RunSummary
from edhnn.typing import JsonObject

_MANY_NAMES = 50
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.figure { font-size: 2.2rem; font-weight: 600; margin: .3rem 0; } .remark { color: #666; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .9rem .15rem 0; text-align: right; border-bottom: 1px solid #eee; }
td:first-child, th:first-child { text-align: left; } img { max-width: 100%; }
"""


def write_report(
    summary: RunSummary, config: JsonObject, environment: JsonObject, pictures: Sequence[Path], path: Path
) -> None:
    """Write the page: the number, the pictures, the splits, and everything needed to make them again."""
    unit = "" if summary.task == "regression" else " %"
    metric = summary.metric.replace("_", " ")
    memory = "-" if summary.peak_memory is None else size_in_words(summary.peak_memory)
    splits = zip(summary.test, summary.valid, summary.best_epoch, summary.split_seconds, strict=True)
    rows = [
        (str(number), summary.shown(test), summary.shown(valid), str(epoch), f"{seconds:.1f}")
        for number, (test, valid, epoch, seconds) in enumerate(splits)
    ]
    images = "\n".join(
        f'<img alt="{escape(picture.stem)}" src="data:image/png;base64,'
        f'{base64.b64encode(picture.read_bytes()).decode()}">'
        for picture in pictures
    )
    data = config["dataset"]
    title = f"{summary.model} on {summary.dataset}"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="figure">{summary.shown(summary.test_mean)} ± {summary.shown(summary.test_std)}{unit}</p>
<p class="remark">test {escape(metric)}, mean and sample standard deviation over {len(summary.test)} splits; the epoch
of each split is the first of its best validation score.</p>
{images}
<h2>Splits</h2>
{_table(("split", f"test{unit}", f"validation{unit}", "epoch", "seconds"), rows)}
<h2>Data</h2>
{_table(("", ""), ((name, _shown(value)) for name, value in data.items() if name != "class_names"))}
<h2>Model: {summary.num_parameters:,} parameters, {escape(summary.origin)}</h2>
{_table(("", ""), ((name, _shown(value)) for name, value in config["options"].items()))}
<h2>Training: {summary.seconds:.0f} s, {memory}</h2>
{_table(("", ""), ((name, _shown(value)) for name, value in {**config["train"], "seed": config["seed"]}.items()))}
<h2>Made with</h2>
{_table(("", ""), ((name, _shown(value)) for name, value in environment.items()))}
</body></html>
"""
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if any(headings) else ''}\n{body}</table>"


def _shown(value: object) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    more = f", ... ({len(value):,} in all)" if len(value) > _MANY_NAMES else ""
    return ", ".join(map(str, value[:_MANY_NAMES])) + more
