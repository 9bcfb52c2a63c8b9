"""The function library: the Lua files of `functions/`, joined in the order in which they build on each other.

A server holds the library under its name, with its code: that is how a driver sees whether it has to load its own.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from state.commits.commit import COMMIT_OPERATIONS_LIMIT
from state.commits.packed_writes import SECTION_LIMIT
from state.records.transaction_history import KEPT_BYTES, RECEIPTS_KEPT
from state.values.state_kind import MAX_INTEGER

LIBRARY_NAME = "txbatch_10"
"""Changes with the arguments of the functions, so that drivers of two versions can use one server."""
STORED_FORMAT = "3"
"""The format of what is stored in one slot, and of exports."""
SHARDED_FORMAT = "4"
"""That of a topology over shards: a version that knows none would run it without its states. Earlier ones had 3, too.
"""
FORMATS = (STORED_FORMAT, SHARDED_FORMAT)
FILES = (
    "keys",
    "numbers",
    "calls",
    "plans",
    "increments",
    "set_aside_plans",
    "hyperloglog",
    "sections",
    "owner",
    "history",
    "commit",
    "owner_calls",
    "acquire",
    "reading",
    "set_aside",
    "drop",
    "import",
    "pulse",
    "shards",
)
"""A file sees what those before it define."""
CONSTANTS = {
    "LIBRARY": LIBRARY_NAME,
    "FORMAT": STORED_FORMAT,
    "SHARDED_FORMAT": SHARDED_FORMAT,
    "MAX": MAX_INTEGER,
    "OPERATIONS_LIMIT": COMMIT_OPERATIONS_LIMIT,
    "SECTION_LIMIT": SECTION_LIMIT,
    "RECEIPTS": RECEIPTS_KEPT,
    "HISTORY_VALUE_LIMIT": KEPT_BYTES,
    "PAUSE_MAX_MS": 60_000,
}
"""What Lua and Python both have to know; strings and whole numbers are written alike in the two."""


@cache
def library_code() -> str:
    """Returns the source of the function library; on an executor its files are in an archive."""
    folder = resources.files(__package__).joinpath("functions")
    constants = "".join(f"local {name} = {value!r}\n" for name, value in CONSTANTS.items())
    parts = [folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in FILES]
    return "\n".join([f"#!lua name={LIBRARY_NAME}\n{constants}", *parts])
