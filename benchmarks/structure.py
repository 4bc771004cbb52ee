"""Measure the layout of the source: number and length of modules, imports, and the code that a command runs.

    python benchmarks/structure.py                    # the tree of this checkout
    python benchmarks/structure.py --src OTHER/src/edhnn --json
    PYTHONPATH=OTHER/src python benchmarks/structure.py --src OTHER/src/edhnn --paths

The walks (`--paths`) run commands with `sys.setprofile` and count the functions of the package that are called. Frames
of comprehensions, lambdas, class and module bodies do not count. The walks run the imported package, so PYTHONPATH
chooses it. They use only the command and public names, so one script measures any layout.

A module is private if no package imports a name from it, in `__init__.py` or in the list of public names beside it,
`__init__.pyi`. A private module with one importer is half of another module, unless it is a plug-in:

- its importer puts its names into a registry, one of the tables named in ``REGISTRIES``,
- it loads one of the ``EXTRAS``, which are optional libraries, and is imported inside functions only,
- it registers itself, by a decorator of this package whose name begins with ``register``, or
- it belongs to one of the ``BACKENDS``, which hold a second implementation of the functions of their importer.

`--check` exits with 1 if there is such a half.

The dotted name of a module in a string counts as an import of it, because tables name modules that load late.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 5
REGISTRIES = frozenset({"FORMATS", "POTENTIALS", "MODELS", "KINDS", "VERBS"})
"""Tables whose entries are plug-ins."""
EXTRAS = frozenset({"huggingface_hub", "openpyxl", "optuna", "plotly", "tensorboard"})
"""Our optional libraries; bridges import theirs inside functions."""
BACKENDS = ("edhnn.kernels.torch_backend",)
"""Packages of alternative implementations. The torch kernels replace the native ones and are their reference."""


@dataclass
class Module:
    """A source file: its lines, what it imports, and the tables it fills."""

    name: str
    lines: int
    code_lines: int
    import_lines: int
    is_package: bool
    imports: set[str] = field(default_factory=set)
    tabled: set[str] = field(default_factory=set)
    registers: bool = False
    early: set[str] = field(default_factory=set)
    extra: bool = False


def read_tree(package: Path) -> dict[str, Module]:
    """Parse all modules below a package's folder."""
    paths = sorted(package.rglob("*.py"))
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in paths}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    return {names[path]: _read(path, names[path], known) for path in paths}


