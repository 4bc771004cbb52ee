"""Reading within limits, and atomic writing."""

import gzip
import io
import os
import stat
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pytest

from edhnn import DataError, LimitError, Limits, UsageError
from edhnn.data.limits import size_in_words
from edhnn.io.files import (
    LimitedReader,
    atomic_file,
    atomic_folder,
    compressed_by_name,
    need_utf8,
    open_existing,
    open_limited,
)


def read(path, limits=None):
    with open_limited(path, limits or Limits()) as stream:
        return stream.read()


@pytest.mark.parametrize("name", ["plain.txt", "plain.gz"])
@pytest.mark.parametrize("compressed", [False, True])
def test_gzip_is_recognised_by_its_bytes_and_not_by_its_name(tmp_path, name, compressed):
    (tmp_path / name).write_bytes(gzip.compress(b"content") if compressed else b"content")
    assert read(tmp_path / name) == b"content"


@pytest.mark.parametrize("content", [b"", b"\x1f", b"x"])
def test_files_too_short_for_a_gzip_header_are_plain(tmp_path, content):
    (tmp_path / "short").write_bytes(content)
    assert read(tmp_path / "short") == content


def test_several_gzip_members_are_one_stream(tmp_path):
    (tmp_path / "two.gz").write_bytes(gzip.compress(b"one,") + gzip.compress(b"two"))
    assert read(tmp_path / "two.gz") == b"one,two"


def test_the_limit_counts_decompressed_bytes_and_is_exact(tmp_path):
    (tmp_path / "plain").write_bytes(b"x" * 1000)
    (tmp_path / "small.gz").write_bytes(gzip.compress(b"x" * 1000))
    for name in ("plain", "small.gz"):
        assert len(read(tmp_path / name, Limits(max_bytes=1000))) == 1000
        with pytest.raises(LimitError, match=r"at most 999 bytes after decompression.*`max_bytes=`"):
            read(tmp_path / name, Limits(max_bytes=999))


