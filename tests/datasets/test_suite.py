"""The suite: recorded hashes, shares of the splits, and both halves."""

import pytest

from edhnn import UsageError
from edhnn.datasets.suite import load_suite_dataset, suite, suite_splits


@pytest.mark.parametrize("name", suite())
def test_every_dataset_has_its_hash_and_no_class_without_nodes(name):
    dataset = load_suite_dataset(name)  # raises if the hash is another
    assert dataset.name == name
    assert dataset.hypergraph.num_nodes <= 2000
    if dataset.task == "classification":
        assert dataset.y.bincount().min() > 0


def test_both_halves_have_data_of_each_kind():
    for half in ("tune", "check"):
        chosen = [load_suite_dataset(name) for name, entry in suite().items() if entry.half == half]
        assert len(chosen) >= 10
        assert any(dataset.x is None for dataset in chosen)
        assert any(dataset.task == "regression" for dataset in chosen)


def test_splits_have_the_shares_of_the_entry():
    few = suite_splits(load_suite_dataset("suite-few"), 1)[0]
    assert [len(part) for part in (few.train, few.valid, few.test)] == [40, 40, 920]


def test_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="dataset of the suite"):
        load_suite_dataset("suite-moon")
