"""The pages of the site: snippets run, links resolve, every page is reached, names and verbs are documented."""

import re
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.blocks import CELL, ROOT, as_script, cells, environment, run_program

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import generated  # noqa: E402

PAGES = sorted(
    page for page in DOCS.rglob("*.md") if not {"_build", "jupyter_execute"} & set(page.relative_to(DOCS).parts)
)
EXECUTED = [page for page in PAGES if cells(page)]
HEAVY = {"your-table", "reading-a-report", "scikit-learn"}  # several trainings
NAMES = sorted({name.target for package in generated.packages() for name in generated.public_names(package)})


def snippets():
    for page in EXECUTED:
        name = str(page.relative_to(DOCS))
        yield pytest.param(page, id=name, marks=[pytest.mark.slow] if page.stem in HEAVY else [])


@pytest.mark.parametrize("page", list(snippets()))
def test_snippets_run(page, tmp_path):
    plain = [cell for cell in cells(page) if "IPython" not in cell]
    (tmp_path / "page.py").write_text(as_script(plain))
    run_program(tmp_path / "page.py", tmp_path)


def test_the_guides_have_snippets():
    assert len(EXECUTED) >= 9
    assert sum(len(cells(page)) for page in EXECUTED) >= 30


def targets(page):
    """The local files that a page links to or shows, from the page's folder or from the root of the site."""
    text = CELL.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:|#|mailto:", target):
            path = target.partition("#")[0]
            yield target, DOCS / path[1:] if path.startswith("/") else page.parent / path


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_resolve(page):
    assert [target for target, path in targets(page) if not path.exists()] == []


def entries(page):
    """The pages that a page's tables of contents name."""
    for body in re.findall(r"^```\{toctree\}\n(.*?)^```$", generated.filled_listing(page.read_text()), re.M | re.S):
        for line in body.splitlines():
            if line.strip() and not line.startswith(":"):
                name = re.search(r"<(.+)>$", line)
                yield page.parent / f"{name[1] if name else line.strip()}.md"


def test_every_page_is_reached_from_the_first():
    reached, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            todo += entries(page)
    assert {str(page) for page in reached} == {str(page) for page in PAGES}


def test_every_public_name_has_a_page_and_a_docstring():
    api = DOCS / "reference/api"
    asked = {part for page in api.glob("*.md") for part in generated.PLACEHOLDER.findall(page.read_text())}
    assert asked == {f"names of {package}" for package in generated.packages()}
    assert len(NAMES) > 200
    for package in generated.packages():
        text = generated.names_of_package(package)
        for name in generated.public_names(package):
            assert f"<{name.target}>" in text
            assert generated.docstring_of(name), name
            assert generated.summary_of(name), name


def test_every_verb_and_option_is_in_the_command_reference():
    text = generated.command_reference()
    verbs = dict(generated.verbs())
    assert {"train", "predict", "data list", "data doctor", "diffuse", "run", "report"} <= set(verbs)
    for name, command in verbs.items():
        part = text.split(f"## edhnn {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            shown = parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
            assert all(f"`{option}`" in part for option in parameter.opts if shown), (name, parameter.opts)


@pytest.mark.parametrize("part", sorted(set(generated.PARTS) - {f"names of {each}" for each in generated.packages()}))
def test_every_generated_part_is_used_and_made(part):
    assert any(part in generated.PLACEHOLDER.findall(page.read_text()) for page in PAGES)
    assert generated.PARTS[part]().strip()


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_documents_every_name(tmp_path):
    missing = [name for name in ("sphinx", "furo", "myst_nb", "sphinx_copybutton") if find_spec(name) is None]
    if missing:
        pytest.skip(f"The extra 'docs' is not installed: {', '.join(missing)} missing.")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-d", str(tmp_path / "trees")]
    done = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "html")], env=environment(), capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-4000:]
    inventory = (tmp_path / "html/objects.inv").read_bytes().split(b"zlib.\n", 1)[1]
    documented = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    assert set(NAMES) <= documented
    pages = {Path(str(page.relative_to(DOCS))).with_suffix(".html") for page in PAGES}
    assert all((tmp_path / "html" / page).is_file() for page in pages)
    for page in (tmp_path / "html").rglob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', page.read_text()), page  # offline
