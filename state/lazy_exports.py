"""Lets a package export names that are imported only when they are first used.

Otherwise ``import coordinator`` would load every engine, source and client, which would delay `txbatch --help`. The
exports are below ``if TYPE_CHECKING`` in the package's ``__init__``, so type checkers see plain imports.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def hand_on_lazily(package: str) -> None:
    """Makes a package import each name of its ``__all__`` on first use; called by its ``__init__``."""
    sys.modules[package].__class__ = _Package


class _Package(ModuleType):
    """A package whose exported names hide submodules of the same name, as the function `run` hides the module `run`."""

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("__all__", ()):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module = next(
            node.module
            for node in ast.walk(ast.parse(inspect.getsource(self)))
            if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}
        )
        value = self.__dict__[name] = getattr(importlib.import_module(module), name)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__.get("__all__", ())):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__.get("__all__", ())})

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return importlib.import_module, (self.__name__,)
