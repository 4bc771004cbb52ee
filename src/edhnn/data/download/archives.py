"""Files out of zip and tar archives that nobody needs to trust.

Only the entries asked for are read, and they are written where the caller says, so no path or link in an archive can
lead anywhere; what they unpack to is bounded while it is unpacked.
"""

from __future__ import annotations

import itertools
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from edhnn.data.files import ByteReader, Limits, open_limited, size_in_words
from edhnn.errors import DownloadError, LimitError

_CHUNK_BYTES = 2**20
_MAX_ENTRIES = 10_000


def unpack(archive: Path, targets: Mapping[str, Path], limits: Limits, *, address: str) -> None:
    """Write some entries of a zip or tar archive (plain or gzip) to files.

    Args:
        archive: The archive.
        targets: Where to write the content of each entry, by its full name in the archive.
        limits: Size limits, for each file and for an unpacked tar archive.
        address: Where the archive came from, for messages.

    Raises:
        DownloadError: if the archive is broken, or an entry is missing or not a regular file.
        LimitError: if something unpacks to more than the limits allow.
    """
    missing = dict(targets)
    try:
        entries = (
            _zip_entries(archive, targets) if zipfile.is_zipfile(archive) else _tar_entries(archive, targets, limits)
        )
        for name, stream in entries:
            _copy_bounded(stream, targets[name], limits)
            missing.pop(name, None)
    except LimitError:
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise DownloadError(f"'{address}' must be an intact zip or tar archive. Reading it said: {error}.") from error
    if missing:
        raise DownloadError(f"The archive '{address}' must hold the regular files {', '.join(missing)}.")


def _zip_entries(archive: Path, wanted: Mapping[str, Path]) -> Iterator[tuple[str, ByteReader]]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            bounded = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack at one go
            if entry.filename in wanted and bounded:
                with opened.open(entry) as stream:
                    yield entry.filename, stream


def _tar_entries(archive: Path, wanted: Mapping[str, Path], limits: Limits) -> Iterator[tuple[str, ByteReader]]:
    """Regular files only: a link could lead to a file of this machine."""
    with open_limited(archive, limits) as plain, tarfile.open(fileobj=plain, mode="r|") as opened:
        for entry in itertools.islice(opened, _MAX_ENTRIES):
            if entry.name in wanted and entry.isreg() and (stream := opened.extractfile(entry)) is not None:
                yield entry.name, stream


def _copy_bounded(stream: ByteReader, target: Path, limits: Limits) -> None:
    written = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK_BYTES):
            written += len(chunk)
            if written > limits.max_bytes:
                raise LimitError(f"'{target.name}' must be at most {size_in_words(limits.max_bytes)} when unpacked.")
            out.write(chunk)
