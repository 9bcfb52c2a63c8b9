"""Where workers on this machine look for modules, and what must not stand in their way there."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

from coordinated_bolt.user_code import is_users
from state.errors import TopologyError
from state.troubles import Trouble

NEEDED = (
    *sorted(sys.stdlib_module_names),
    "msgpack",
    "msgspec",
    "redis",
    "pyspark",
    "py4j",
    "cloudpickle",
    "pyarrow",
    "pandas",
)
"""What workers import next to our own modules, if this process has imported it."""


def import_folders() -> list[str]:
    """Returns what this process can import from, in order, as paths that mean the same elsewhere."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def refuse_shadowed() -> None:
    """Refuses files in the way of modules that workers need, such as a msgpack.py next to the job (driver).

    This process may have imported the right module before it was given the job's folder; workers look there first.

    Raises:
        TopologyError: one of the modules would be a file of the user's.
    """
    folders = [str(Path.cwd()), *import_folders()]
    for name in NEEDED:
        own = getattr(sys.modules.get(name), "__file__", None)
        spec = None if own is None else PathFinder.find_spec(name, folders)
        found = None if spec is None else spec.origin
        if found is not None and found != own and is_users(found):
            raise TopologyError(
                f"{found} would be imported by Spark's workers in place of the {name} they need; rename it, or run "
                f"from another folder (this process has imported {own})"
            ).about(Trouble.SPARK)
