"""What the kernel tests share."""

from tests.kernels.instruction_sets import instruction_set as instruction_set
