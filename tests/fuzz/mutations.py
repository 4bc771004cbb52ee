"""Break valid inputs: bytes, fields and structure, by a seeded generator."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from edhnn.cli.main import app
from tests.cli.test_surface import commands
from tests.contract.test_formats import TOKENS, VALUES, WORD, broken, mutated
from tests.fuzz.examples import Example, Words

Dice = random.Random
NAMES = ("", "x", "label", "node", "edge", "weight", "__proto__", "\x1b[31mred", "\u202etxt", "\x9b2J", "né", "a" * 300)
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 1e300, -1e308, 10**18, 10**30, float("nan"), float("inf")),
    *(*NAMES, "1", "nan", "../up", "/nowhere", [], {}, [[]], [1, 2], ["a"], {"a": 1}, {"0": [1]}, [None], "9" * 400),
)
SQL_VALUES = (None, 0, -1, 1e308, 2**62, "", "x", "nan", b"\xff\x00", "\x1b[31m", "[", '{"a": 1}', "RUNNING", "FAIL")
STEPS = ("word", "word", "word", "flip", "set", "delete", "insert", "overwrite", "truncate", "duplicate", "move")
TEXT_STEPS = ("word", "word", "word", "flip", "set", "delete", "insert", "truncate")
WORDS = (
    *("", "-", "--", "-1", "0", "1", "2", "3.5", "1e999", "nan", "inf", "9" * 30, "x", "a b", "*", "?", "~", "."),
    *("\x1b[31mred", "\x9b2J", "\u202etxt", "\udcff", "né", "a" * 300, "KEY", "hidden=", "=8", "hidden=8", "hidden=x"),
    *(
        "hidden=-1",
        "hidden=nan",
        "dropout=2",
        "dropout=[1]",
        "epochs=0",
        "seed=1",
        "learning_rate=1e300",
        "x=1",
        "a=b=c",
    ),
    *("learning_rate=nan", "weight_decay=-1", "scale_features=maybe", "hidden=true", "transforms=[]", "patience=0"),
    *("data.hif.json", "t.csv", "seeds.csv", "run", "c.toml", "grid.toml", "nowhere.csv", "new.csv", "new.png", "new"),
    *("nowhere/new.csv", "csbm-1", "csbm-99", "cora", "cpu", "cuda", "cuda:99", "meta", "mps", "auto", "xpu:0"),
    *("ed-hnn", "mlp", "hgnn", "nothing", "size", "node", "edge", "hif", "csv", "tv", "ce", "divergence", "admm"),
    *("classification", "regression", "multilabel", "paper", "official", "wide", "sqlite:///s.db", ":memory:", "all"),
)
NUMBERS = ("0", "1", "2", "3", "0.5", "1e-30", "1e30", "1e300", "nan", "inf")
COSTLY = dict.fromkeys(("--epochs", "--splits", "--trials", "--jobs"), ("", "-1", "0", "1", "2", "x", "nan", "1.5"))
COSTLY |= {"--budget": ("", "-1", "0", "x", "nan", "1e-9")}
"""Options whose large values are legitimate work that takes long, and the values to try."""
REQUIRED = {
    "train": {"--epochs": "1", "--splits": "1", "--jobs": "1"},
    "tune": {"--epochs": "1", "--splits": "1", "--jobs": "1", "--trials": "1"},
    "run": {"--budget": "0"},
}
"""Options without which a command may take long."""


def break_example(example: Example, dice: Dice) -> tuple[dict[str, bytes], Words]:
    """Return the files and the command of one input."""
    words = dice.choice(example.commands)
    if not example.breakable:
        return example.files, break_words(words, dice)
    files = dict(example.files)
    for _ in range(1 if dice.random() < 0.8 else 2):
        name = dice.choice(example.breakable)
        action = dice.random()
        if action < 0.03:
            files.pop(name, None)
        elif action < 0.06:
            files[name] = files.get(dice.choice(example.breakable), b"")
        elif action < 0.1:
            files[name] = random_bytes(dice)
        elif name in files:
            files[name] = break_file(name, files[name], dice)
    return files, words


def random_bytes(dice: Dice) -> bytes:
    if dice.random() < 0.5:
        return dice.randbytes(dice.randrange(600))
    return b"".join(dice.choice(TOKENS) for _ in range(dice.randrange(12)))


def break_file(name: str, content: bytes, dice: Dice) -> bytes:
    """Break the structure of a file, half of the time if we know it, or its bytes."""
    try:
        return _break_inside(name, content, dice)
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error):  # an earlier step broke the structure
        return break_bytes(content, dice)


def _break_inside(name: str, content: bytes, dice: Dice) -> bytes:
    if dice.random() < 0.5:
        for ending, change in STRUCTURES.items():
            if name.removesuffix(".gz").endswith(ending):
                packed = content[:2] == b"\x1f\x8b"
                changed = change(gzip.decompress(content) if packed else content, dice)
                return gzip.compress(changed, mtime=0) if packed else changed
    text = name.endswith(".toml")
    return broken(content, lambda data: break_bytes(data, dice, text=text), dice.random() < 0.7, dice.randrange(8))


def break_bytes(data: bytes, dice: Dice, *, text: bool = False) -> bytes:
    """Change a few bytes or words. In ``text`` no digits are repeated: they may ask for much work."""
    operations = TEXT_STEPS if text else STEPS
    steps = [
        (dice.choice(operations), dice.randrange(2**16), dice.randrange(41), dice.choice(TOKENS), dice.randrange(2**16))
        for _ in range(dice.randint(1, 4))
    ]
    return mutated(data, steps)


def break_json(data: bytes, dice: Dice) -> bytes:
    """Replace, remove, repeat or rename values of a JSON document."""
    try:
        document = json.loads(data)
    except ValueError:
        return break_bytes(data, dice)
    for _ in range(dice.randint(1, 3)):
        places = list(_places(document))
        if not places:
            break
        holder, key = dice.choice(places)
        action = dice.random()
        if action < 0.6:
            holder[key] = dice.choice(JSON_VALUES)
        elif action < 0.75:
            del holder[key]
        elif action < 0.85 and isinstance(holder, list):
            holder.extend([holder[key]] * dice.randint(1, 3))
        elif isinstance(holder, dict):
            holder[dice.choice(NAMES)] = holder.pop(key)
        else:
            holder[key] = dice.choice(places)[0]
            if _is_endless(document):
                holder[key] = None
    return json.dumps(document, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    pending = [document]
    while pending:
        holder = pending.pop()
        if isinstance(holder, dict | list):
            for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
                yield holder, key
                pending.append(value)


def _is_endless(document: Any) -> bool:
    try:
        json.dumps(document)
    except ValueError:
        return True
    return False


GENTLE: dict[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (0, 1, 2, 3, -1, 10**9),
    float: (0.0, 0.5, 1.0, -1.0, 1e-30, 1e30, 1e300, float("nan"), float("inf")),
}
"""Values of the same type: most of them pass the parser and reach the code behind it."""


def change_json(data: bytes, dice: Dice) -> bytes:
    """Replace one number or switch of a JSON document by another of its type."""
    try:
        document = json.loads(data)
    except ValueError:
        return break_bytes(data, dice)
    places = [(holder, key) for holder, key in _places(document) if type(holder[key]) in GENTLE]
    if not places:
        return break_json(data, dice)
    holder, key = dice.choice(places)
    holder[key] = dice.choice(GENTLE[type(holder[key])])
    return json.dumps(document).encode()


def break_safetensors(data: bytes, dice: Dice) -> bytes:
    """Keep the header and replace a few numbers behind it."""
    if len(data) < 16:
        return break_bytes(data, dice)
    begin = 8 + int.from_bytes(data[:8], "little")
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        if begin + 4 <= len(data):
            at = begin + 4 * dice.randrange((len(data) - begin) // 4)
            changed[at : at + 4] = struct.pack("<f", dice.choice((*GENTLE[float][:6], float("nan"), float("inf"))))
    return bytes(changed)


def break_json_lines(data: bytes, dice: Dice) -> bytes:
    """Break a line of JSON lines, or repeat, remove or exchange lines."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at, action = dice.randrange(len(lines)), dice.random()
    if action < 0.7:
        lines[at] = break_json(lines[at], dice) + b"\n"
    elif action < 0.8:
        lines.insert(at, dice.choice(lines))
    elif action < 0.9:
        del lines[at]
    else:
        dice.shuffle(lines)
    return b"".join(lines)


