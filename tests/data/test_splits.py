"""Splits: consecutive permutations of one generator, complete and disjoint, with a pinned hash."""

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import DataError, Split, random_splits
from edhnn.data.fingerprints import splits_sha256


def parts(split):
    return [split.train.tolist(), split.valid.tolist(), split.test.tolist()]


@pytest.mark.parametrize("seed", [0, 7])
def test_splits_are_consecutive_permutations_cut_into_a_half_and_quarters(seed):
    """The released code draws torch.randperm after torch.manual_seed, once per repetition."""
    generator = torch.Generator().manual_seed(seed)
    for split in random_splits(1001, 10, seed=seed):
        order = torch.randperm(1001, generator=generator).tolist()
        assert parts(split) == [order[:500], order[500:750], order[750:]]


def test_the_global_generator_draws_the_same_and_is_not_changed():
    torch.manual_seed(0)
    expected = [torch.randperm(50).tolist() for _ in range(3)]
    before = torch.get_rng_state()
    drawn = [sum(parts(split), []) for split in random_splits(50, 3)]  # noqa: RUF017  # three short lists
    assert drawn == expected
    assert torch.equal(torch.get_rng_state(), before)


@given(st.integers(0, 60), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32))
def test_parts_are_disjoint_complete_and_rounded_down(num_nodes, train, valid, seed):
    if train + valid > 1:
        with pytest.raises(DataError, match="add up to at most 1"):
            random_splits(num_nodes, 1, train=train, valid=valid)
        return
    (split,) = random_splits(num_nodes, 1, seed=seed, train=train, valid=valid)
    sizes = [len(part) for part in parts(split)]
    assert sizes[:2] == [int(train * num_nodes), int(valid * num_nodes)]
    assert sorted(number for part in parts(split) for number in part) == list(range(num_nodes))


def test_more_splits_do_not_change_the_first_ones():
    three, twelve = random_splits(97, 3), random_splits(97, 12)
    assert [parts(split) for split in three] == [parts(split) for split in twelve[:3]]
    assert random_splits(97, 0) == []
    assert len({str(parts(split)) for split in twelve}) == 12


@pytest.mark.parametrize(("train", "valid"), [(-0.1, 0.5), (0.5, -0.1), (0.8, 0.3), (float("nan"), 0.1)])
def test_invalid_shares_raise(train, valid):
    with pytest.raises(DataError, match="Shares must be 0 or more and add up to at most 1"):
        random_splits(10, train=train, valid=valid)


def test_the_hash_covers_sizes_and_numbers_in_order():
    split = Split(torch.tensor([2, 0]), torch.tensor([1]), torch.zeros(0, dtype=torch.int64))
    words = [2, 2, 0, 1, 1, 0]  # each part: its size, then its numbers
    expected = hashlib.sha256(b"".join(word.to_bytes(8, "little") for word in words)).hexdigest()
    assert splits_sha256([split]) == expected
    narrow = Split(*(part.to(torch.int32) for part in (split.train, split.valid, split.test)))
    assert splits_sha256([narrow]) == expected


def test_the_hash_depends_on_order_parts_and_number_of_splits():
    one, two = random_splits(20, 2)
    hashes = {
        splits_sha256(splits)
        for splits in (
            [],
            [one],
            [two],
            [one, two],
            [two, one],
            [Split(one.train.flip(0), one.valid, one.test)],
            [Split(one.valid, one.train, one.test)],
            [Split(torch.cat([one.train, one.valid]), one.valid[:0], one.test)],
        )
    }
    assert len(hashes) == 8
