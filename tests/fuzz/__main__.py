"""Fuzz the command: `python -m tests.fuzz --seconds 300 --seed 0`. Exit with 1 if an input has a wrong outcome.

python -m tests.fuzz --kind HIF --kind CSV     only these kinds
python -m tests.fuzz --first 1234 --inputs 1   one input again, with the same kinds and seed
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}

from edhnn.runtime import configure_runtime

configure_runtime()

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.fuzz.examples import KINDS
from tests.fuzz.fuzzer import PROBLEMS, Finding, Outcome, fuzz

SHOWN = 60


def print_outcome(outcome: Outcome, seconds: float, out: Path) -> None:
    """Print a table by kind, and each distinct finding once."""
    console = Console(highlight=False, emoji=False, soft_wrap=True, width=170)
    table = Table(title=f"{seconds:.0f} s", title_justify="left")
    headings = (
        "kind of input",
        "inputs",
        "accepted",
        *PROBLEMS,
        "peak",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for kind, tally in outcome.tallies.items():
        problems = [str(tally.problems[problem]) for problem in PROBLEMS]
        table.add_row(kind, str(tally.inputs), str(tally.accepted), *problems, f"{tally.peak / 2**20:.0f} MiB")
    tallies = outcome.tallies.values()
    totals = [sum(tally.problems[problem] for tally in tallies) for problem in PROBLEMS]
    counts = [sum(tally.inputs for tally in tallies), sum(tally.accepted for tally in tallies), *totals]
    peak = max((tally.peak for tally in tallies), default=0)
    table.add_section()
    table.add_row("all", *map(str, counts), f"{peak / 2**20:.0f} MiB")
    console.print(table)
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in outcome.findings:
        groups[finding.problem, finding.detail.split("'")[0][:120]].append(finding)
    for found in sorted(groups.values(), key=len, reverse=True)[:SHOWN]:
        one = found[0]
        line = f"{one.problem}, {len(found)} times, first in {one.kind} {one.number}: {one.detail}"
        console.print(Text(ascii(line)[1:-1]))
    if groups:
        console.print(f"{len(outcome.findings)} findings, {len(groups)} distinct; their inputs are in {out}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no input after so many seconds")
    parser.add_argument("--inputs", type=float, default=math.inf, help="number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind; repeatable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="folder of the inputs found")
    given = parser.parse_args()
    seconds = 300.0 if math.isinf(given.seconds) and math.isinf(given.inputs) else given.seconds
    start = time.monotonic()
    outcome = fuzz(
        given.kind or list(KINDS),
        seconds=seconds,
        inputs=given.inputs,
        seed=given.seed,
        out=given.out,
        processes=given.processes,
        first=given.first,
    )
    print_outcome(outcome, time.monotonic() - start, given.out)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
