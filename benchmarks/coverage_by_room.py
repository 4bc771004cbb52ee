"""Print the coverage of each room from the data of `make coverage`.

make coverage                                  runs the everyday suite, then this
python benchmarks/coverage_by_room.py          from the .coverage file that is there
"""

import io
import json
import tempfile
from collections import defaultdict
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    data = coverage.Coverage(data_file=str(ROOT / ".coverage"))
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        data.json_report(outfile=str(path), include=[str(ROOT / "src/edhnn/*")])  # not the copies of a test
        files = json.loads(path.read_text())["files"]
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, facts in files.items():
        parts = Path(name).parts
        room = parts[parts.index("edhnn") + 1] if "edhnn" in parts else name
        for place in (room, "all"):
            lines[place][0] += facts["summary"]["covered_lines"]
            lines[place][1] += facts["summary"]["num_statements"]
    out = io.StringIO()
    for room, (covered, total) in sorted(lines.items(), key=lambda item: item[1][0] / max(item[1][1], 1)):
        out.write(f"{room:24} {100 * covered / max(total, 1):6.1f} % of {total} lines\n")
    print(out.getvalue(), end="")


if __name__ == "__main__":
    main()
