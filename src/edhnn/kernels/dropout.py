r"""Dropout masks without a random stream: whether a channel of a link is kept is a hash of (seed, link, channel).

A link's 64-bit key is splitmix64 of its number and the seed. Channels come in blocks of 32, served by 16 words of 32
bits: word j of a block decides channel j by its low half and channel j + 16 by its high half. A channel is dropped when
its 16 bits lie below ``threshold``, so the probability is exactly threshold / 65536, and kept values are scaled by its
inverse. ``native/hash.h`` draws the same bits.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from edhnn.errors import UsageError

LEVELS = 65536
VECTOR_WIDTH = 256
"""A vector is masked as the rows of a table this wide."""

_GOLDEN, _SECOND, _THIRD = (x - (1 << 64) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_FACTORS = (0x7FEB352D, 0x846CA68B - (1 << 32))
_BLOCK = 1 << 16  # words drawn at a time: they stay in the cache


def threshold_of(rate: float) -> int:
    """Return how many of the 65536 values drop a channel.

    Raises:
        UsageError: if the rate is not in [0, 1), as rounded to 1/65536.
    """
    threshold = round(rate * LEVELS) if 0.0 <= rate < 1.0 else LEVELS
    if threshold == LEVELS:
        raise UsageError(f"The dropout rate must be 0 or more and less than 1. Got {rate}.")
    return threshold


def scale_of(threshold: int) -> float:
    """Return what kept values are multiplied by."""
    return LEVELS / (LEVELS - threshold)


def signed_seed(seed: int) -> int:
    """Return the seed's lowest 64 bits, as a signed number."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


def drop_mask(
    links: Int[Tensor, " I"] | int, channels: int, threshold: int, seed: int, device: torch.device | None = None
) -> Bool[Tensor, "I C"]:
    """Return which channels of which links are dropped.

    Args:
        links: The numbers of the links, or how many there are, numbered from 0.
        channels: Channels per link.
        threshold: How many of the 65536 values drop a channel.
        seed: Any 64 bits.
        device: Where the mask is wanted, if ``links`` is a count.

    Returns:
        True where a channel is dropped.
    """
    numbers = torch.arange(links, device=device) if isinstance(links, int) else links
    blocks = -(-channels // 32)
    mask = torch.empty((len(numbers), blocks, 2, 16), dtype=torch.bool, device=numbers.device)
    patterns = _patterns(16 * blocks, numbers.device)
    low, high = _keys(numbers, signed_seed(seed))
    stretch = max(1, _BLOCK // max(1, 16 * blocks)) if numbers.device.type == "cpu" else max(1, len(numbers))
    for start in range(0, len(numbers), stretch):
        part = slice(start, start + stretch)
        words = (patterns ^ low[part, None]).mul_(_FACTORS[0])
        words ^= (words >> 15) & 0x1FFFF
        words ^= high[part, None]
        words *= _FACTORS[1]
        upper = (words >> 16) & 0xFFFF
        words = words.reshape(-1, blocks, 16)
        upper = upper.reshape(-1, blocks, 16)
        torch.lt(upper, threshold, out=mask[part, :, 1])
        torch.lt(words.bitwise_xor_(upper).bitwise_and_(0xFFFF), threshold, out=mask[part, :, 0])
    return mask.reshape(len(numbers), 32 * blocks)[:, :channels]


def _splitmix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _SECOND
    x = (x ^ _shift(x, 27)) * _THIRD
    return x ^ _shift(x, 31)


def _shift(x: Tensor, by: int) -> Tensor:
    """Return a shift to the right that fills with zeros."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _keys(numbers: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    folded = _splitmix(torch.tensor(signed_seed(seed + _GOLDEN), device=numbers.device))
    key = _splitmix(folded + (numbers + 1) * _GOLDEN)
    return _low_half(key), _low_half(_shift(key, 32))


def _low_half(x: Tensor) -> Tensor:
    """Return the low 32 bits, as signed numbers of 32 bits."""
    return (((x & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000).int()


def _patterns(count: int, device: torch.device) -> Tensor:
    full = 0xFFFFFFFF
    x = (torch.arange(1, count + 1, device=device) * 0x9E3779B9) & full
    x = ((x ^ (x >> 16)) * (_FACTORS[0] & full)) & full
    x = ((x ^ (x >> 15)) * (_FACTORS[1] & full)) & full
    return _low_half(x ^ (x >> 16))