def break_table(data: bytes, dice: Dice) -> bytes:
    """Replace, remove, repeat or exchange cells, rows and columns of a text table."""
    separator = b"\t" if b"\t" in data.split(b"\n")[0] else b","
    rows = [line.split(separator) for line in data.split(b"\n")]
    for _ in range(dice.randint(1, 4)):
        row = dice.choice(rows)
        at, action = dice.randrange(len(row)), dice.random()
        if action < 0.6:
            row[at] = dice.choice((*VALUES, *(name.encode() for name in NAMES)))
        elif action < 0.7:
            row.append(row[at])
        elif action < 0.8 and len(row) > 1:
            del row[at]
        elif action < 0.9:
            rows.insert(dice.randrange(len(rows)), list(row))
        else:
            dice.shuffle(rows)
    return b"\n".join(separator.join(row) for row in rows)


COLUMNS: tuple[Callable[[int], pa.Array], ...] = (
    lambda size: pa.nulls(size),
    lambda size: pa.array([None] * size, pa.string()),
    lambda size: pa.array([float("nan")] * size),
    lambda size: pa.array([float("inf"), *[1.0] * (size - 1)][:size]),
    lambda size: pa.array([2**63 - 1] * size),
    lambda size: pa.array([2**64 - 1] * size, pa.uint64()),
    lambda size: pa.array([b"\xff\x00"] * size),
    lambda size: pa.array([[1, 2]] * size),
    lambda size: pa.array([{"a": 1}] * size),
    lambda size: pa.array([True, None] * size)[:size],
    lambda size: pa.array(range(size), pa.timestamp("s")),
    lambda size: pa.array(range(size), pa.decimal128(38, 0)),
    lambda size: pa.array(["x"] * size).dictionary_encode(),
    lambda size: pa.array(["\x1b[31mred\x00"] * size),
    lambda size: pa.array([1.5] * size, pa.float16()),
    lambda size: pa.array(range(size), pa.duration("s")),
)


