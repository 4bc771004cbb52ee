"""Hypergraph diffusion, classical and neural.

The public names are those of `__init__.pyi` here and in each sub-package. A name is loaded when it is first used, so
that ``import edhnn`` takes milliseconds and loads no PyTorch: see docs/adr/0020.
"""

import pkgutil as _pkgutil

import lazy_loader as _lazy_loader

_load, __dir__, _offered = _lazy_loader.attach_stub(__name__, __file__)
_packages = {module.name for module in _pkgutil.iter_modules(__path__)}
__all__ = [name for name in _offered if name not in _packages]  # a star import must not replace the standard `io`


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("edhnn")
    return _load(name)
