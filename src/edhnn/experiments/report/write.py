"""Writing a report: a folder with ``index.html``, ``tables.md``, ``tables.tex`` and ``figures``."""

from __future__ import annotations

from pathlib import Path

from edhnn.data.atomic import atomic_file
from edhnn.errors import UsageError
from edhnn.experiments.report.choose import Content
from edhnn.experiments.report.curves import panels_of, value_label
from edhnn.experiments.report.latex import latex_report
from edhnn.experiments.report.markdown import markdown_report
from edhnn.experiments.report.page import render_page
from edhnn.experiments.report.pictures import picture
from edhnn.training.pictures import save_figure


def write_report(content: Content, folder: Path) -> list[Path]:
    """Write all files, each whole or not at all.

    Args:
        content: What the report is made from.
        folder: Where to; made if missing, files of an older report are replaced.

    Returns:
        The files, the page first.

    Raises:
        UsageError: if the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{folder}' must be a folder. It is a file.")
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
        "tables.tex": latex_report(content),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [*(folder / name for name in texts), *images.values()]
