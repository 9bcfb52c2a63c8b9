"""Describes in one line where a user's module failed; ``--debug`` shows the rest."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import coordinator
from state.printable import one_line, said_by

_OWN_ROOT = Path(coordinator.__file__).resolve().parent.parent
_OWN = tuple(str(_OWN_ROOT / name) for name in ("state", "coordinated_bolt", "committers", "coordinator"))
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def story_of(error: BaseException) -> str:
    """Returns the type, message and place of an error that user code raised."""
    said = one_line(error.msg) if isinstance(error, SyntaxError) else said_by(error)
    kind, module = type(error).__qualname__, type(error).__module__
    name = kind if module in ("builtins", "__main__") else f"{module}.{kind}"
    text = f"{name}: {said}" if said else name
    place = place_of(error)
    return f"{text} ({place})" if place else text


def place_of(error: BaseException) -> str:
    """Returns the file and line of the user's code nearest to where `error` was raised; "" if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else ""


def _is_users(file_name: str) -> bool:
    if file_name.startswith("<"):
        return False
    return not any(Path(file_name).is_relative_to(folder) for folder in (*_OWN, *_LIBRARIES))
