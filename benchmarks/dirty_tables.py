"""Compare ways to read tables that are not clean: Arrow as we use it, DuckDB, and charset-normalizer for encodings.

    python benchmarks/dirty_tables.py                       all, about ten minutes
    python benchmarks/dirty_tables.py --memberships 1e6     smaller tables

*Speed*: a table of memberships with whole-number ids and one with text ids are read and their ids numbered, each in a
fresh process. ``edhnn`` is `read_dataset`; ``duckdb`` reads with the types given, numbers ids in the order of their
first line and joins out of core; ``duckdb-text`` reads whole-number ids as text, as `read_dataset` does. *Scan*:
every line of a table is read and what is wrong with it counted. *Exactness*: what becomes of ``007`` and of bad
lines. *Encodings*: texts of known encodings, cut to several sizes, through charset-normalizer. Results go to
benchmarks/results/dirty_tables.json. DuckDB is no dependency of edhnn: pip install duckdb==2.0.0.
"""

from __future__ import annotations

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
from typing import Any

import numpy as np

READERS = ("edhnn", "duckdb", "duckdb-text")
SENTENCES = {
    "German": "Größe;Käse;Brötchen;Müsli;süße Äpfel;Straße;Gemüse;Öl;Würstchen;Joghurt natur;Milch;Weißbrot",
    "French": "café crème;pâté;bûche de Noël;crêpes;œufs;sirop d'érable;garçon;fenêtre;thé vert;lait entier;pain",
    "Polish": "żółty ser;chleb;mąka;śliwki;gęś;ćwikła;łosoś;źródlana woda;ogórki;jabłka;mleko świeże;bułka",
    "Russian": "молоко;хлеб;яйца;сыр;масло;яблоки;капуста;картофель;чай зелёный;сахар;мука;рыба",
}
ENCODINGS = (
    ("German", "utf-8"),
    ("German", "cp1252"),
    ("German", "latin-1"),
    ("German", "utf-16"),
    ("French", "cp1252"),
    ("Polish", "cp1250"),
    ("Polish", "utf-8"),
    ("Russian", "cp1251"),
    ("Russian", "utf-8"),
)


def write_tables(folder: Path, memberships: int) -> None:
    """Write random memberships with whole-number ids and with text ids, a tenth as many nodes and hyperedges."""
    random = np.random.default_rng(0)
    nodes, edges = (random.integers(0, memberships // 10, memberships).tolist() for _ in range(2))
    for name, row in (("numbers", "{},{}\n"), ("texts", "sku-{:08d},order {}\n")):
        with (folder / f"{name}.csv").open("w") as table:
            table.write("node,hyperedge\n")
            for start in range(0, memberships, 10**6):
                block = zip(nodes[start : start + 10**6], edges[start : start + 10**6], strict=True)
                table.write("".join(row.format(node, edge) for node, edge in block))


def read(reader: str, path: Path) -> None:
    """Read one file with one reader and print time, peak memory and the number of memberships."""
    if reader == "edhnn":
        import edhnn

        start = time.perf_counter()
        size = edhnn.read_dataset(path).hypergraph.num_incidences
    else:
        import duckdb

        start = time.perf_counter()
        text = reader == "duckdb-text" or path.stem == "texts"
        kind = "VARCHAR" if text else "BIGINT"
        database = duckdb.connect()
        database.execute("SET threads = 2")
        database.execute("SET preserve_insertion_order = true")
        database.execute(
            f"CREATE TABLE t AS SELECT row_number() OVER () AS row, * FROM "
            f"read_csv('{path}', header=true, delim=',', columns={{'node': '{kind}', 'hyperedge': '{kind}'}})"
        )
        for column in ("node", "hyperedge"):
            database.execute(
                f"CREATE TABLE ids_{column} AS SELECT {column}, row_number() OVER (ORDER BY min(row)) - 1 AS number "
                f"FROM t GROUP BY {column}"
            )
        table = database.execute(
            "SELECT n.number AS node, e.number AS edge FROM t JOIN ids_node n USING (node) "
            "JOIN ids_hyperedge e USING (hyperedge) ORDER BY row"
        ).fetchnumpy()
        size = len(table["node"])
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "rows_or_memberships": size}))


def speed(folder: Path, repeats: int) -> dict[str, Any]:
    best: dict[str, Any] = {}
    for _ in range(repeats):
        for name in ("numbers", "texts"):
            for reader in READERS if name == "numbers" else READERS[:2]:
                command = [sys.executable, __file__, "--read", reader, "--file", str(folder / f"{name}.csv")]
                measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                known = best.setdefault(f"{name}, {reader}", measured)
                known["seconds"] = min(known["seconds"], measured["seconds"])
                known["peak_bytes"] = min(known["peak_bytes"], measured["peak_bytes"])
    return best


