"""Seeds: derived by name, never taken from a global state.

A seed names a stream of numbers; `derive_seed` makes a new one from a parent and a path, so that the seed of "split 3,
epoch 17, dropout" is the same wherever and whenever it is asked for.
"""

from __future__ import annotations

import hashlib

import torch

from edhnn.errors import UsageError

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def derive_seed(parent: int, *path: int | str) -> int:
    """A seed below 2^63 from a parent seed and a path of names and numbers; other paths give unrelated seeds."""
    text = "\x1f".join([str(parent), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


class SeedStream:
    """Seeds one after another, for the dropout masks of a network.

    The k-th seed depends on the stream's seed and k alone. `restart` begins anew: a training loop does so every epoch,
    and a run that continues after a kill draws the masks it would have drawn.

    Args:
        seed: The stream's seed.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed, self._drawn = seed, 0

    def restart(self, seed: int) -> None:
        """Begin a new stream."""
        self._seed, self._drawn = seed, 0

    def __call__(self) -> int:
        """The next seed, below 2^63 (splitmix64 of the position).

        Raises:
            UsageError: in a backward pass, which would get another seed than the forward pass that it repeats.
        """
        if not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1:
            raise UsageError(
                "Dropout masks and samples must be drawn in a forward pass. A backward pass asks for one, as "
                "activation checkpointing does, and it would be another: train without checkpointing or dropout."
            )
        self._drawn += 1
        z = (self._seed + self._drawn * _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) >> 1
