"""Targets that cannot hold results are refused before the work starts."""

import errno
from pathlib import Path

import pytest

from tests.cli.test_data import here, refuse  # noqa: F401  (fixtures)
from tests.cli.test_run import GRID
from tests.cli.test_train import TINY, write_people


@pytest.fixture
def people(tmp_path):
    write_people(tmp_path, "people", {"x": lambda v: v / 20, "kind": lambda v: "ab"[v % 2]})
    (tmp_path / "mine.toml").write_text(GRID)
    return tmp_path


TRAIN = ["train", "people.csv", "--label", "kind", *TINY]


TUNE = ["tune", "people.csv", "--label", "kind", "--epochs", "2", "--splits", "1", "--trials", "1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*TRAIN, "--out", "people.csv"], "'people.csv' must be a folder. It is a file"),
        ([*TRAIN, "--out", "people.csv/run"], "'people.csv' must be a folder, to hold 'run'. It is a file"),
        ([*TRAIN, "--out", "people.csv/a/run"], "'people.csv' must be a folder, to hold 'a/run'. It is a file"),
        (["run", "mine.toml", "--results", "people.csv"], "'people.csv' must be a folder. It is a file"),
        (["run", "mine.toml", "--results", "people.csv/r"], "'people.csv' must be a folder, to hold 'r'. It is a file"),
    ],
)
def test_a_file_cannot_be_a_run_folder(people, refuse, arguments, words):  # noqa: F811
    before = sorted(people.iterdir())
    assert words in refuse(2, *arguments, folder=people)
    assert sorted(people.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "folder"], "'folder' must be a file. It is a folder"),
        (["--out", "folder", "--force"], "'folder' must be a file. It is a folder"),
        (["--storage", "folder"], "--storage must be a file or sqlite:///FILE, not a folder. Got 'folder'"),
        (["--storage", "sqlite:///folder"], "sqlite:///FILE, not a folder. Got 'sqlite:///folder'"),
        (["--storage", "people.csv/s"], "'people.csv' must be a folder. It is a file"),
    ],
)
def test_targets_of_a_search_are_checked_before_the_search(people, refuse, monkeypatch, arguments, words):  # noqa: F811
    (people / "folder").mkdir()
    monkeypatch.setattr("edhnn.cli.tune.tune", lambda *_, **__: pytest.fail("the search started"))
    assert words in refuse(2, *TUNE, *arguments, folder=people)


def test_no_resume_command_is_printed_before_there_is_a_run(people, here, monkeypatch):  # noqa: F811
    make = Path.mkdir

    def refusing(path, *arguments, **options):
        if "refused" in path.parts:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", refusing)
    code, _, errors = here(*TRAIN, "--out", "refused/run", folder=people)
    assert code == 1
    assert "Read-only file system: 'refused/run" in errors
    assert "--resume" not in errors