def _read(path: Path, name: str, known: set[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    is_package = path.name == "__init__.py"
    imports = _imports(tree)
    module = Module(
        name=name,
        lines=len(text.splitlines()),
        code_lines=_code_lines(text, tree),
        import_lines=sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports),
        is_package=is_package,
    )
    package = name if is_package else name.rpartition(".")[0]
    origins: dict[str, str] = {}
    public = path.with_suffix(".pyi")
    for node in imports + (_imports(ast.parse(public.read_text(encoding="utf-8"))) if public.is_file() else []):
        origins |= dict(_origins(node, package, known))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    module.early = {origin for node in top for _, origin in _origins(node, package, known)}
    module.extra = any(name.partition(".")[0] in EXTRAS for node in top for name in _libraries(node))
    documentation = _documentation(tree)
    texts = {
        node.value: f"{package}{node.value}" if node.value.startswith(".") else node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation
    }
    named = {text: module_name for text, module_name in texts.items() if module_name in known}
    module.imports = (set(origins.values()) | set(named.values())) - {name}
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        if any(isinstance(target, ast.Name) and target.id.lstrip("_") in REGISTRIES for target in targets):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id in origins:
                    module.tabled.add(origins[node.id])
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in named:
                    module.tabled.add(named[node.value])
    module.registers = any(
        _is_registration(decorator, origins) for node in ast.walk(tree) for decorator in _decorators(node)
    )
    return module


def _imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _origins(node: ast.Import | ast.ImportFrom, package: str, known: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with the module of ours that it comes from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name in known:
                yield alias.asname or alias.name, alias.name
        return
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
    for alias in node.names:
        inside = f"{base}.{alias.name}"
        if inside in known:
            yield alias.asname or alias.name, inside
        elif base in known:
            yield alias.asname or alias.name, base


def _libraries(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def _decorators(node: ast.AST) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []


def _is_registration(node: ast.expr, origins: dict[str, str]) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return isinstance(function, ast.Name) and function.id.startswith("register") and function.id in origins


def _documentation(tree: ast.AST) -> set[ast.Constant]:
    """Find strings that are statements: docstrings."""
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _code_lines(text: str, tree: ast.AST) -> int:
    """Count the lines with code: neither blank, nor comment, nor docstring."""
    documented: set[int] = set()
    for node in _documentation(tree):
        documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def measure_tree(package: Path) -> dict[str, Any]:
    """Count modules, lines, imports, and modules with one importer."""
    modules = read_tree(package)
    importers: dict[str, list[Module]] = {name: [] for name in modules}
    for module in modules.values():
        for name in module.imports if not module.name.endswith(".__main__") else ():  # Python asks for that file
            importers[name].append(module)
    private = [
        module
        for module in modules.values()
        if not module.is_package and not any(user.is_package for user in importers[module.name])
    ]
    single = [module for module in private if len(importers[module.name]) == 1]
    plugins, halves = [], []
    for module in single:
        user = importers[module.name][0]
        late = module.extra and module.name not in user.early
        plugged = module.name in user.tabled or module.registers or late or module.name.startswith(BACKENDS)
        (plugins if plugged else halves).append({"module": module.name, "importer": user.name})
    lengths = [module.lines for module in modules.values()]
    longest = sorted(modules.values(), key=lambda module: -module.lines)[:LARGEST]
    imported, code = (
        sum(getattr(module, key) for module in modules.values()) for key in ("import_lines", "code_lines")
    )
    return {
        "modules": len(modules),
        "modules_without_packages": sum(not module.is_package for module in modules.values()),
        "median_lines": statistics.median(lengths),
        "median_lines_without_packages": statistics.median(m.lines for m in modules.values() if not m.is_package),
        "largest_lines": max(lengths),
        "largest": {module.name: module.lines for module in longest},
        "total_lines": sum(lengths),
        "code_lines": code,
        "import_lines": imported,
        "import_share": round(imported / code, 4),
        "private_modules": len(private),
        "single_importer": len(single),
        "single_importer_plugins": len(plugins),
        "single_importer_halves": len(halves),
        "plugins": plugins,
        "halves": halves,
        "without_importer": [module.name for module in private if not importers[module.name]],
    }


# The walks


def walk_train() -> Callable[[], object]:
    """`edhnn train baskets.csv --label kind`: two splits, two epochs, one process."""
    return lambda: command("train baskets.csv --label kind --splits 2 --epochs 2 --jobs 1 --out run")


def walk_diffuse() -> Callable[[], object]:
    """`edhnn diffuse baskets.csv --seeds s.csv --potential tv`."""
    return lambda: command("diffuse baskets.csv --seeds s.csv --potential tv --out scores.csv")


def walk_step() -> Callable[[], object]:
    """One forward and backward of ED-HNN with two iterations."""
    import torch

    from edhnn import Hypergraph, make_model

    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [3, 4, 5, 0]], num_nodes=6)
    model = make_model("ed-hnn", in_features=4, num_classes=2, num_iterations=2)
    x = torch.rand(6, 4)
    return lambda: model(x, hypergraph).sum().backward()


def walk_run() -> Callable[[], object]:
    """`edhnn run table3`, the parent process: the first split of each cell, of which one has no record yet."""
    shutil.copytree(ROOT / "results", "records")
    table = Path("records", "table3.jsonl")
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    lost = next(line for line in lines if '"model": "class-means"' in line and '"split": 0' in line)
    table.write_text("".join(line for line in lines if line != lost), encoding="utf-8")
    return lambda: command("run table3 --splits 1 --jobs 1 --results records")


def walk_report() -> Callable[[], object]:
    """`edhnn report table3` from the records in `results/`."""
    return lambda: command(f"report table3 --results {ROOT / 'results'} --out report")


WALKS = {
    "train": walk_train,
    "diffuse": walk_diffuse,
    "forward and backward": walk_step,
    "run table3 (parent)": walk_run,
    "report table3": walk_report,
}


def command(words: str) -> None:
    """Run the command in this process and discard its output."""
    from edhnn.cli.main import main

    sys.argv = ["edhnn", *words.split()]
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"`edhnn {words}` exits with {stop.code}: {errors.getvalue()}") from stop


