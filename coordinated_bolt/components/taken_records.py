"""The argument type of a bolt: by its annotation, a `Tuple` or a record class."""

from __future__ import annotations

from inspect import unwrap
from types import SimpleNamespace
from typing import Any, cast, get_args, get_origin, get_type_hints

from coordinated_bolt.components.function_bolt import FunctionBolt
from coordinated_bolt.streams.records import is_record_class, record_fields
from state.errors import TopologyError


def record_class_taken(bolt: object) -> type[Any] | None:
    """Returns the record class that a bolt's `execute`, or its function, is annotated to take; None for a `Tuple`.

    Called on the driver, where the names that an annotation may use are known.

    Raises:
        TopologyError: the annotation cannot be resolved, or its class cannot represent tuples.
    """
    taking: Any = bolt.function if isinstance(bolt, FunctionBolt) else getattr(type(bolt), "execute", None)
    taking, place = unwrap(taking), 0 if isinstance(bolt, FunctionBolt) else 1
    named = getattr(getattr(taking, "__code__", None), "co_varnames", ())[place : place + 1]
    annotation = getattr(taking, "__annotations__", {}).get(*named) if named else None
    if annotation is None:
        return None
    name = f"execute of {type(bolt).__name__}" if place else taking.__qualname__
    taker, remedy = f"{name} takes {annotation!r}", "annotate one class, or a Tuple"
    try:
        hints = get_type_hints(SimpleNamespace(__annotations__={"taken": annotation}), taking.__globals__)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        if "Tuple" in str(annotation):  # imported for type checkers only
            return None
        raise TopologyError(
            f"{taker}, which its module does not know when it runs ({error}); define that class at the top of the "
            "module or import it there, or annotate a Tuple"
        ) from None
    taken: Any = hints["taken"]
    if is_record_class(taken):
        record_fields(taken)
        return cast("type[Any]", taken)
    if any(map(is_record_class, (get_origin(taken), *get_args(taken)))):
        raise TopologyError(f"{taker}, which is not one class for all its tuples; {remedy}")
    return None
