"""The folders where workers on this machine look for modules, and a check that no file of the user's hides one."""

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
"""Modules that workers import in addition to our own, if this process has imported them."""


def import_folders() -> list[str]:
    """Returns the folders and archives this process imports from, in order, as paths that mean the same elsewhere."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def refuse_shadowed() -> None:
    """Refuses files that hide modules that workers need, such as a msgpack.py next to the job (driver).

    This process may have imported the right module before the job's folder joined its path; workers look there first.

    Raises:
        TopologyError: a file of the user's would be imported in place of such a module.
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
