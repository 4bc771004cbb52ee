"""Build the native kernels: one shared library without Python or torch headers. Everything else is in pyproject.toml.

Where it cannot be built (no C++ compiler), the install still succeeds and the torch kernels are used.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

SOURCES = Path("src/edhnn/kernels/native")
IS_MSVC = sys.platform == "win32"
FLAGS = (
    ["/O2", "/std:c++17", "/EHsc"]
    if IS_MSVC
    else ["-std=c++17", "-O3", "-g0", "-fvisibility=hidden", "-ffp-contract=off"]
)
OPENMP = "/openmp" if IS_MSVC else "-fopenmp"


class BuildKernels(build_ext):
    """Compile with OpenMP, else without it, else not at all."""

    def build_extension(self, ext: Extension) -> None:
        """Compile the files side by side. A library that cannot be built is left out, with one line of warning."""
        compile_files = self.compiler.compile

        def compile_in_parallel(sources: list[str], *arguments: object, **options: object) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_files([source], *arguments, **options), sources)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_in_parallel
        for openmp in ([OPENMP], []):
            ext.extra_compile_args = FLAGS + openmp
            ext.extra_link_args = [] if IS_MSVC else openmp
            try:
                super().build_extension(ext)
                return
            except (BaseError, CCompilerError, OSError):
                continue
        Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        if self.editable_mode:  # a library of an earlier build no longer fits the source
            (SOURCES / Path(self.get_ext_filename(ext.name)).name).unlink(missing_ok=True)
        self.warn("no working C++17 compiler: the native kernels are not built, the torch kernels will be used")

    def get_ext_filename(self, fullname: str) -> str:
        """Return a plain library name: ctypes loads it, so it does not depend on the version of Python."""
        return str(Path(*fullname.split("."))) + (".dll" if IS_MSVC else ".so")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Return no symbol besides those marked in the source: there is no Python module to initialise."""
        return ext.export_symbols


class PlatformWheel(bdist_wheel):
    """One wheel per platform serves every version of Python and of torch."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return a tag that depends on the platform only."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            "edhnn.kernels.native.kernels",
            sources=[str(source) for source in sorted(SOURCES.glob("*.cpp"))],
            depends=[str(header) for header in sorted(SOURCES.glob("*.h"))],
            language="c++",
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": PlatformWheel},
)
