"""The topologies of all examples, built over a file that exists and is not read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "examples"
ARGUMENTS = {"input": str(Path(__file__)), "output": "counts.txt", "servers": "localhost:9092", "topic": "page_views"}
"""What every factory gets, as far as it has such a parameter."""


def _made(name: str) -> Any:
    factory = import_module(f"examples.{name}").topology
    given = {name: value for name, value in ARGUMENTS.items() if name in inspect.signature(factory).parameters}
    return factory(**given)


def _has_factory(path: Path) -> bool:
    return "\ndef topology(" in path.read_text(encoding="utf-8")


EXAMPLES: Mapping[str, Callable[[], Any]] = {
    path.stem: partial(_made, path.stem) for path in sorted(FOLDER.glob("*.py")) if _has_factory(path)
}
"""Name of the example -> what makes its topology."""
