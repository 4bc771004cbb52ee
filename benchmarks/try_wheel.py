"""Install the wheel of a folder in a clean environment without a compiler, and use it as a new user does.

    python benchmarks/try_wheel.py dist

Checks: the wheel holds no tests and no benchmarks; the native kernels are in it; every extra installs; the
command trains on a CSV, predicts, and prints its version.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(folder: Path) -> None:
    (wheel,) = folder.resolve().glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    strangers = [name for name in names if not name.startswith(("edhnn/", "edhnn-"))]
    metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
    extras = Parser().parsestr(zipfile.ZipFile(wheel).read(metadata).decode()).get_all("Provides-Extra", [])
    if strangers:
        sys.exit(f"The wheel must hold the package only. It also holds {strangers[0]}.")
    if not any(name.endswith(("kernels.so", "kernels.dll")) for name in names):
        sys.exit("The wheel must hold the native kernels. It was built without a compiler.")
    with tempfile.TemporaryDirectory() as home:
        begin = time.perf_counter()
        venv.create(Path(home) / "venv", with_pip=True)
        bin_folder = Path(home) / "venv" / ("Scripts" if os.name == "nt" else "bin")
        environment = {**os.environ, "CC": "/nonexistent", "CXX": "/nonexistent"}
        environment.pop("PYTHONPATH", None)

        def run(*command: object) -> None:
            subprocess.run([str(part) for part in command], cwd=home, env=environment, check=True)

        pip = bin_folder / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
        constraints = "--constraint", ROOT / "constraints.txt"
        run(*pip, *constraints, "torch")
        run(*pip, *constraints, wheel)
        print(f"installed in {time.perf_counter() - begin:.0f} s")
        rows = [f"item{item},{basket}" for item in range(60) for basket in (item % 2, 2 + item % 7, 9 + item % 5)]
        (Path(home) / "baskets.csv").write_text("\n".join(["item,basket", *rows]) + "\n")
        labels = [f"item{item},{'odd' if item % 2 else 'even'},{item % 3},{item % 5}" for item in range(60)]
        (Path(home) / "baskets.nodes.csv").write_text("\n".join(["id,kind,price,size", *labels]) + "\n")
        begin = time.perf_counter()
        edhnn = bin_folder / "edhnn"
        run(edhnn, "--version")
        run(edhnn, "data", "info", "baskets.csv")
        run(edhnn, "train", "baskets.csv", "--label", "kind", "--out", "run", "--splits", 2, "--set", "epochs=20")
        run(edhnn, "predict", "run", "baskets.csv", "--out", "predictions.csv")
        if len((Path(home) / "predictions.csv").read_text().splitlines()) != 61:
            sys.exit("predictions.csv must have a row per node.")
        print(f"trained and predicted in {time.perf_counter() - begin:.0f} s")
        for extra in extras:
            run(*pip, *constraints, f"{wheel}[{extra}]")
            print(f"extra '{extra}' installed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
