"""Kills at random moments: a resumed command has the bits of an undisturbed one, with any number of jobs and threads.

`python -m tests.kills --kills 100` kills a hundred times.
"""

import pytest

from tests.kills import SUBJECTS, kill


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_kills_change_no_bit(tmp_path, name):
    if name == "tune":
        pytest.importorskip("optuna")
    counts = kill([name], (1, 2), 20 if name == "train" else 8, 0, tmp_path)
    assert all(count.resumed and not count.different for count in counts.values()), counts
