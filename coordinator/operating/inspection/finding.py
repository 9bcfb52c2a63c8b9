"""What an inspection found: one sentence each, with its weight, and why it matters where something is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from state.errors import TransactionError

LAST_ERROR = "last error: "
"""Begins the part of a message that quotes the error of the last try."""


class Weight(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    """A run works, with less than it could have, or something could not be looked at."""
    FAIL = "fail"
    """A run is refused or cannot be right, or what is stored is damaged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: the part that was looked at, such as "eviction".
        found: what was found, a sentence without a full stop.
        why: why it matters; empty if all is well.
        remedy: what to do; empty if all is well.
    """

    weight: Weight
    subject: str
    found: str
    why: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON; all values are text."""
        return {name: str(value) for name, value in asdict(self).items()}


def ok(subject: str, found: str) -> Finding:
    """Returns a finding that all is well."""
    return Finding(Weight.OK, subject, found)


def warn(subject: str, found: str, why: str, remedy: str) -> Finding:
    """Returns a finding that a run survives."""
    return Finding(Weight.WARN, subject, found, why, remedy)


def fail(subject: str, found: str, why: str, remedy: str) -> Finding:
    """Returns a finding that has to be fixed before a run."""
    return Finding(Weight.FAIL, subject, found, why, remedy)


def from_error(subject: str, error: TransactionError, why: str) -> Finding:
    """Returns a finding for one of our errors, whose message says what happened, then after a semicolon what to do."""
    found, _, remedy = str(error).partition("; ")
    if remedy.startswith(LAST_ERROR):
        cause, _, remedy = remedy.partition("; ")
        found = f"{found}; {cause}"
    return fail(subject, found, why, remedy or "see what it says")


def has_failed(findings: Iterable[Finding]) -> bool:
    """Returns whether any of the findings has to be fixed."""
    return any(finding.weight is Weight.FAIL for finding in findings)


def count_of(findings: Iterable[Finding], weight: Weight) -> int:
    """Returns how many findings have that weight."""
    return sum(finding.weight is weight for finding in findings)