def scan(folder: Path) -> dict[str, Any]:
    """Time a scan of every line of the table of text ids: ours, and DuckDB with its report of rejected lines."""
    import duckdb

    from edhnn.data.limits import Limits
    from edhnn.io.tables.lines import scan_lines

    path = folder / "texts.csv"
    options = "all_varchar=true, header=true, store_rejects=true, strict_mode=false"
    found = {}
    for name, count in (
        ("edhnn", lambda: scan_lines(path, Limits()).lines),
        (
            "duckdb",
            lambda: duckdb.connect().execute(f"SELECT count(*) FROM read_csv('{path}', {options})").fetchone()[0],
        ),
    ):
        start, cpu = time.perf_counter(), time.process_time()
        lines = count()
        found[name] = {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
            "lines_or_rows": lines,
        }
    return found


def exactness(folder: Path) -> dict[str, Any]:
    """Return what DuckDB's sniffer and its table of rejected lines make of small tables that are not clean."""
    import duckdb

    tables = {
        "leading zeros": b"product,order\n007,1\n12,2\n",
        "semicolons, decimal commas": b"\xef\xbb\xbforder;product;price\n1;007;1.234,50\n2;12;0,99\n",
        "a short and a long line": b"a,b,c\n1,2,3\n4,5\n6,7,8\n9,10,11,12\n",
        "an open quote": b'a,b\n1,x\n2,"y\n3,z\n4,w\n',
        "a byte of latin-1": b"a,b\n1,x\n2,K\xe4se\n3,z\n",
        "no header": b"1,2\n3,4\n1,5\n",
        "baskets": b"milk,bread,eggs\nmilk,beer\nbread\n",
    }
    found: dict[str, Any] = {}
    for name, content in tables.items():
        path = folder / "small.csv"
        path.write_bytes(content)
        database = duckdb.connect()
        row: dict[str, Any] = {}
        for options in ("", ", all_varchar=true"):
            try:
                rows = database.execute(f"SELECT * FROM read_csv('{path}', store_rejects=true{options})").fetchall()
                row["rows" + options] = [[str(cell) for cell in line] for line in rows]
            except duckdb.Error as error:
                row["rows" + options] = str(error).splitlines()[0]
        try:
            row["rejected"] = database.execute("SELECT line, error_type FROM reject_errors").fetchall()
        except duckdb.Error as error:
            row["rejected"] = str(error).splitlines()[0]
        found[name] = row
    return found


def encodings() -> list[dict[str, Any]]:
    """Return what charset-normalizer says about texts of known encodings, of several sizes."""
    from charset_normalizer import from_bytes

    results = []
    for language, encoding in ENCODINGS:
        words = SENTENCES[language].split(";")
        random = np.random.default_rng(0)
        chosen = random.integers(len(words), size=60_000)
        lines = ["order;product;name", *(f"{i // 3};{i % 50};{words[word]}" for i, word in enumerate(chosen))]
        for size in (200, 10_000, 1_000_000):
            content = "\n".join(lines)[:size].encode(encoding)
            start = time.perf_counter()
            best = from_bytes(content).best()
            seconds = time.perf_counter() - start
            said = None if best is None else best.encoding
            same = best is not None and content.decode(said, "replace") == content.decode(encoding)
            results.append(
                {"language": language, "encoding": encoding, "bytes": len(content), "said": said, "same_text": same}
                | {"seconds": round(seconds, 3)}
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memberships", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "dirty_tables.json")
    parser.add_argument("--only", choices=("speed", "scan", "exactness", "encodings"))
    parser.add_argument("--read", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read(given.read, given.file)
        return
    if given.write:
        write_tables(given.write, int(given.memberships))
        return
    record = json.loads(given.out.read_text()) if given.out.exists() else {}
    parts = (given.only,) if given.only else ("speed", "scan", "exactness", "encodings")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"speed", "scan"} & set(parts):  # a process of its own, because a child's peak starts at its parent's
            command = [sys.executable, __file__, "--write", name, "--memberships", str(given.memberships)]
            subprocess.run(command, check=True)
            record["memberships"] = int(given.memberships)
        if "speed" in parts:
            record["speed"] = speed(folder, given.repeats)
        if "scan" in parts:
            record["scan"] = scan(folder)
        if "exactness" in parts:
            record["exactness"] = exactness(folder)
        if "encodings" in parts:
            record["encodings"] = encodings()
    record["machine"] = {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}
    given.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({part: record[part] for part in parts}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
