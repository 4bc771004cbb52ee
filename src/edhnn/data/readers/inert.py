"""What a pickle wanted made, written down instead of made: the records, and the names a pickle may mention."""

from __future__ import annotations

from typing import Any, final


@final
class Global:
    """A name from the allow-list, as an object of the pickle; never the thing it names."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


@final
class Inert:
    """Something a pickle wanted made, written down instead.

    Attributes:
        maker: Our short name of the class or function, a value of `GLOBALS`.
        arguments: What it would have been called with.
        items: What would have been put into it afterwards: elements, or for a "dict" (key, value) tuples.
        state: What its ``__setstate__`` would have been given.
    """

    __slots__ = ("arguments", "items", "maker", "state")

    def __init__(self, maker: str, arguments: tuple[Any, ...] = (), items: list[Any] | None = None) -> None:
        self.maker, self.arguments = maker, arguments
        self.items: list[Any] = [] if items is None else items
        self.state: Any = None


def _allow_list() -> dict[tuple[str, str], Global]:
    names = {("numpy", "ndarray"): "ndarray", ("numpy", "dtype"): "dtype", ("_codecs", "encode"): "encode"}
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = "array"
        names[f"{core}.multiarray", "scalar"] = "scalar"
        names[f"{core}.numeric", "_frombuffer"] = "buffer"
    for form in ("csr", "csc", "coo"):
        for module in (f"scipy.sparse.{form}", f"scipy.sparse._{form}"):
            names[module, f"{form}_matrix"] = names[module, f"{form}_array"] = form
    for builtins in ("builtins", "__builtin__"):
        plain = ("object", "set", "frozenset", "list", "dict", "tuple", "int", "float", "bool", "str", "bytes")
        names.update({(builtins, name): name for name in plain})
    for copyreg in ("copyreg", "copy_reg"):
        names[copyreg, "_reconstructor"] = "reconstructor"
    for name in ("OrderedDict", "defaultdict"):
        names["collections", name] = "dict"
    return {place: Global(name) for place, name in names.items()}


GLOBALS = _allow_list()
"""(module, name) of everything a pickle may mention, as every numpy, scipy and Python release has spelt it."""
