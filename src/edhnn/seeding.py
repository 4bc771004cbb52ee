"""Seeds that are derived by name and never taken from global state.

`derive_seed` makes a seed from a parent seed and a path, so that the seed of "split 3, epoch 17, dropout" depends on
nothing else.
"""

from __future__ import annotations

import hashlib

import torch

from edhnn.errors import UsageError

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def derive_seed(parent: int, *path: int | str) -> int:
    """Derive a seed below 2^63 from a parent seed and a path of names and numbers; other paths give other seeds."""
    text = "\x1f".join([str(parent), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


class SeedStream:
    """A sequence of seeds, for the dropout masks of a network.

    The k-th seed depends only on the stream's seed and k. A training loop calls `restart` every epoch, so that a
    resumed run draws the same masks as an uninterrupted one.

    Args:
        seed: The stream's seed.
    """

    def __init__(self, seed: int = 0) -> None:
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Start a new stream."""
        self._seed, self._drawn = seed, 0

    def __call__(self) -> int:
        """Return the next seed, below 2^63 (splitmix64 of the position).

        Raises:
            UsageError: in a backward pass, because it would not get the seed of the forward pass that it repeats.
        """
        if not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1:
            raise UsageError(
                "Dropout masks and samples must be drawn in a forward pass. A backward pass, as in activation "
                "checkpointing, would draw other ones. Train without checkpointing or without dropout."
            )
        self._drawn += 1
        z = (self._seed + self._drawn * _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) >> 1
