"""Errors of the operating system get plain messages; other errors pass unchanged."""

import pytest
import torch

from edhnn.errors import MachineError, machine_errors


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
