"""Compare reading ten million incidences: ours, pandas (CSV) and json.load (HIF), each in a fresh process.

    make bench                                            all, about five minutes
    python benchmarks/reading.py --incidences 1e6         a smaller file

Time is wall time inside the process after imports. Memory is the peak of the process, including imports. Every reader
runs ``--repeats`` times, in turns with the others, and the fastest run counts. Results go to
benchmarks/results/reading.json.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

READERS = ("pandas-csv", "edhnn-csv", "json-hif", "edhnn-hif")


def make_files(folder: Path, incidences: int) -> None:
    """Write random memberships to both files, with a tenth as many nodes and hyperedges."""
    random = np.random.default_rng(0)
    nodes, edges = (random.integers(0, incidences // 10, incidences).tolist() for _ in range(2))
    with (folder / "big.csv").open("w") as table, (folder / "big.hif.json").open("w") as document:
        table.write("node,hyperedge\n")
        document.write('{"network-type":"undirected","incidences":[\n')
        for start in range(0, incidences, 10**6):
            block = list(zip(nodes[start : start + 10**6], edges[start : start + 10**6], strict=True))
            table.write("".join(f"{node},{edge}\n" for node, edge in block))
            document.write(",\n" if start else "")
            document.write(",\n".join(f'{{"edge":{edge},"node":{node}}}' for node, edge in block))
        document.write("]}\n")


def read(reader: str, folder: Path) -> None:
    """Read one file with one reader and print time, peak memory and the number of rows."""
    csv, hif = folder / "big.csv", folder / "big.hif.json"
    if reader == "pandas-csv":
        import pandas

        start = time.perf_counter()
        size = len(pandas.read_csv(csv))
    elif reader == "json-hif":
        start = time.perf_counter()
        with hif.open() as stream:
            size = len(json.load(stream)["incidences"])
    else:
        import edhnn

        start = time.perf_counter()
        size = edhnn.read_dataset(csv if reader == "edhnn-csv" else hif).hypergraph.num_incidences
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "rows_or_memberships": size}))


def run(folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    best: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for reader in READERS:
            command = [sys.executable, __file__, "--read", reader, "--folder", str(folder)]
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            known = best.setdefault(reader, measured)
            known["seconds"] = min(known["seconds"], measured["seconds"])
            known["peak_bytes"] = min(known["peak_bytes"], measured["peak_bytes"])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidences", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "reading.json")
    parser.add_argument("--read", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(arguments.read, arguments.folder)
        return
    if arguments.folder:
        make_files(arguments.folder, int(arguments.incidences))
        return
    with (
        tempfile.TemporaryDirectory() as name
    ):  # a separate process makes them, because a child's peak starts at its parent's
        command = [sys.executable, __file__, "--folder", name, "--incidences", str(arguments.incidences)]
        subprocess.run(command, check=True)
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
        best = run(Path(name), arguments.repeats)
    csv, hif = (
        {
            "time": best[ours]["seconds"] / best[theirs]["seconds"],
            "memory": best[ours]["peak_bytes"] / best[theirs]["peak_bytes"],
        }
        for ours, theirs in (("edhnn-csv", "pandas-csv"), ("edhnn-hif", "json-hif"))
    )
    record = {
        "incidences": int(arguments.incidences),
        "repeats": arguments.repeats,
        "file_bytes": sizes,
        "readers": best,
        "ratio_edhnn_to_pandas_csv": csv,
        "ratio_edhnn_to_json_hif": hif,
        "machine": {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()},
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{'reader':12} {'seconds':>8} {'peak MB':>8}")
    for reader, measured in best.items():
        print(f"{reader:12} {measured['seconds']:8.2f} {measured['peak_bytes'] / 1e6:8.0f}")
    print(f"CSV compared with pandas: {csv['time']:.2f}x the time, {csv['memory']:.2f}x the memory")
    print(f"HIF compared with json.load: {hif['time']:.2f}x the time, {hif['memory']:.2f}x the memory")


if __name__ == "__main__":
    main()
