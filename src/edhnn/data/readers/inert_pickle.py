"""Pickles read as data, never run as programs.

A pickle is a program for a small stack machine, and Python's own machine is unsafe even behind an allow-list of
globals: 60 bytes keep it busy for hours (a dictionary key of nested, shared tuples), 7 bytes make it ask for
gigabytes (a memo position), and a deep key overflows its C stack. So this is a machine of our own for the same
programs. It calls nothing: what a pickle wants made is written down as an `Inert` record of maker, arguments, items
and state; no dictionary or set is built, so nothing a file holds is hashed, compared or walked through. Whoever
wants an array checks such a record and builds it (`edhnn.data.readers.inert_arrays`).

Strings of Python 2 become text as latin-1. Names outside `GLOBALS`, persistent ids, extension codes and
out-of-band buffers are refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edhnn.data.files import Limits, open_limited
from edhnn.data.readers.inert import GLOBALS, Global, Inert
from edhnn.data.readers.pickle_bytes import MAX_WORD, PickleBytes
from edhnn.errors import EdhnnError, LimitError

_MAX_STEPS = 2**25
_PYTHON_2_STRING = re.compile(rb"(?:[^\\]++|\\(?:x[0-9a-fA-F]{2}|[\\'\"ntr]))*+")


def read_inert(path: Path, limits: Limits) -> tuple[Any, int]:
    """Read a pickle of any protocol without running it.

    Args:
        path: The file, plain or gzip.
        limits: Size limits.

    Returns:
        The object, made of ``None``, bool, int, float, str, bytes, list, tuple, `Global` and `Inert`; and the
        size of the pickle in bytes.

    Raises:
        DataError: if the pickle is broken, or mentions anything that is not on the allow-list.
    """
    with open_limited(path, limits) as stream:
        data = stream.read()
    return _Machine(data, path).run(), len(data)


class _Machine(PickleBytes):
    """The stack machine. Each opcode is a row of `_OPCODES` below."""

    def __init__(self, data: bytes, path: Path) -> None:
        super().__init__(data, path)
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        begin = 0
        try:
            for _ in range(_MAX_STEPS):
                begin = self.at
                opcode = self.take(1)
                if opcode == b".":
                    return self.stack.pop()
                _OPCODES[opcode](self)
        except EdhnnError:
            raise
        except (IndexError, KeyError, ValueError, struct.error) as error:
            raise self.error("The file must be an intact pickle.", begin, "Copy or download it again.") from error
        raise LimitError(
            f"A pickle must be at most {_MAX_STEPS} steps long.",
            path=self.path,
            remedy="Save the data as text or .npz.",
        )

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_to_mark(self) -> list[Any]:
        mark = self.marks.pop()
        above = self.stack[mark:]
        del self.stack[mark:]
        return above

    def pop_tuple(self, length: int) -> tuple[Any, ...]:
        if length > len(self.stack):
            raise IndexError
        parts = tuple(self.stack[-length:])
        del self.stack[-length:]
        return parts

    def push_integer(self) -> None:
        line = self.line()
        if line in (b"00", b"01"):  # how protocol 0 spells False and True
            self.push(line == b"01")
        else:
            self.at -= len(line) + 1
            self.push(self.whole_line())

    def push_long(self, form: str) -> None:
        size = self.number(form)
        if size > 8:
            raise self.error(f"Integers must fit into 64 bits. One here takes {size} bytes.")
        self.push(int.from_bytes(self.take(size), "little", signed=True))

    def push_python_2_string(self) -> None:
        line = self.line(len(self.data))
        if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
            raise ValueError
        if not _PYTHON_2_STRING.fullmatch(line, 1, len(line) - 1):
            raise ValueError
        self.push(line[1:-1].decode("unicode_escape"))

    def push_global(self, module: Any, name: Any) -> None:
        found = GLOBALS.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
        if found is None:
            spelt = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "without a name"
            raise self.error(f"The pickle must hold data only. It asks for the global {ascii(spelt)[: MAX_WORD * 2]}.")
        self.push(found)

    def call(self) -> None:
        maker, arguments = self.pop_tuple(2)
        if not isinstance(maker, Global) or not isinstance(arguments, tuple):
            raise self.error("The pickle must call allowed names with a tuple of arguments, nothing else.")
        if maker.name == "reconstructor":
            if not arguments or not isinstance(arguments[0], Global):
                raise self.error("'copyreg._reconstructor' must be given an allowed class.")
            self.push(Inert(arguments[0].name))
        else:
            self.push(Inert(maker.name, arguments))

    def build(self) -> None:
        target, state = self.pop_tuple(2)
        if not isinstance(target, Inert) or target.state is not None:
            raise self.error("The pickle must set the state of an object it made, and once.")
        target.state = state
        self.push(target)

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, Inert) and target.maker != "dict":
            target.items.extend(items)
        elif isinstance(target, list):
            target.extend(items)
        else:
            raise self.error("The pickle must append to a list or set that it made.")

    def set_items(self, parts: list[Any]) -> None:
        target = self.stack[-1]
        if len(parts) % 2 or not isinstance(target, Inert) or target.maker != "dict":
            raise self.error("The pickle must put pairs into a dictionary that it made.")
        target.items.extend(zip(parts[::2], parts[1::2], strict=True))

    def push_dict(self) -> None:
        parts = self.pop_to_mark()
        self.push(Inert("dict"))
        self.set_items(parts)

    def remember(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def check_protocol(self) -> None:
        if self.number("<B") > 5:
            raise self.error("The protocol of the pickle must be 5 or less.")

    def check_frame(self) -> None:
        if self.number("<Q") > len(self.data) - self.at:
            raise IndexError

    def refuse(self) -> None:
        raise self.error("The pickle must not use persistent ids, extension codes, old classes or outside buffers.")


_Step = Callable[[_Machine], object]

_OPCODES: dict[bytes, _Step] = {
    b"\x80": _Machine.check_protocol,
    b"\x95": _Machine.check_frame,
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"I": _Machine.push_integer,
    b"L": lambda m: m.push(m.whole_line()),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": lambda m: m.push_long("<B"),
    b"\x8b": lambda m: m.push_long("<i"),
    b"F": lambda m: m.push(float(m.line())),
    b"G": lambda m: m.push(m.number(">d")),
    b"S": _Machine.push_python_2_string,
    b"U": lambda m: m.push(m.counted("<B").decode("latin-1")),
    b"T": lambda m: m.push(m.counted("<i").decode("latin-1")),
    b"V": lambda m: m.push(m.line(len(m.data)).decode("raw-unicode-escape")),
    b"\x8c": lambda m: m.push(m.counted("<B").decode("utf-8", "surrogatepass")),
    b"X": lambda m: m.push(m.counted("<I").decode("utf-8", "surrogatepass")),
    b"\x8d": lambda m: m.push(m.counted("<Q").decode("utf-8", "surrogatepass")),
    b"C": lambda m: m.push(m.counted("<B")),
    b"B": lambda m: m.push(m.counted("<I")),
    b"\x8e": lambda m: m.push(m.counted("<Q")),
    b"\x96": lambda m: m.push(m.counted("<Q")),
    b"(": lambda m: m.marks.append(len(m.stack)),
    b"0": lambda m: m.stack.pop(),
    b"1": _Machine.pop_to_mark,
    b"2": lambda m: m.push(m.stack[-1]),
    b")": lambda m: m.push(()),
    b"\x85": lambda m: m.push(m.pop_tuple(1)),
    b"\x86": lambda m: m.push(m.pop_tuple(2)),
    b"\x87": lambda m: m.push(m.pop_tuple(3)),
    b"t": lambda m: m.push(tuple(m.pop_to_mark())),
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.pop_to_mark()),
    b"a": lambda m: m.extend([m.stack.pop()]),
    b"e": lambda m: m.extend(m.pop_to_mark()),
    b"}": lambda m: m.push(Inert("dict")),
    b"d": _Machine.push_dict,
    b"s": lambda m: m.set_items(list(m.pop_tuple(2))),
    b"u": lambda m: m.set_items(m.pop_to_mark()),
    b"\x8f": lambda m: m.push(Inert("set")),
    b"\x90": lambda m: m.extend(m.pop_to_mark()),
    b"\x91": lambda m: m.push(Inert("frozenset", (), m.pop_to_mark())),
    b"g": lambda m: m.push(m.memo[m.whole_line()]),
    b"h": lambda m: m.push(m.memo[m.number("<B")]),
    b"j": lambda m: m.push(m.memo[m.number("<I")]),
    b"p": lambda m: m.remember(m.whole_line()),
    b"q": lambda m: m.remember(m.number("<B")),
    b"r": lambda m: m.remember(m.number("<I")),
    b"\x94": lambda m: m.remember(len(m.memo)),
    b"c": lambda m: m.push_global(m.line(256).decode("utf-8"), m.line(256).decode("utf-8")),
    b"\x93": lambda m: m.push_global(*m.pop_tuple(2)),
    b"R": _Machine.call,
    b"\x81": _Machine.call,
    b"b": _Machine.build,
    **dict.fromkeys((b"P", b"Q", b"i", b"o", b"\x82", b"\x83", b"\x84", b"\x92", b"\x97", b"\x98"), _Machine.refuse),
}
