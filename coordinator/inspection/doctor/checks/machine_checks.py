"""Judges this machine: folders that a run writes, and the Python it runs on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.inspection.finding import Finding, fail, ok, warn

FREE_FAIL_BYTES = 100 * 2**20
FREE_WARN_BYTES = 2**30
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """A folder, or where it would be made.

    Attributes:
        purpose: what it is for, as in "data directory".
        path: of the folder.
        setting: the option that names another one, as in "--data-dir".
        is_writable: whether this user may make files in it, or make it.
        free_bytes: on its disk.
        is_open: whether other users can read it.
    """

    purpose: str
    path: str
    setting: str
    is_writable: bool
    free_bytes: int
    is_open: bool = False


def check_folder(facts: FolderFacts) -> Finding:
    """Judges a folder that a run writes to."""
    where = f"{facts.purpose} {facts.path!r}"
    other = f"name another by {facts.setting}"
    if not facts.is_writable:
        return fail("disk", f"{where} cannot be written by this user", "a run ends at once", f"{other}, or allow it")
    found = f"{where} has {facts.free_bytes / 2**30:,.1f} GiB free"
    if facts.free_bytes < FREE_FAIL_BYTES:
        return fail(
            "disk", found, "a full disk ends a run, and a server then refuses writes", f"free space, or {other}"
        )
    if facts.free_bytes < FREE_WARN_BYTES:
        why = "it holds what a window of transactions sends between bolts, or the state's append-only file"
        return warn("disk", found, why, f"free space, or {other}")
    if facts.is_open:
        why = "it will hold the tuples of your topology"
        return warn("disk", f"{found}, and other users can open it", why, f"chmod 700 it, or {other}")
    return ok("disk", found)


def check_python(version: tuple[int, ...]) -> Finding:
    """Judges the Python of the driver."""
    shown = ".".join(map(str, version[:3]))
    known = f"{'.'.join(map(str, OLDEST_PYTHON))} to {'.'.join(map(str, NEWEST_PYTHON))}"
    if version[:2] < OLDEST_PYTHON:
        return fail("python", f"Python {shown} is too old", f"txbatch runs on {known}", "make a newer environment")
    if version[:2] > NEWEST_PYTHON:
        return warn("python", f"Python {shown} was not tried", f"txbatch was tried on {known}", "use one of those")
    return ok("python", f"Python {shown}")
