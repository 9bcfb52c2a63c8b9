"""The findings of an inspection: a sentence with its weight and, if something is wrong, why it matters. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from state.errors import TransactionError

LAST_ERROR = "last error: "
"""How the part of a message begins that quotes the error of the last try."""


class Weight(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    """A run works, but not as well as it could, or something could not be examined."""
    FAIL = "fail"
    """A run is refused or cannot be right, or stored data is damaged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        subject: the part that was examined, such as "eviction".
        found: what was found; a sentence without a full stop.
        why: why it matters; empty if all is well.
        remedy: what to do; empty if all is well.
    """

    weight: Weight
    subject: str
    found: str
    why: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Returns the finding as plain data for JSON; all values are text."""
        return {name: str(value) for name, value in asdict(self).items()}


def ok(subject: str, found: str) -> Finding:
    """Returns a finding that all is well."""
    return Finding(Weight.OK, subject, found)


def warn(subject: str, found: str, why: str, remedy: str) -> Finding:
    """Returns a finding that does not prevent a run."""
    return Finding(Weight.WARN, subject, found, why, remedy)


def fail(subject: str, found: str, why: str, remedy: str) -> Finding:
    """Returns a finding that has to be fixed before a run."""
    return Finding(Weight.FAIL, subject, found, why, remedy)


def from_error(subject: str, error: TransactionError, why: str) -> Finding:
    """Returns a finding for one of our errors, whose message says what happened and, after a semicolon, what to do."""
    found, _, remedy = str(error).partition("; ")
    if remedy.startswith(LAST_ERROR):
        cause, _, remedy = remedy.partition("; ")
        found = f"{found}; {cause}"
    return fail(subject, found, why, remedy or "see what it says")


def has_failed(findings: Iterable[Finding]) -> bool:
    """Returns whether any of the findings has to be fixed."""
    return any(finding.weight is Weight.FAIL for finding in findings)


def count_of(findings: Iterable[Finding], weight: Weight) -> int:
    """Returns how many findings have the given weight."""
    return sum(finding.weight is weight for finding in findings)
