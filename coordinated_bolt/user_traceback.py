"""Describes an exception from user code: its traceback and, if its message lacks it, the remedy.

All engines show user code's exceptions through this module, so they read the same everywhere, and no control
characters in them reach a terminal.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable

from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.streams.records import WrongTypeError
from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_code import is_ours
from state.printable import block

_PREPARING = ("prepare", "open")
_ENDED_PROCESS = (
    "remedy: a component may not end its process; raise an exception, or FailedException to have the batch replayed"
)
_WRONG_KEYWORD = re.compile(r"\bemit(_all|_direct)?\(\) got an unexpected keyword argument 'stream'")
_STREAM_ID = "remedy: the parameter is called stream_id"


class WrongAnswerError(TypeError):
    """A user's method returned an invalid value; the message names both and what to return."""


def call(method: Callable[..., object], *arguments: object) -> None:
    """Calls a user's method that must return None: any other answer is a mistake, since nobody reads it.

    Raises:
        WrongAnswerError: the method returned a value.
    """
    if (answer := method(*arguments)) is not None:
        raise unread_answer(method, answer)


def unread_answer(method: Callable[..., object], answer: object) -> WrongAnswerError:
    """Returns the error for a method that must return None but has returned an answer."""
    name = getattr(method, "__name__", "a method")
    if inspect.isgenerator(answer):
        return WrongAnswerError(f"{name} has a yield in it, so none of it was run; call collector.emit for each row")
    if inspect.iscoroutine(answer):
        answer.close()  # else Python warns too
        return WrongAnswerError(f"{name} is an async def, so none of it was run; define it with a plain def")
    return WrongAnswerError(
        f"{name} returned {cut(answer, 60)}, which goes nowhere; call collector.emit for each row, and return nothing"
    )


def user_traceback(error: BaseException) -> str:
    """Returns traceback and remedy as printable text of bounded length (called where the code ran).

    Leaves out txbatch's frames around the user's, which have the code to fix.
    """
    if isinstance(error, (WrongAnswerError, WrongTypeError)):  # all frames are txbatch's, and the message is complete
        return f"TypeError: {block(str(error))}\n"
    story = traceback.TracebackException.from_exception(error)
    _leave_out_ours(story)
    text = block("".join(story.format()).rstrip("\n"))
    remedy = remedy_for(error)
    return f"{text}\n{remedy}\n" if remedy else f"{text}\n"


def remedy_for(error: BaseException) -> str:
    """Returns the remedy for an error whose message lacks it; "" for most errors."""
    if isinstance(error, SystemExit):
        return _ENDED_PROCESS
    if isinstance(error, TypeError) and _WRONG_KEYWORD.search(str(error)):
        return _STREAM_ID
    if not isinstance(error, AttributeError) or error.name is None or not isinstance(error.obj, IComponent):
        return ""
    name, owner = error.name, type(error.obj).__name__
    call = _call_that_sets(name, type(error.obj))
    if call:
        return f"remedy: {owner} overrides {call.partition('(')[0]}, which sets self.{name}; call super().{call} there"
    remedy = f"remedy: self.{name} was never set; set it in prepare"
    if isinstance(error.obj, IBatchBolt):
        remedy += f" or, if it is a committer's state, declare it in class {owner}: {name} = HashState({name!r})"
    return remedy


def _leave_out_ours(story: traceback.TracebackException) -> None:
    """Cuts each stack of a chain to the frames from the first to the last foreign one, if there is one.

    An error raised by txbatch explains itself, so its causes are left out; if a note names the user's call, all of its
    frames are too.
    """
    link: traceback.TracebackException | None = story
    while link is not None:
        if link.stack and is_ours(link.stack[-1].filename):
            link.__cause__ = link.__context__ = None
        others = [place for place, frame in enumerate(link.stack) if not is_ours(frame.filename)]
        if others or link.__notes__:
            link.stack = traceback.StackSummary.from_list(link.stack[others[0] : others[-1] + 1] if others else ())
        link = link.__cause__ or link.__context__


def _call_that_sets(name: str, component: type) -> str:
    """Returns the call of a txbatch base class that sets the annotated attribute, "" if there is none."""
    for base in component.__mro__:
        if base.__module__.startswith("coordinated_bolt.") and name in inspect.get_annotations(base):
            for method in filter(vars(base).__contains__, _PREPARING):
                given = list(inspect.signature(vars(base)[method]).parameters)[1:]
                return f"{method}({', '.join(given)})"
    return ""
