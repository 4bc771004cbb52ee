"""Splits: consecutive permutations of one generator, complete and disjoint, with a pinned hash."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError, Hypergraph, NodeDataset, Split, UsageError, random_splits
from edhnn.data.fingerprints import splits_sha256
from edhnn.data.splits import given_split, most_folds, stratified_folds
from tests.strategies import examples


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


def labelled(classes, task="classification", **attributes):
    """Return a dataset of isolated nodes with these labels."""
    y = torch.as_tensor(classes)
    graph = Hypergraph.from_hyperedges([], num_nodes=len(y))
    return NodeDataset(name="d", hypergraph=graph, y=y, task=task, node_attributes=attributes)


def check_folds(drawn, dataset):
    """Every labelled node is tested once, validates once, and is never in two parts of a split."""
    known = dataset.labelled.nonzero()[:, 0].tolist()
    assert sorted(node for split in drawn.splits for node in split.test.tolist()) == known
    assert sorted(node for split in drawn.splits for node in split.valid.tolist()) == known
    for split in drawn.splits:
        assert sorted(node for part in parts(split) for node in part) == known
        assert all(parts(split))


CLASSES = st.lists(st.integers(-1, 4), min_size=8, max_size=80)


@settings(max_examples=examples(60))
@given(CLASSES, st.sampled_from([3, 4, 5, 7]))
def test_every_labelled_node_is_tested_once_and_classes_are_spread(classes, count):
    dataset, counts = labelled(classes), np.bincount([c for c in classes if c >= 0], minlength=5)
    if (counts >= 3).sum() < 2 or counts.max() < count:
        with pytest.raises(DataError, match="at least 2 classes with 3 labelled nodes|more folds than labelled nodes"):
            stratified_folds(dataset, count)
        return
    drawn = stratified_folds(dataset, count)
    check_folds(drawn, dataset)
    for number, total in enumerate(counts):
        tested = [int((dataset.y[split.test] == number).sum()) for split in drawn.splits]
        assert max(tested) - min(tested) <= 1
        trained = [int((dataset.y[split.train] == number).sum()) for split in drawn.splits]
        if total > 2 or (total == 2 and count > 3):
            assert min(trained) > 0
    few = [number for number, total in enumerate(counts) if 0 < total < count]
    assert any("fewer labelled nodes than there are folds" in note for note in drawn.notes) == bool(few)
    assert any("count as wrong" in note for note in drawn.notes) == (1 in counts or (count == 3 and 2 in counts))
    again = stratified_folds(dataset, count)
    assert [parts(split) for split in drawn.splits] == [parts(split) for split in again.splits]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, *"abcdefgh"])), min_size=20, max_size=80))
def test_a_group_is_in_one_fold(rows):
    classes, groups = [row[0] for row in rows], [row[1] for row in rows]
    dataset = labelled(classes, shop=groups)
    units = len({*groups} - {None}) + groups.count(None)
    counts = np.bincount(classes)
    if (counts >= 3).sum() < 2 or counts.max() < 4 or units < 4:
        with pytest.raises(DataError):
            stratified_folds(dataset, 4, group="shop")
        return
    drawn = stratified_folds(dataset, 4, group="shop")
    check_folds(drawn, dataset)
    for shop in {*groups} - {None}:
        members = [node for node, group in enumerate(groups) if group == shop]
        assert sum(bool({*members} & {*split.test.tolist()}) for split in drawn.splits) == 1
    assert any("have no value in 'shop'" in note for note in drawn.notes) == (None in groups)


def test_more_groups_than_scikit_learn_can_take_in_a_reasonable_time_are_joined():
    chance = np.random.default_rng(0)
    groups, classes = chance.integers(0, 9000, 20_000), chance.integers(0, 3, 20_000)
    dataset = labelled(classes, shop=groups.tolist())
    drawn = stratified_folds(dataset, 5, group="shop")
    check_folds(drawn, dataset)
    fold = np.empty(20_000)
    for number, split in enumerate(drawn.splits):
        fold[split.test.numpy()] = number
    assert all(len({*fold[groups == shop]}) == 1 for shop in range(0, 9000, 97) if (groups == shop).any())
    assert all(abs(len(split.test) - 4000) < 200 for split in drawn.splits)


def test_real_values_are_spread_by_quantiles_and_labels_by_the_rarest():
    chance = np.random.default_rng(1)
    values = labelled(torch.from_numpy(chance.lognormal(size=(100, 2))).float(), "regression")
    values.y[::7] = torch.nan
    drawn = stratified_folds(values)
    check_folds(drawn, values)
    total = values.y.nan_to_num().sum(dim=1)
    top = total >= total.sort().values[-20]
    assert all(2 <= int(top[split.test].sum()) <= 6 for split in drawn.splits)
    marks = np.stack([chance.random(100) < share for share in (0.8, 0.5, 0.1)], axis=1).astype(np.float32)
    several = labelled(torch.from_numpy(marks), "multilabel")
    drawn = stratified_folds(several)
    check_folds(drawn, several)
    rare = [int(marks[split.test.numpy(), 2].sum()) for split in drawn.splits]
    assert max(rare) - min(rare) <= 1


@pytest.mark.parametrize(
    ("classes", "most"), [([0] * 50 + [1] * 50, 5), ([0] * 50 + [1] * 4, 4), ([0, 1] * 3, 3), ([0, 0, 0, 0, 1, 1], 3)]
)
def test_few_labels_have_fewer_folds(classes, most):
    dataset = labelled(classes)
    assert most_folds(dataset) == most
    if classes.count(1) >= 3:
        drawn = stratified_folds(dataset, most)
        assert any(note.startswith(f"{most} folds instead of 5") for note in drawn.notes) == (most < 5)
    assert most_folds(labelled(classes, shop=[node % 4 for node in range(len(classes))]), "shop") == min(most, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: stratified_folds(d, 2), "`folds=` must be at least 3"),
        (lambda d: stratified_folds(d, group="shoe"), "Got 'shoe' instead. Did you mean 'shop'"),
        (lambda d: given_split(labelled([0, 1]), "part"), "names the column 'part', but the nodes of 'd' have no such"),
        (lambda d: stratified_folds(replace(d, x=torch.ones(40, 1), feature_names=("size",)), group="size"),
         "was read as a feature of 'd'. Read it with `attributes='size'`"),
        (lambda d: given_split(d, "shop"), "must hold train, valid or test. Got 'a' at node '0'"),
        (lambda d: given_split(d, "only"), "must have labelled nodes with the value test. It has none"),
        (lambda d: stratified_folds(labelled(torch.arange(5.0), "regression"), 3), "need at least 6 labelled nodes"),
    ],
)  # fmt: skip
def test_invalid_requests_for_folds_raise(call, words):
    dataset = labelled([0, 1] * 20, shop=["a", "b", "c", "d"] * 10, only=["train"] * 40)
    with pytest.raises((DataError, UsageError), match=words):
        call(dataset)


def test_a_given_split_has_the_nodes_of_its_column():
    words = ["train", " Training", "VAL", "dev", "test", "testing", "", None]
    dataset = labelled([0, 1, 0, 1, 0, 1, 0, 1, -1], part=[*words, "nonsense"])
    (split,), notes = given_split(dataset, "part")
    assert parts(split) == [[0, 1], [2, 3], [4, 5]]
    assert notes == ("2 labelled nodes have no value in 'part' and are not used",)
    halves = labelled([0, 1] * 20, part=["train"] * 30 + ["test"] * 10)
    (split,), notes = given_split(halves, "part")
    assert [len(part) for part in parts(split)] == [24, 6, 10]
    assert sorted(parts(split)[0] + parts(split)[1]) == list(range(30))
    assert notes == ("'part' has no validation nodes: 6 of the training nodes validate",)