def break_parquet(data: bytes, dice: Dice) -> bytes:
    """Replace, rename, remove or repeat columns of a Parquet file, or change its metadata."""
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError):
        return break_bytes(data, dice)
    for _ in range(dice.randint(1, 3)):
        at, action = dice.randrange(max(table.num_columns, 1)), dice.random()
        if table.num_columns == 0:
            break
        if action < 0.6:
            table = table.set_column(at, table.column_names[at], dice.choice(COLUMNS)(table.num_rows))
        elif action < 0.7:
            table = table.set_column(at, dice.choice(NAMES), table.column(at))
        elif action < 0.8:
            table = table.remove_column(at)
        elif action < 0.9:
            table = pa.concat_tables([table, table.slice(0, dice.randrange(3))])
        else:
            table = table.replace_schema_metadata({dice.choice(("edhnn", "pandas", "x")): dice.choice(VALUES)})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def break_sqlite(data: bytes, dice: Dice) -> bytes:
    """Change values, rows, columns and tables of an SQLite file."""
    descriptor, path = tempfile.mkstemp(dir=".")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        connection = sqlite3.connect(path)
        connection.text_factory = bytes
        try:
            for _ in range(dice.randint(1, 3)):
                _change_sqlite(connection, dice)
        except sqlite3.Error:
            pass
        connection.commit()
        connection.close()
        with open(path, "rb") as stream:  # noqa: PTH123
            return stream.read()
    except sqlite3.Error:
        return break_bytes(data, dice)
    finally:
        os.unlink(path)  # noqa: PTH108


