"""The tables in docs/evidence are those of the committed records."""

from pathlib import Path

from edhnn.experiments.records import Records
from edhnn.experiments.report.content import make_content
from edhnn.experiments.report.render import markdown_report

ROOT = Path(__file__).parents[2]


def test_the_written_tables_are_what_the_records_say():
    made = markdown_report(make_content(Records(ROOT / "results")))
    assert (ROOT / "docs" / "evidence" / "tables.md").read_text(encoding="utf-8") == made, "run: make evidence"
