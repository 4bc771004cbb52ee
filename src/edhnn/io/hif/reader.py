"""Streaming reader of HIF: bounded memory besides the result, all rules checked, errors that name the record.

A block of bytes is cut where a record of the current section ends. msgspec decodes the text before the cut into typed
records, which also checks JSON and types. The first attempt cuts at the last closing brace: if the text decodes as
whole records, the cut was right. If not (attributes, the end of a section, an error), the exact cut is computed without
decoding: numpy locates all quotes and brackets at once, the parity of the quotes marks strings, and the depth is a
running sum. Text that is not JSON gets some cut too, and decoding it then raises the error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from edhnn.data.ids import IdColumn, encode_ids
from edhnn.data.limits import Limits, size_in_words
from edhnn.errors import DataError, LimitError
from edhnn.io.files import ByteReader, open_limited
from edhnn.io.hif.document import HifDocument, NetworkType, Records, WeightColumn
from edhnn.typing import BoolArray, IndexArray, IntArray, JsonObject

# The role of each byte in the search for record ends: quotes (2) toggle strings, brackets (1, -1) change the depth.
_ROLE = np.zeros(256, dtype=np.int8)
_ROLE[[ord("{"), ord("[")]], _ROLE[[ord("}"), ord("]")]], _ROLE[ord('"')] = 1, -1, 2
_BLOCK_BYTES = 4 * 2**20
_MAX_KEY_BYTES = 2**20
_FREE_LISTS, _BYTES_PER_LIST = 10**6, 8  # an empty list has 2 bytes of text and takes about 90 in memory
_SECTIONS = ("incidences", "nodes", "edges")
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_BLANKS = b" \t\r\n"
_ERROR_AT_RECORD = re.compile(r" - at `\$\[(\d+)\](.*)`$")
_ERROR_AT_BYTE = re.compile(r" \(byte (\d+)\)$")


def read_hif(path: Path, limits: Limits | None = None) -> HifDocument:
    """Read a HIF document, plain or gzip-compressed.

    Args:
        path: The file.
        limits: Size limits.

    Returns:
        The document.

    Raises:
        DataError: if it is not JSON or violates a rule of the format. The message names the record.
        LimitError: if it is larger than the limits.
    """
    limits = limits or Limits()
    with open_limited(path, limits) as stream:
        return _HifParser(stream, path, limits).document()


@final
class _HifParser:
    """A parser of the top level of a document. It decodes sections block by block."""

    def __init__(self, stream: ByteReader, path: Path, limits: Limits) -> None:
        self._stream, self._path, self._limits = stream, path, limits
        self._buffer = b""
        self._start = 0  # offset of the buffer in the document
        self._lists = 0  # lists and objects in the document so far
        self._ended = False

    def document(self) -> HifDocument:
        """Parse the whole document."""
        sections: dict[str, _Section] = {}
        network_type: NetworkType | None = None
        metadata: JsonObject | None = None
        seen: set[str] = set()
        self._refill("")
        if self._buffer[:3] == b"\xef\xbb\xbf":
            self._take(3)
        self._expect(b"{")
        first = True
        while not self._at(b"}"):
            if not first:
                self._expect(b",")
            first = False
            key = self._key()
            if key in seen:
                raise self._error(f"Duplicate key '{key}'. Every key must occur once.")
            seen.add(key)
            if key in _SECTIONS:
                sections[key] = self._section(key)
            elif key == "network-type":
                network_type = self._value(key, NetworkType)
            elif key == "metadata":
                metadata = self._value(key, dict[str, Any])
            else:
                allowed = ", ".join((*_SECTIONS, "network-type", "metadata"))
                raise self._error(f"Unknown key '{key}'. A HIF document may contain only {allowed}.")
        self._expect(b"}")
        self._at(b"")  # skip blanks
        if self._buffer:
            raise self._error(f"The file must end after the document. Got {self._next_bytes()}.")
        if "incidences" not in sections:
            raise DataError("The key 'incidences' is missing. Every HIF document must have it.", path=self._path)
        incidences, nodes, edges = sections["incidences"], sections.get("nodes"), sections.get("edges")
        node_ids, in_nodes, node = encode_ids(nodes.nodes if nodes else IdColumn(), incidences.nodes)
        edge_ids, in_edges, edge = encode_ids(edges.edges if edges else IdColumn(), incidences.edges)
        self._limits.check_nodes(len(node_ids), self._path)
        return HifDocument(
            node_ids=node_ids,
            edge_ids=edge_ids,
            incidences=incidences.records(node, edge),
            nodes=nodes.records(in_nodes, None) if nodes else None,
            edges=edges.records(None, in_edges) if edges else None,
            network_type=network_type,
            metadata=metadata,
        )

    def _section(self, name: str) -> _Section:
        section = _Section(name)
        if not self._at(b"["):
            raise self._error(f"'{name}' must be an array of records.")
        self._take(1)
        closed = False
        while not closed:
            end = self._buffer.rfind(b"}") + 1
            if end and self._append(section, end, strict=False):
                continue
            end, closed = _last_record_end(self._buffer)
            if end or closed:
                self._append(section, end, strict=True)
            else:
                self._refill(f"{name}[{section.count}]")
        self._expect(b"]")
        return section

    def _append(self, section: _Section, end: int, *, strict: bool) -> bool:
        """Decode the buffer up to ``end`` as whole records. On failure raise if ``strict``, else return ``False``."""
        text = self._buffer[:end].strip(_BLANKS)
        if section.count and text:
            if text[:1] != b"," or text == b",":
                if not strict:
                    return False
                problem = "Records must be separated by one comma, without a comma after the last."
                raise self._error(problem, where=f"after {section.name}[{section.count - 1}]")
            text = text[1:]
        text = b"[" + text + b"]"
        try:
            section.append(_DECODERS[section.name].decode(text), text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if strict:
                raise self._record_error(section, text, error) from error
            return False
        self._take(end)
        return True

    def _record_error(self, section: _Section, text: bytes, error: Exception) -> DataError:
        if isinstance(error, RecursionError):
            return LimitError("The JSON is nested too deep.", path=self._path, where=f"in {section.name}")
        message, where = str(error), f"{section.name}, from record {section.count} on"
        if match := _ERROR_AT_RECORD.search(message):
            number = section.count + int(match[1])
            message, where = message[: match.start()], f"{section.name}[{number}]{match[2]}"
        elif match := _ERROR_AT_BYTE.search(message):
            before = text[1 : int(match[1])].decode(errors="replace")
            where = f"{section.name}, near byte {self._start + int(match[1])}"
            message = f"{message[: match.start()]}, after '{before[-40:]}'"
        return DataError(f"{message}.", path=self._path, where=where)

    def _key(self) -> str:
        while not (match := _KEY.match(self._buffer)):
            if self._ended or len(self._buffer) > _MAX_KEY_BYTES:
                raise self._error(f"Expected a key in double quotes and a colon. Got {self._next_bytes()}.")
            self._refill("a key")
        try:
            key = msgspec.json.decode(match[1], type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._error(f"The key must be a JSON string. Cause: {error}.") from error
        self._take(match.end())
        return key

    def _value(self, key: str, kind: Any) -> Any:
        """Read the value of a key outside the sections: a string or an object."""
        self._at(b"")  # skip blanks
        while not (end := _value_end(self._buffer)):
            self._refill(f"'{key}'")
        try:
            value = msgspec.json.decode(self._buffer[:end], type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._error(f"The value of '{key}' is invalid. Cause: {error}.") from error
        except RecursionError as error:
            raise LimitError("The JSON is nested too deep.", path=self._path, where=f"in '{key}'") from error
        self._take(end)
        return value

    def _at(self, mark: bytes) -> bool:
        """Skip blanks, and return whether the next character is ``mark``."""
        while True:
            self._take(len(self._buffer) - len(self._buffer.lstrip(_BLANKS)))
            if self._buffer or self._ended:
                return self._buffer[:1] == mark
            self._refill("")

    def _expect(self, mark: bytes) -> None:
        if not self._at(mark):
            raise self._error(f"Expected '{mark.decode()}'. Got {self._next_bytes()}.")
        self._take(1)

    def _next_bytes(self) -> str:
        return f"'{self._buffer[:20].decode('utf-8', 'replace')}'" if self._buffer else "the end of the file"

    def _take(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._start += count

    def _refill(self, inside: str) -> None:
        if self._ended:
            raise self._error(f"The document ends inside {inside}." if inside else "The document ends too early.")
        if len(self._buffer) > self._limits.max_json_bytes:
            raise LimitError(
                f"A record must be at most {size_in_words(self._limits.max_json_bytes)}.",
                path=self._path,
                where=inside,
                remedy=None if self._limits.max_bytes else "If you trust the file, raise the limit with `max_bytes=`.",
            )
        more = self._stream.read(_BLOCK_BYTES)
        self._ended = not more
        self._buffer += more
        self._lists += more.count(b"[") + more.count(b"{")
        most = max(_FREE_LISTS, (self._start + len(self._buffer)) // _BYTES_PER_LIST)
        if self._lists > most and self._limits.max_bytes is None:
            raise LimitError(
                f"A document must have at most one list or object for every {_BYTES_PER_LIST} bytes, or {_FREE_LISTS}.",
                path=self._path,
                where=inside or None,
                remedy="If you trust the file, raise the limit with `max_bytes=`.",
            )

    def _error(self, problem: str, where: str | None = None) -> DataError:
        return DataError(problem, path=self._path, where=where or f"byte {self._start}")


class _Incidence(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    edge: int | str
    node: int | str
    weight: int | float | UnsetType = UNSET
    direction: Literal["head", "tail"] | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


class _Node(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    node: int | str
    weight: int | float | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


class _Edge(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    edge: int | str
    weight: int | float | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "incidences": msgspec.json.Decoder(list[_Incidence]),
    "nodes": msgspec.json.Decoder(list[_Node]),
    "edges": msgspec.json.Decoder(list[_Edge]),
}
_DIRECTION_CODE = {UNSET: 0, "head": 1, "tail": 2}


@final
class _Section:
    """The columns of a section while it is read."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0
        self.nodes, self.edges = IdColumn(), IdColumn()
        self.weight: WeightColumn | None = None
        self.directions: list[np.ndarray[tuple[int], np.dtype[np.int8]]] = []
        self.attrs: dict[int, JsonObject] = {}

    def append(self, records: list[Any], text: bytes) -> None:
        """Append decoded records. An optional key that does not occur in ``text`` occurs in none of them."""
        escaped = b"\\" in text
        if self.name != "edges":
            self.nodes.append([record.node for record in records])
        if self.name != "nodes":
            self.edges.append([record.edge for record in records])
        weights: list[int | float | None] = [None] * len(records)
        if escaped or b'"weight"' in text:
            weights = [None if record.weight is UNSET else record.weight for record in records]
            if self.weight is None and any(weight is not None for weight in weights):
                self.weight = WeightColumn()
                self.weight.append([None] * self.count)
        if self.weight is not None:
            self.weight.append(weights)
        codes = np.zeros(len(records), dtype=np.int8)
        if self.name == "incidences" and (escaped or b'"direction"' in text):
            codes[:] = [_DIRECTION_CODE[record.direction] for record in records]
        self.directions.append(codes)
        if escaped or b'"attrs"' in text:
            numbered = enumerate(records, self.count)
            self.attrs.update((number, record.attrs) for number, record in numbered if record.attrs is not UNSET)
        self.count += len(records)

    def records(self, node: IndexArray | None, edge: IndexArray | None) -> Records:
        """Return the columns with the numbers of the ids."""
        direction = np.concatenate(self.directions) if self.directions else None
        if direction is not None and not direction.any():
            direction = None
        return Records(node, edge, self.weight, direction, self.attrs)


