"""Checks the name of a new project. Pure: which packages are installed comes in as a parameter."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable

from state.errors import TopologyError

SHAPE = re.compile(r"[a-z][a-z0-9_]*")
LENGTH_MAX = 30
"""Longer names would break the lines of the template's modules."""
OURS = frozenset({"state", "coordinated_bolt", "committers", "coordinator", "txbatch"})
FOLDERS = frozenset({"build", "data", "dist", "tests"})
"""Other folders of a project; a package of that name would be taken for one of them."""


def check_project_name(name: str, installed_at: Callable[[str], str | None]) -> None:
    """Refuses a name that cannot be both a folder and a package of its own.

    Args:
        name: what the user typed.
        installed_at: says where the package or module of a name is, None if there is none.

    Raises:
        TopologyError: the name is not fit; the message says why, and which one would be.
    """
    if not SHAPE.fullmatch(name) or len(name) > LENGTH_MAX:
        raise TopologyError(
            f"project name {name!r} is not a package name; use up to {LENGTH_MAX} lower-case letters, digits and "
            f"underscores, beginning with a letter{_suggested(name)}"
        )
    if name in OURS:
        raise TopologyError(f"project name {name!r} is the name of one of txbatch's own packages; choose another one")
    if name in FOLDERS:
        raise TopologyError(f"project name {name!r} is also a folder of every project; choose another one")
    if keyword.iskeyword(name):
        raise TopologyError(f"project name {name!r} is a keyword of Python; choose another one")
    if name in sys.stdlib_module_names:
        raise TopologyError(f"project name {name!r} is a module of Python's standard library; choose another one")
    place = installed_at(name)
    if place is not None:
        raise TopologyError(
            f"project name {name!r} is taken: {place} is installed, and one of the two would hide the other; choose "
            "another one"
        )


def _suggested(name: str) -> str:
    likely = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f", such as {likely}" if SHAPE.fullmatch(likely) and len(likely) <= LENGTH_MAX else ""
