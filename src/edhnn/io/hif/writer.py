"""Writer of HIF documents, section by section. Writing a document that was read loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from edhnn.errors import DataError
from edhnn.io.files import atomic_file, compressed_by_name
from edhnn.io.hif.document import DIRECTIONS, HifDocument, Records
from edhnn.typing import ByteWriter, JsonObject

_RECORDS_PER_BLOCK = 50_000


def write_hif(document: HifDocument, target: Path) -> None:
    """Write a HIF document atomically, compressed if the name ends in ``.gz``.

    Args:
        document: The document.
        target: The file.
    """
    with atomic_file(target) as path, compressed_by_name(path, target.name) as stream:
        stream.write(b"{")
        if document.network_type is not None:
            stream.write(b'"network-type":' + msgspec.json.encode(document.network_type) + b",\n")
        if document.metadata is not None:
            stream.write(b'"metadata":' + _encode("metadata", document.metadata) + b",\n")
        for name, section in (("nodes", document.nodes), ("edges", document.edges)):
            if section is not None:
                _write_section(stream, name, section, document)
                stream.write(b",\n")
        _write_section(stream, "incidences", document.incidences, document)
        stream.write(b"}\n")


def _write_section(stream: ByteWriter, name: str, records: Records, document: HifDocument) -> None:
    stream.write(b'"%s":[' % name.encode())
    for start in range(0, len(records), _RECORDS_PER_BLOCK):
        stop = min(start + _RECORDS_PER_BLOCK, len(records))
        stream.write(b",\n" if start else b"\n")
        stream.write(b",\n".join(_encode(name, record) for record in _records(records, start, stop, document)))
    stream.write(b"]")


def _encode(section: str, content: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(content)
    except (TypeError, ValueError, UnicodeEncodeError, RecursionError) as error:
        raise DataError(f"JSON cannot store the content of '{section}'. Cause: {error}.") from error


def _records(records: Records, start: int, stop: int, document: HifDocument) -> Iterator[JsonObject]:
    """Yield the records of a block as objects, without the missing parts."""
    columns: dict[str, list[Any]] = {}
    if records.edge is not None:
        columns["edge"] = document.edge_ids.take(records.edge[start:stop])
    if records.node is not None:
        columns["node"] = document.node_ids.take(records.node[start:stop])
    if records.weight is not None:
        columns["weight"] = records.weight.numbers(start, stop)
    if records.direction is not None:
        columns["direction"] = [
            DIRECTIONS[code - 1] if code else None for code in records.direction[start:stop].tolist()
        ]
    if records.attrs:
        columns["attrs"] = [records.attrs.get(number) for number in range(start, stop)]
    keys = tuple(columns)
    for values in zip(*columns.values(), strict=True):
        yield {key: value for key, value in zip(keys, values, strict=True) if value is not None}