def _structure(text: bytes) -> tuple[IntArray, IntArray]:
    """Return the offsets of brackets outside strings, and the depth after each, counted from 0 at the start."""
    roles = _ROLE[np.frombuffer(text, dtype=np.uint8)]
    offsets = np.flatnonzero(roles)
    kinds = roles[offsets]
    quotes = kinds == 2
    if b"\\" in text:
        quotes[quotes] = ~_escaped(text, offsets[quotes])
        kinds[(kinds == 2) & ~quotes] = 0
    outside = ~quotes & (kinds != 0) & (np.cumsum(quotes) % 2 == 0)
    return offsets[outside], np.cumsum(kinds[outside], dtype=np.int64)


def _escaped(text: bytes, quotes: IntArray) -> BoolArray:
    """Return whether each quote has an odd number of backslashes before it."""
    array = np.frombuffer(text, dtype=np.uint8)
    other = np.where(array == ord("\\"), -1, np.arange(len(array)))
    last_other = np.maximum.accumulate(other)
    before = np.where(quotes > 0, last_other[quotes - 1], -1)
    return np.asarray((quotes - 1 - before) % 2 == 1)


def _last_record_end(text: bytes) -> tuple[int, bool]:
    """Return the end of the last complete object of an array, and whether the array closes in ``text``.

    If it closes, the end is the offset of its closing bracket.
    """
    offsets, depth = _structure(text)
    closing = np.flatnonzero(depth < 0)
    if len(closing):
        return int(offsets[closing[0]]), True
    ends = np.flatnonzero(depth == 0)
    return (int(offsets[ends[-1]]) + 1, False) if len(ends) else (0, False)


def _value_end(text: bytes) -> int:
    """Return the end of the JSON value at the start of ``text``, or 0 if the value continues after ``text``."""
    if text[:1] in (b"{", b"["):
        offsets, depth = _structure(text)
        ends = np.flatnonzero(depth <= 0)
        return int(offsets[ends[0]]) + 1 if len(ends) else 0
    pattern = rb'"(?:[^"\\]|\\.)*"' if text[:1] == b'"' else rb"[^,}\s]+(?=[,}\s])"
    match = re.match(pattern, text, re.DOTALL)
    return match.end() if match else 0
