"""The examples: short, built from public names, and they run."""

import ast

import pytest

import edhnn
from tests.docs.blocks import ROOT, run_program

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LEARNS = {"train_edhnn": 0.8, "own_model": 0.8}  # least accuracy that the last line may print


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_uses_public_names_only(example):
    text = example.read_text()
    assert len(text.splitlines()) < 60
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edhnn"):
            assert node.module == "edhnn"
            assert {alias.name for alias in node.names} <= set(edhnn.__all__)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "edhnn":
            assert node.attr in edhnn.__all__


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem != "demo"], ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path, capsys):
    run_program(example, tmp_path)
    if example.stem in LEARNS:
        accuracy = float(capsys.readouterr().out.split("accuracy ")[1].split()[0])
        assert accuracy >= LEARNS[example.stem]