def write_baskets(folder: Path) -> None:
    """Write a table of memberships, a table of nodes, and a table of seeds."""
    chance = random.Random(0)
    kinds = [chance.choice(("drink", "food")) for _ in range(40)]
    pairs = [(f"n{v}", f"b{e}") for e in range(30) for v in chance.sample(range(40), 4)]
    tables = {
        "baskets.csv": [("item", "basket"), *pairs],
        "baskets.nodes.csv": [("id", "kind", "price"), *((f"n{v}", kinds[v], v / 8) for v in range(40))],
        "s.csv": [("node", "value"), ("n0", 1.0), ("n7", -1.0)],
    }
    for name, rows in tables.items():
        with (folder / name).open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)


def walk(name: str) -> dict[str, int]:
    """Run a walk and count the package's functions, their modules and their lines."""
    import edhnn
    import edhnn.cli.main

    package = str(Path(edhnn.__file__).parent) + os.sep
    calls: dict[CodeType, int] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(package) and code.co_filename.endswith(".py")  # templates are code too
        function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")  # a class body is not optimised
        if event == "call" and ours and function:
            calls[code] = calls.get(code, 0) + 1

    with tempfile.TemporaryDirectory() as folder:
        write_baskets(Path(folder))
        os.chdir(folder)
        go = WALKS[name]()
        sys.setprofile(look)
        try:
            go()
        finally:
            sys.setprofile(None)
            os.chdir(ROOT)
    files = {code.co_filename for code in calls}
    return {
        "calls": sum(calls.values()),
        "functions": len(calls),
        "modules": len(files),
        "module_lines": sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files),
        "function_lines": sum(_own_lines(code) for code in calls),
    }


def _own_lines(code: CodeType) -> int:
    """Count the lines of a function, including its decorators."""
    return len(_functions_of(code.co_filename).get(code.co_firstlineno, ())) or 1


def _functions_of(file: str, *, _known: dict[str, dict[int, range]] = {}) -> dict[int, range]:  # noqa: B006  # a cache
    if file not in _known:
        _known[file] = {}
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                _known[file][first] = range(first, (node.end_lineno or first) + 1)
    return _known[file]


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=ROOT / "src" / "edhnn", help="the package's folder")
    parser.add_argument("--paths", action="store_true", help="also walk the paths of the imported package")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a private module has one importer")
    parser.add_argument("--walk", choices=WALKS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.walk:
        print(json.dumps(walk(chosen.walk)))
        return
    measured = measure_tree(chosen.src.resolve())
    if chosen.paths:
        settings = {**os.environ, "OMP_NUM_THREADS": "1"}
        measured["paths"] = {}
        for name in WALKS:  # each in a separate process, because caches of one would shorten the next
            words = [sys.executable, __file__, "--walk", name]
            done = subprocess.run(words, capture_output=True, text=True, env=settings, check=False)
            if done.returncode:
                sys.exit(f"{name}: {done.stderr}")
            measured["paths"][name] = json.loads(done.stdout)
    if chosen.check:
        for row in measured["halves"]:
            print(f"{row['module']} has one importer, {row['importer']}: move it there, or make it public.")
        sys.exit(1 if measured["halves"] else 0)
    if chosen.json:
        print(json.dumps(measured, indent=2))
        return
    for key, value in measured.items():
        if not isinstance(value, dict | list):
            print(f"{key.replace('_', ' '):28} {value:>10,}" if key != "import_share" else f"{key:28} {value:>10.1%}")
    for key in ("plugins", "halves"):
        print(f"\n{key}, with one importer:")
        for row in measured[key]:
            print(f"  {row['module']}  <-  {row['importer']}")
    print("\nwithout importer:", ", ".join(measured["without_importer"]) or "none")
    print("largest:", ", ".join(f"{name} {lines}" for name, lines in measured["largest"].items()))
    if chosen.paths:
        print(f"\n{'path':24}{'calls':>10}{'functions':>11}{'modules':>9}{'their lines':>13}{'function lines':>16}")
        for name, row in measured["paths"].items():
            print(
                f"{name:24}"
                + "".join(f"{row[key]:>{width},}" for key, width in zip(row, (10, 11, 9, 13, 16), strict=True))
            )


if __name__ == "__main__":
    main()
