"""Errors of the operating system get plain messages, and no message can send control characters to a terminal."""

import sys

import jinja2
import pytest
import torch

from edhnn.cli.main import _shown_errors
from edhnn.errors import DataError, MachineError, UsageError, machine_errors, shown, unknown_name


def test_missing_memory_is_named():
    with pytest.raises(MachineError, match=r"^Not enough memory for 1152921504\.6 GB\. Use"), machine_errors():
        torch.empty(2**60, dtype=torch.uint8)
    with pytest.raises(MachineError, match=r"^Not enough memory\. Use a smaller width"), machine_errors():
        raise MemoryError


def test_a_full_disk_and_a_refused_path_are_named():
    with pytest.raises(MachineError, match=r"^No space left on the disk for 'run/x'\. No partial"), machine_errors():
        raise OSError(28, "No space left on device", "run/x")
    with (
        pytest.raises(MachineError, match=r"system refused: \[Errno 13\] Permission denied: 'run/x'"),
        machine_errors(),
    ):
        raise PermissionError(13, "Permission denied", "run/x")


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), BrokenPipeError(32, "Broken pipe")])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as caught, machine_errors():
        raise error
    assert caught.value is error


def test_every_character_that_is_not_printable_is_escaped():
    everything = [*map(chr, range(2**16)), "\U000e0001", "\U000f0000", chr(sys.maxunicode)]
    hostile = [letter for letter in everything if not letter.isprintable()]
    assert {"\x1b", "\n", "\t", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b"} <= set(hostile)
    assert {"\u2028", "\ufeff", "\udcff", "\ue000", "\U000e0001"} <= set(hostile)
    assert all(shown(f"a{letter}b").isprintable() for letter in hostile[:2_000] + hostile[-2_000:])
    assert shown("\x1b[31m\u202e\n\udcff") == r"\x1b[31m\u202e\n\udcff"
    assert shown("Zürich, 東京, שלום, 😀 [bold] {} %s") == "Zürich, 東京, שלום, 😀 [bold] {} %s"


def test_long_names_are_shortened_but_paths_are_not():
    assert (
        shown(f"Got '{'x' * 1_000_000}' instead.") == f"Got '{'x' * 59}… (1,000,002 characters) …{'x' * 19}' instead."
    )
    path = "/".join(["folder" * 30] * 10)
    assert shown(path) == path
    assert len(shown("a b " * 100_000)) < 4_000
    assert shown("\x1b" * 300).isprintable()


@pytest.mark.parametrize(
    "error",
    [
        UsageError("'\x1b'"),
        DataError("a\nError: b", path="\u202e", where="\x9b", remedy="\udcff"),
        unknown_name("model", "\x1b", ["\u202e", "\n"]),
    ],
)
def test_messages_of_errors_are_one_printable_line(error):
    assert str(error).isprintable()
    assert "\\" in str(error)


def test_an_error_whose_message_cannot_be_set_is_raised_unchanged():
    with pytest.raises(jinja2.UndefinedError, match="no such name"), _shown_errors():
        raise jinja2.UndefinedError("no such name")
