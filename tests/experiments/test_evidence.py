"""The tables in docs/evidence match the committed records."""

from pathlib import Path

from edhnn.experiments.records import Records
from edhnn.experiments.report.content import make_content
from edhnn.experiments.report.render import markdown_report

ROOT = Path(__file__).parents[2]


def test_committed_tables_match_the_records():
    tables = markdown_report(make_content(Records(ROOT / "results")))
    assert (ROOT / "docs" / "evidence" / "tables.md").read_text(encoding="utf-8") == tables, "run: make evidence"
