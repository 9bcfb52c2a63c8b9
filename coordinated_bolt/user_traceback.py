"""The story of an exception that came out of user code: its traceback, and the remedy where Python knows none.

Everything that shows user code's exceptions asks here, on every engine, so that they read the same everywhere,
and nothing in them reaches a terminal as it is.
"""

from __future__ import annotations

import inspect
import traceback

from coordinated_bolt.bolts import IBatchBolt
from coordinated_bolt.components import IComponent
from state.printable import block

_PREPARING = ("prepare", "open")


def user_traceback(error: BaseException) -> str:
    """Traceback and remedy as printable text, bounded however long the message is (where the code ran)."""
    text = block("".join(traceback.format_exception(error)).rstrip("\n"))
    remedy = remedy_for(error)
    return f"{text}\n{remedy}\n" if remedy else f"{text}\n"


def remedy_for(error: BaseException) -> str:
    """What to do about an error whose own words do not tell; "" for most."""
    if not isinstance(error, AttributeError) or error.name is None or not isinstance(error.obj, IComponent):
        return ""
    name, owner = error.name, type(error.obj).__name__
    call = _call_that_sets(name, type(error.obj))
    if call:
        return f"remedy: {owner} overrides {call.partition('(')[0]}, which sets self.{name}; call super().{call} there"
    remedy = f"remedy: nothing has set self.{name}; set it in prepare"
    if isinstance(error.obj, IBatchBolt):
        remedy += f", or, if it is a committer's state, declare it in the class {owner}: {name} = HashState({name!r})"
    return remedy


def _call_that_sets(name: str, component: type) -> str:
    """The call of one of our base classes that sets an attribute the class annotates, "" if there is none."""
    for base in component.__mro__:
        if base.__module__.startswith("coordinated_bolt.") and name in inspect.get_annotations(base):
            for method in filter(vars(base).__contains__, _PREPARING):
                given = list(inspect.signature(vars(base)[method]).parameters)[1:]
                return f"{method}({', '.join(given)})"
    return ""