def _change_sqlite(connection: sqlite3.Connection, dice: Dice) -> None:
    names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    table = dice.choice(connection.execute(names).fetchall())[0].decode()
    columns = [row[1].decode() for row in connection.execute(f'PRAGMA table_info("{table}")')]
    action = dice.random()
    if action < 0.7:
        column, value = dice.choice(columns), dice.choice(SQL_VALUES)
        where = dice.choice(("", f" WHERE rowid = {dice.randint(1, 3)}"))
        connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?{where}', (value,))
    elif action < 0.85:
        connection.execute(f'DELETE FROM "{table}" WHERE rowid >= {dice.randint(0, 3)}')
    elif action < 0.95:
        connection.execute(f'DROP TABLE "{table}"')
    else:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{dice.choice(columns)}" TO "other"')


def break_toml(data: bytes, dice: Dice) -> bytes:
    """Replace values, repeat, remove and exchange lines of a TOML file."""
    lines = data.splitlines(keepends=True)
    for _ in range(dice.randint(1, 3)):
        at, action = dice.randrange(len(lines)), dice.random()
        key, sign, old = lines[at].partition(b"=")
        if action < 0.4 and re.fullmatch(rb"\s*[-0-9.]+\s*", old):
            number = dice.choice(GENTLE[float if b"." in old else int])
            lines[at] = key + f"= {number}\n".encode()
        elif action < 0.6 and sign:
            value = dice.choice((*VALUES, *(json.dumps(name).encode() for name in NAMES)))
            lines[at] = key + b"= " + value + b"\n"
        elif action < 0.7 and (words := list(WORD.finditer(lines[at]))):
            word = dice.choice(words)
            lines[at] = lines[at][: word.start()] + dice.choice(VALUES) + lines[at][word.end() :]
        elif action < 0.8:
            lines.insert(dice.randrange(len(lines)), lines[at])
        elif action < 0.9 and len(lines) > 1:
            del lines[at]
        else:
            lines.insert(at, dice.choice((b"x = 1\n", b"[x]\n", b"[[row]]\n", b"[[[\n", b"a.b.c = 1\n", b"x = {\n")))
    return b"".join(lines)


STRUCTURES: dict[str, Callable[[bytes, Dice], bytes]] = {
    ".json": lambda data, dice: (change_json if dice.random() < 0.5 else break_json)(data, dice),
    ".safetensors": break_safetensors,
    ".jsonl": break_json_lines,
    ".csv": break_table,
    ".tsv": break_table,
    ".parquet": break_parquet,
    ".db": break_sqlite,
    ".toml": break_toml,
}
"""How to break the structure of a file, by the end of its name."""


@cache
def options() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the options of each verb, with the values to try; no values for a switch."""
    return {
        name: {
            flag: () if getattr(parameter, "is_flag", False) else COSTLY.get(flag, WORDS)
            for parameter in command.params
            for flag in parameter.opts
            if flag.startswith("--")
        }
        for name, command in commands(typer.main.get_command(app))
    }


def break_words(words: Words, dice: Dice) -> Words:
    """Change, add, repeat, remove and exchange the words of a command; NUL cannot be in a word."""
    changed = list(words)
    verb = " ".join(words[:2]) if words[0] == "data" else words[0]
    known = options().get(verb, {})
    for _ in range(dice.randint(1, 2)):
        action = dice.random()
        at = dice.randrange(len(changed)) if changed else 0
        if action < 0.5 and known:
            flag = dice.choice(sorted(known))
            value = (
                [dice.choice(known[flag] if dice.random() < 0.5 else COSTLY.get(flag, NUMBERS))] if known[flag] else []
            )
            changed += [flag, *value] if dice.random() < 0.9 else [f"{flag}={''.join(value)}"]
        elif action < 0.7 and changed:
            changed[at] = dice.choice(COSTLY.get(changed[at - 1], WORDS))
        elif action < 0.8:
            changed.insert(at, dice.choice(WORDS))
        elif action < 0.9 and changed:
            del changed[at]
        elif changed:
            changed.append(changed[at])
    for flag, value in REQUIRED.get(changed[0] if changed else "", {}).items():
        if not any(word.startswith(flag) for word in changed):
            changed += [flag, value]
    return tuple(changed)
