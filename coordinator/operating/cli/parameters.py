"""Converts parameters of a topology's factory from the text on the command line."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

from state.errors import TopologyError
from state.troubles import Trouble

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})
CONVERTED = (bool, int, float)
"""The types that text is converted to; a parameter of any other type gets the text."""


def parse_pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise _refused(f"{option} {text!r} does not have the form key=value; write {option} {text}=VALUE")
        if key.strip() in pairs:
            raise _refused(
                f"{option} sets {key.strip()!r} twice, to {pairs[key.strip()]!r} and {value!r}; keep one of them"
            )
        pairs[key.strip()] = value
    return pairs


def bind_parameters(factory: Callable[..., Any], name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the keyword arguments for a factory, with the types of its annotations or, without one, its defaults."""
    parameters = _signature(factory, name)
    known = {p.name: p for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)}
    for parameter in parameters:
        if parameter.kind is Parameter.POSITIONAL_ONLY and parameter.default is Parameter.empty:
            raise _refused(
                f"factory {name!r} takes {parameter.name!r} by position only; remove the / from its parameters"
            )
    unknown = sorted(given.keys() - known.keys())
    if unknown and not any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        raise _refused(f"factory {name!r} has no parameter {unknown[0]!r}; {_listed(known)}")
    missing = [key for key, parameter in known.items() if parameter.default is Parameter.empty and key not in given]
    if missing:
        raise _refused(f"factory {name!r} needs parameter {missing[0]!r}; give -p {missing[0]}=VALUE; {_listed(known)}")
    hints = _hints(factory)
    return {key: _converted(key, text, known.get(key), hints.get(key)) for key, text in given.items()}


def _refused(why: str) -> TopologyError:
    return TopologyError(why).about(Trouble.PARAMETER)


def _signature(factory: Callable[..., Any], name: str) -> Sequence[Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        raise _refused(f"factory {name!r} has no signature to read; wrap it in a function") from None


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Returns the annotations as types; empty if one cannot be resolved."""
    target = factory.__init__ if isinstance(factory, type) else factory  # type: ignore[misc] # inspected only
    try:
        return typing.get_type_hints(target)
    except Exception:  # noqa: BLE001 - evaluating an annotation may raise anything
        return {}


def _converted(key: str, text: str, parameter: Parameter | None, hint: Any) -> Any:
    wanted = _wanted(parameter, hint)
    for kind in CONVERTED:
        if kind in wanted:
            value = _parse(kind, text)
            if value is not None:
                return value
    if not wanted or wanted - set(CONVERTED):
        return text
    names = " or ".join(kind.__name__ for kind in CONVERTED if kind in wanted)
    raise _refused(f"parameter {key}={text!r} is not of type {names}")


def _wanted(parameter: Parameter | None, hint: Any) -> set[Any]:
    """Returns the types of a parameter: those in its annotation, or its default's; empty if it has neither."""
    if hint is not None:
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        return set(typing.get_args(hint) if is_union else (hint,)) - {types.NoneType}
    if parameter is None or parameter.default is Parameter.empty or parameter.default is None:
        return set()
    return {type(parameter.default)}


def _parse(kind: type, text: str) -> bool | int | float | None:
    if kind is bool:
        word = text.strip().lower()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None
    try:
        number: int | float = kind(text)
    except ValueError:
        return None
    return number


def _listed(known: Mapping[str, Parameter]) -> str:
    if not known:
        return "it has no parameters"
    shown = [k if p.default is Parameter.empty else f"{k}={p.default!r}" for k, p in known.items()]
    return f"its parameters: {', '.join(shown)}"
