"""The hash behind dropout: the bits it is defined by, and that they look like coin tosses."""

import math

import pytest
import torch

from edhnn.kernels.dropout import drop_mask
from tests.kernels.network_references import kept

LINKS, CHANNELS = 4000, 96


def mask(seed, rate=0.5, links=LINKS):
    return drop_mask(links, CHANNELS, round(rate * 65536), seed)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**40 + 3, 2**63 - 1, -(2**63), 2**64 - 1])
def test_the_bits_are_those_of_plain_integers(seed):
    numbers = torch.tensor([0, 1, 5, 2**31, 2**33 + 1])
    found = drop_mask(numbers, 70, round(0.3 * 65536), seed)
    wanted = [[not kept(seed, link, c, 0.3) for c in range(70)] for link in numbers.tolist()]
    assert found.tolist() == wanted


@pytest.mark.parametrize("rate", [1 / 65536, 0.01, 0.2, 0.5, 0.9, 65535 / 65536])
def test_the_rate_is_kept(rate):
    rate = round(rate * 65536) / 65536
    for seed in range(4):
        found = mask(seed, rate).double()
        allowed = 4 * math.sqrt(rate * (1 - rate) / found.numel())
        assert abs(float(found.mean()) - rate) <= allowed
        per_channel = 5 * math.sqrt(rate * (1 - rate) / LINKS) + 2 / LINKS
        assert float((found.mean(0) - rate).abs().max()) <= per_channel


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_neighbours_are_independent(rate):
    """Links, channels, halves of a word, blocks and seeds side by side: no correlation beyond chance."""
    base = mask(7, rate).double()
    base = (base - rate) / math.sqrt(rate * (1 - rate))
    shifts = {f"channel {d}": (base[:, d:], base[:, :-d]) for d in (1, 2, 8, 16, 17, 32, 48)}
    shifts |= {f"link {d}": (base[d:], base[:-d]) for d in (1, 2, 3, 16, 256, 1024)}
    for seed in (6, 8, 7 + 2**32, 7 + 2**63, -7):
        other = (mask(seed, rate).double() - rate) / math.sqrt(rate * (1 - rate))
        shifts[f"seed {seed}"] = base, other
        shifts[f"seed {seed}, next link"] = base[1:], other[:-1]
    for name, (one, two) in shifts.items():
        assert abs(float((one * two).mean())) <= 4.5 / math.sqrt(one.numel()), name


def test_every_pair_of_channels_is_independent():
    base = 2 * mask(1, links=20000).double() - 1
    correlation = base.T @ base / len(base)
    off = correlation - torch.eye(CHANNELS, dtype=torch.float64)
    assert float(off.abs().max()) <= 5.5 / math.sqrt(len(base))  # of 4560 pairs
    triples = (base[:, :-2] * base[:, 1:-1] * base[:, 2:]).mean(0)
    assert float(triples.abs().max()) <= 5 / math.sqrt(len(base))


def test_one_bit_of_the_link_changes_half_of_the_mask():
    numbers = torch.arange(512)
    base = drop_mask(numbers, CHANNELS, 32768, 3)
    for bit in (0, 1, 7, 20, 31, 32, 40, 62):
        changed = (base != drop_mask(numbers ^ (1 << bit), CHANNELS, 32768, 3)).double().mean()
        assert abs(float(changed) - 0.5) <= 4 * 0.5 / math.sqrt(base.numel())
