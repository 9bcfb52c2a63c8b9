"""The function library: the Lua files of `functions/`, joined in order of dependency.

A server stores the library's name and code, so a driver can see whether it has to load its own.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from state.commits.commit import COMMIT_OPERATIONS_LIMIT
from state.commits.packed_writes import SECTION_LIMIT
from state.records.transaction_history import KEPT_BYTES, RECEIPTS_KEPT
from state.values.state_kind import MAX_INTEGER

LIBRARY_NAME = "txbatch_10"
"""Changes whenever the functions' arguments change, so that drivers of two versions can use one server."""
STORED_FORMAT = "3"
"""The format of data stored in one slot, and of exports."""
SHARDED_FORMAT = "4"
"""The format of a topology over shards: a version without shards would run it without its states. Older ones have 3."""
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
"""Each file can use the definitions of the files before it."""
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
"""Constants that Lua and Python share; both write strings and whole numbers alike."""


@cache
def library_code() -> str:
    """Returns the source of the function library; also works on executors, where the files are in an archive."""
    folder = resources.files(__package__).joinpath("functions")
    constants = "".join(f"local {name} = {value!r}\n" for name, value in CONSTANTS.items())
    parts = [folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in FILES]
    return "\n".join([f"#!lua name={LIBRARY_NAME}\n{constants}", *parts])
