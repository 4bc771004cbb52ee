"""Text that a spreadsheet program would run is quoted on request; numbers never are."""

import pyarrow as pa
import pyarrow.csv
import pytest

from edhnn.io.tables.writer import write_table

TABLE = pa.table(
    {
        "node": ["=1+1", "+a", "-b", "@c", "\td", "\re", "'=1+1", "a=b", "", None],
        "=score": [-1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, None],
        "number": range(-1, 9),
    }
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_formulas_are_quoted(tmp_path, name):
    write_table(TABLE, tmp_path / name, spreadsheet_safe=True)
    options = pa.csv.ParseOptions(delimiter="\t" if name == "t.tsv" else ",", newlines_in_values=True)
    found = pa.csv.read_csv(tmp_path / name, parse_options=options)
    assert found.column_names == ["node", "'=score", "number"]
    quoted = ["'=1+1", "'+a", "'-b", "'@c", "'\td", "'\re", "''=1+1", "a=b", ""]
    assert found["node"].to_pylist()[:9] == quoted
    assert found["'=score"].to_pylist() == TABLE["=score"].to_pylist()
    assert found["number"].to_pylist() == TABLE["number"].to_pylist()


def test_without_the_option_text_is_exact(tmp_path):
    write_table(TABLE, tmp_path / "t.parquet")
    assert pa.parquet.read_table(tmp_path / "t.parquet").equals(TABLE)
