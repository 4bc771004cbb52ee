"""What a release needs: one version, a changelog with its sections, workflow files that can be read."""

import re
import tomllib
from pathlib import Path

import pytest

from edhnn import __version__

ROOT = Path(__file__).parents[2]


def test_every_file_has_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert project == citation == __version__


def test_the_changelog_has_sections_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
    assert set(re.findall(r"^### (.*)$", text, re.M)) <= {
        *("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"),
    }


def test_the_records_of_decisions_are_numbered_in_one_way():
    paths = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    for number, path in enumerate(paths, start=1):
        assert path.name.startswith(f"{number:04}-")
        assert path.read_text().startswith(f"# {number}. ")


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_are_valid_yaml(path):
    yaml = pytest.importorskip("yaml")
    values = yaml.safe_load(path.read_text())
    assert "name" in values
    for job in values.get("jobs", {}).values():
        assert job["runs-on"] and job["steps"]
        commands = " ".join(step.get("run", "") for step in job["steps"])
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(re.findall(r"make ([a-z-]+)", commands)) <= set(targets)
