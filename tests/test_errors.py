"""What the machine refuses is said in plain words; what is a bug stays a bug."""

import pytest
import torch

from edhnn.errors import MachineError, machine_errors


def test_memory_that_is_not_there_is_named():
    with (
        pytest.raises(MachineError, match=r"enough memory\. 1152921504\.6 GB were asked for at once"),
        machine_errors(),
    ):
        torch.empty(2**60, dtype=torch.uint8)
    with pytest.raises(MachineError, match=r"enough memory\. Use a smaller width"), machine_errors():
        raise MemoryError


def test_a_full_disk_and_a_path_that_is_refused():
    with pytest.raises(MachineError, match=r"room on the disk of 'run/x'\. It is full"), machine_errors():
        raise OSError(28, "No space left on device", "run/x")
    with pytest.raises(MachineError, match=r"said no: \[Errno 13\] Permission denied: 'run/x'"), machine_errors():
        raise PermissionError(13, "Permission denied", "run/x")


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), BrokenPipeError(32, "Broken pipe")])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as caught, machine_errors():
        raise error
    assert caught.value is error