def test_a_gzip_bomb_is_refused_after_few_bytes(tmp_path):
    """Only the first blocks of 64 MiB of zeros, compressed to 64 KiB, are decompressed."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    megabyte = bytes(2**20)
    bomb = b"".join([squeeze.compress(megabyte) for _ in range(64)]) + squeeze.flush()
    assert len(bomb) < 100_000
    (tmp_path / "bomb.gz").write_bytes(bomb)
    limits = Limits(max_bytes=2**20)
    reader = LimitedReader(tmp_path / "bomb.gz", limits)
    with pytest.raises(LimitError, match=r"bomb.gz: .*at most 1.0 MiB"), io.BufferedReader(reader, 2**16) as stream:
        stream.read()
    assert reader.consumed <= 2**20 + 2**20


@pytest.mark.parametrize("length", [3, 9, 10, 15, 40, -9, -8, -4, -1])
def test_truncated_gzip_is_refused(tmp_path, length):
    content = os.urandom(500)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(content)[:length])
    with pytest.raises(DataError, match=r"cut.gz, after \d+ bytes: The gzip data must be complete.*again"):
        read(tmp_path / "cut.gz")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:30] + bytes([data[30] ^ 255]) + data[31:],  # in the deflate stream
        lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:],  # in the checksum
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),  # in the length
        lambda data: data[:2] + b"\x09" + data[3:],  # an unknown method
        lambda data: data + b"garbage",
    ],
)
def test_damaged_gzip_is_refused(tmp_path, damage):
    (tmp_path / "bad.gz").write_bytes(damage(gzip.compress(bytes(range(256)) * 4)))
    with pytest.raises(DataError, match="gzip data must be complete and intact"):
        read(tmp_path / "bad.gz")


def test_files_that_cannot_be_opened_raise_usage_errors(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="File not found: '.*absent'"):
        open_existing(tmp_path / "absent")
    with pytest.raises(UsageError, match="must be a file. It is a folder"):
        open_existing(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be read: not a directory"):
        open_existing(tmp_path / "file" / "inside")
    with pytest.raises(UsageError, match="cannot be read: file name too long"):
        open_existing(tmp_path / ("x" * 300))

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    with pytest.raises(UsageError, match="cannot be read: permission denied"):
        open_existing(tmp_path / "file")


def test_the_number_of_nodes_is_limited(tmp_path):
    Limits(max_nodes=5).check_nodes(5, tmp_path)
    with pytest.raises(LimitError, match="at most 5 nodes. Got 6.*`max_nodes=`"):
        Limits(max_nodes=5).check_nodes(6, tmp_path)


def test_sizes_in_words():
    sizes = [0, 1023, 1024, 1536, 2**20, 3 * 2**30, 5 * 2**40, 2**60]
    words = ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "3.0 GiB", "5.0 TiB", "1048576.0 TiB"]
    assert [size_in_words(size) for size in sizes] == words


def names_in(folder):
    return sorted(path.name for path in folder.rglob("*"))


class WriteError(Exception):
    pass


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    with atomic_file(tmp_path / "a.txt") as path:
        path.write_text("half")
        assert not (tmp_path / "a.txt").exists()
        path.write_text("whole")
    assert names_in(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "whole"
    with atomic_file(tmp_path / "a.txt") as path:
        path.write_text("new")
        assert (tmp_path / "a.txt").read_text() == "whole"
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("error", [WriteError, KeyboardInterrupt])
def test_a_failed_write_keeps_the_old_file(tmp_path, error):
    (tmp_path / "old.txt").write_text("old")
    for name in ("old.txt", "new.txt"):
        with pytest.raises(error), atomic_file(tmp_path / name) as path:
            path.write_text("half")
            raise error
    assert names_in(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    with atomic_folder(tmp_path / "data") as folder:
        (folder / "a.txt").write_text("a")
        assert not (tmp_path / "data").exists()
    assert names_in(tmp_path) == ["a.txt", "data"]


@pytest.mark.parametrize("error", [WriteError, KeyboardInterrupt])
def test_a_failed_write_keeps_the_old_folder(tmp_path, error):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.txt").write_text("old")
    for name in ("old", "new"):
        with pytest.raises(error), atomic_folder(tmp_path / name, overwrite=True) as folder:
            (folder / "b.txt").write_text("half")
            raise error
    assert names_in(tmp_path) == ["a.txt", "old"]
    assert (tmp_path / "old" / "a.txt").read_text() == "old"


def test_overwriting_a_folder_removes_all_old_files(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "old.txt").write_text("old")
    with atomic_folder(tmp_path / "data", overwrite=True) as folder:
        (folder / "new.txt").write_text("new")
        assert (tmp_path / "data" / "deep" / "old.txt").read_text() == "old"
    assert names_in(tmp_path) == ["data", "new.txt"]


def test_the_old_folder_is_restored_if_the_last_rename_fails(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("old")
    replace = Path.replace

    def fail_for_the_new_folder(path, target):
        if path.name.endswith(".part"):
            raise OSError("no")
        return replace(path, target)

    monkeypatch.setattr("pathlib.Path.replace", fail_for_the_new_folder)
    with pytest.raises(OSError, match="no"), atomic_folder(tmp_path / "data", overwrite=True) as folder:
        (folder / "a.txt").write_text("new")
    assert names_in(tmp_path) == ["a.txt", "data"]
    assert (tmp_path / "data" / "a.txt").read_text() == "old"


def test_a_folder_is_replaced_only_with_overwrite_or_if_empty(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("a")
    with pytest.raises(UsageError, match="exists already.*`overwrite=True`"), atomic_folder(tmp_path / "full"):
        pytest.fail("the block must not run")
    (tmp_path / "empty").mkdir()
    with atomic_folder(tmp_path / "empty") as folder:
        (folder / "b.txt").write_text("b")
    assert names_in(tmp_path) == ["a.txt", "b.txt", "empty", "full"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_not_replaced_by_a_folder_nor_a_folder_by_a_file(tmp_path, overwrite):
    (tmp_path / "file").write_text("a")
    blocked = atomic_folder(tmp_path / "file", overwrite=overwrite)
    with pytest.raises(UsageError, match="must be a folder. It is a file"), blocked:
        pytest.fail("the block must not run")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="must be a file. It is a folder"), atomic_file(tmp_path / "folder"):
        pytest.fail("the block must not run")
    assert names_in(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_targets_that_cannot_be_created_are_usage_errors(tmp_path, atomic):
    with pytest.raises(UsageError, match="'.*absent' must exist before 'a' is written"), atomic(tmp_path / "absent/a"):
        pytest.fail("the block must not run")
    with pytest.raises(UsageError, match="cannot be written: file name too long"), atomic(tmp_path / ("x" * 250)):
        pytest.fail("the block must not run")
    assert names_in(tmp_path) == []


def test_permissions_equal_those_of_a_new_file(tmp_path):
    with atomic_file(tmp_path / "file") as path:
        path.write_text("")
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("")
    (tmp_path / "plain file").write_text("")
    (tmp_path / "plain folder").mkdir()
    for kind in ("file", "folder"):
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (kind, f"plain {kind}")]
        assert modes[0] == modes[1]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_killed_process_leaves_no_partial_target(tmp_path, kind):
    """`os._exit` runs no cleanup, like a kill or a power cut."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.txt").write_text("old")
    (tmp_path / "old.txt").write_text("old")
    targets = ["new.txt", "old.txt"] if kind == "file" else ["new", "old"]
    script = textwrap.dedent(
        """
        import os, sys
        from contextlib import ExitStack
        from pathlib import Path
        from edhnn.io.files import atomic_file, atomic_folder
        kind, *targets = sys.argv[1:]
        with ExitStack() as stack:
            for target in map(Path, targets):
                if kind == "file":
                    stack.enter_context(atomic_file(target)).write_text("half")
                else:
                    (stack.enter_context(atomic_folder(target, overwrite=True)) / "a.txt").write_text("half")
            os._exit(9)
        """
    )
    command = [sys.executable, "-c", script, kind, *(str(tmp_path / name) for name in targets)]
    assert subprocess.run(command, timeout=120).returncode == 9
    seen = {name for name in names_in(tmp_path) if not name.endswith(".part")} - {"a.txt"}
    assert seen == {"old", "old.txt"}
    assert (tmp_path / "old.txt").read_text() == "old"
    assert (tmp_path / "old" / "a.txt").read_text() == "old"


