"""Phrases that a reader must decode are not used; docs/evidence and results/ hold records and are not searched."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("*.py", "*.md", "*.toml", "*.pyi", "*.h", "*.cpp", "*.j2")
EXCLUDED = ("results/", "docs/evidence", "tests/docs/test_words.py")
PHRASES = (
    "cannot be meant", "can be meant", "said no", "gone on with", "goes on with", "go on with", "to be had",
    "for want of", "its kin", "and no other", "at all events", "of his own", "left by the dead", "those of the dead",
    "by the dead", "half-written", "Reading it said", "says so", "say so", "said so", "is told", "are told", "was told",
    "hears", "heard", "is heard", "speaks", "spoken", "wishes", "a wish", "mend", "mended", "looked at", "whoever",
    "nobody", "behind us", "leaves with", "told apart", "lonely", "luckless", "of another's",
)  # fmt: skip
_ANY = "|".join(phrase.replace("-", "[-_]").replace(" ", r"[\s_#*]+") for phrase in PHRASES)
BANNED = re.compile(
    rf"(?<![a-z])(?:{_ANY}|whatever\b[^.\n]*\bit is)(?![a-z])", re.IGNORECASE
)  # "_" separates words too


def tracked_files():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the list of files needs git and a checkout")
    listed = subprocess.run([git, "ls-files", "-z", *FILES], cwd=ROOT, capture_output=True, check=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and not name.startswith(EXCLUDED)]


def banned_phrases(text):
    """Return the line and the phrase of every banned phrase."""
    return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in BANNED.finditer(text)]


def test_no_banned_phrase_is_used():
    lines = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}"
        for path in tracked_files()
        if path.is_file()
        for line, phrase in banned_phrases(path.read_text(encoding="utf-8"))
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("The file Says so.", ["Says so"]),
        ("def test_requests_that_cannot_be_meant():", ["cannot_be_meant"]),
        ("# left by\n# the dead", ["left by\n# the dead"]),
        ("whatever format it is", ["whatever format it is"]),
        ("recommend, amended, overheard", []),
        ("Mend it.", ["Mend"]),
    ],
)
def test_phrases_are_found_as_whole_words(text, banned):
    assert [phrase for _, phrase in banned_phrases(text)] == banned
