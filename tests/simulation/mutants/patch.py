"""Plants a bug in production code: replaces a piece of source text, and puts it back afterwards.

A patch is text, so it reads like a diff, and it must apply exactly once: a mutant that no longer fits the code fails
its test instead of quietly mutating nothing. Python functions get the code of the mutated source in place, so objects,
classes and references stay what they are; the function library is served mutated to every server that loads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import getattr_static, unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest import mock

from state.redis_client import function_library
from state.redis_client.function_library import library_code

ROOT = Path(__file__).parents[3]
LIBRARY = "state/redis_client/functions"
"""Stands for the function library's files, joined as servers get them."""


class PatchError(Exception):
    """A patch does not fit the code that it is meant for."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of source text.

    Attributes:
        file: path from the root of the checkout, of a Python module or of the function library.
        old: text that occurs exactly once in it.
        new: the text in its place; in Python it may change the bodies of functions only.
    """

    file: str
    old: str
    new: str


def mutated(patches: Iterable[Patch]) -> dict[str, str]:
    """Returns file -> source text with all of its patches applied, in order.

    Raises:
        PatchError: the old text of a patch does not occur exactly once.
    """
    texts: dict[str, str] = {}
    for patch in patches:
        text = texts.get(patch.file) or _source(patch.file)
        count = text.count(patch.old)
        if count != 1:
            raise PatchError(f"the old text occurs {count} times in {patch.file}, expected once: {patch.old!r}")
        texts[patch.file] = text.replace(patch.old, patch.new)
    return texts


def _source(file: str) -> str:
    return library_code() if file == LIBRARY else (ROOT / file).read_text(encoding="utf-8")


@contextmanager
def planted(patches: Iterable[Patch]) -> Iterator[None]:
    """Runs the block with the bugs in place.

    Raises:
        PatchError: a patch does not apply exactly once, or changes something other than the body of a function.
    """
    with ExitStack() as stack:
        for file, text in mutated(patches).items():
            if file == LIBRARY:
                stack.enter_context(mock.patch.object(function_library, "library_code", lambda text=text: text))
            else:
                stack.enter_context(_recoded(file, text))
        yield


@contextmanager
def _recoded(file: str, text: str) -> Iterator[None]:
    module = import_module(file.removesuffix(".py").replace("/", "."))
    changed = _changed_functions(module, (ROOT / file).read_text(encoding="utf-8"), text)
    before = [function.__code__ for function, _ in changed]
    try:
        for function, code in changed:
            function.__code__ = code
        yield
    finally:
        for (function, _), code in zip(changed, before, strict=True):
            function.__code__ = code


def _changed_functions(module: ModuleType, before: str, after: str) -> list[tuple[FunctionType, CodeType]]:
    """Returns each live function whose code the mutated source changes, with its new code."""
    old, new = _codes(before, str(module.__file__)), _codes(after, str(module.__file__))
    if old.keys() != new.keys():
        raise PatchError(f"{module.__name__}: a patch adds or removes {sorted(old.keys() ^ new.keys())}")
    changed = [name for name, code in new.items() if _essence(code) != _essence(old[name])]
    if not changed:
        raise PatchError(f"{module.__name__}: the patches change no function")
    return [(_live_function(module, name), new[name]) for name in changed]


@cache
def _codes(text: str, file: str) -> Mapping[str, CodeType]:
    """Returns qualified name -> code of every function of a module and of its classes."""
    found: dict[str, CodeType] = {}
    bodies = defaultdict(list, {"": [compile(text, file, "exec", dont_inherit=True)]})
    while bodies:
        prefix, codes = bodies.popitem()
        for body in codes:
            for code in filter(lambda const: isinstance(const, CodeType), body.co_consts):
                is_class = "__module__" in code.co_names and not code.co_argcount and "__qualname__" in code.co_names
                if is_class:
                    bodies[f"{prefix}{code.co_name}."].append(code)
                elif not code.co_name.startswith("<"):
                    found[f"{prefix}{code.co_name}"] = code
    return found


def _essence(code: CodeType) -> tuple[Any, ...]:
    """What a function does, wherever in the file it stands."""
    constants = [_essence(const) if isinstance(const, CodeType) else (type(const), const) for const in code.co_consts]
    return code.co_code, tuple(constants), code.co_names, code.co_varnames, code.co_freevars


def _live_function(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = getattr_static(found, part)
    if isinstance(found, property):
        found = found.fget
    found = unwrap(getattr(found, "__func__", found))
    if not isinstance(found, FunctionType):
        raise PatchError(f"{module.__name__}.{name} is not a function: {found!r}")
    return found