def test_compression_is_deterministic(tmp_path):
    for name in ("one.gz", "two.gz"):
        with compressed_by_name(tmp_path / f"{name}.part", name) as stream:
            for _ in range(100):
                stream.write(b"the same content\n")
    one, two = ((tmp_path / f"{name}.part").read_bytes() for name in ("one.gz", "two.gz"))
    assert one == two
    assert one[4:8] == bytes(4)  # no time stamp
    assert gzip.decompress(one) == b"the same content\n" * 100


def test_the_final_name_determines_the_compression(tmp_path):
    with compressed_by_name(tmp_path / "a.part", "a.txt") as stream:
        stream.write(b"plain")
    assert (tmp_path / "a.part").read_bytes() == b"plain"


def test_the_folder_behind_a_symbolic_link_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real").mkdir()
    (tmp_path / "elsewhere" / "real" / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "real")
    with atomic_folder(tmp_path / "link", overwrite=True) as folder:
        (folder / "new").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert names_in(tmp_path / "elsewhere" / "real") == ["new"]
    assert names_in(tmp_path / "elsewhere") == ["new", "real"]


def test_compression_ignores_the_case_of_the_name(tmp_path):
    with compressed_by_name(tmp_path / "a.part", "A.TXT.GZ") as stream:
        stream.write(b"packed")
    assert gzip.decompress((tmp_path / "a.part").read_bytes()) == b"packed"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("stück".encode("latin1"), "x.txt, line 1: Names must be UTF-8 text. Got the byte 0xfc. .*latin1"),
        (b"a\nb\xff", "line 2: .*0xff"),
        ("ab".encode("utf-16"), "line 1: .*Got UTF-16.*iconv -f utf-16"),
        ("a\nb".encode("utf-16-be"), "line 1: .*Got UTF-16"),
    ],
)
def test_text_that_is_not_utf_8_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        need_utf8(content, "Names", Path("x.txt"))
