"""Building: without a compiler the install succeeds and torch serves; the source archive carries the sources."""

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    int(version("setuptools").split(".")[0]) < 77, reason="building here, without isolation, needs setuptools 77"
)


@pytest.fixture
def checkout(tmp_path):
    """A copy of what a build reads, without anything built."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("*.so", "*.dll", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(*command, folder, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_without_a_compiler_the_install_succeeds_and_torch_serves(checkout, tmp_path):
    target = tmp_path / "installed"
    install = ("-m", "pip", "install", "--verbose", "--no-deps", "--no-build-isolation", "--target", target, ".")
    said = run(*install, folder=checkout, CC="false", CXX="false")
    assert "the native kernels are not built, the torch kernels will be used" in said
    assert not list(target.rglob("*.so"))
    code = (
        "import torch; from edhnn import kernels; print(kernels.__file__, kernels.active(), "
        "kernels.segment_sort(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 2])).tolist())"
    )
    environment = {"PYTHONPATH": str(target), "EDHNN_KERNELS": ""}
    where, active, order = run("-c", code, folder=tmp_path, **environment).strip().split(" ", 2)
    assert Path(where).is_relative_to(target)
    assert (active, order) == ("torch", "[[1], [0]]")


def test_the_source_archive_carries_the_sources_and_nothing_built(checkout, tmp_path):
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    run("-c", code, folder=checkout)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {Path(name).name for name in archive.getnames() if "kernels/native/" in name}
    sources = {path.name for path in (ROOT / "src/edhnn/kernels/native").iterdir() if path.suffix in (".cpp", ".h")}
    assert len(sources) >= 5
    assert {name for name in names if "." in name} == sources


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None or shutil.which("g++") is None, reason="needs make and g++")
def test_the_native_kernels_are_clean_under_the_sanitizers(tmp_path):
    done = subprocess.run(["make", "sanitize"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "every access inside its buffer" in done.stdout
