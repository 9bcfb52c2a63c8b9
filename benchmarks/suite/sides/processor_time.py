"""Processor time between two moments, by the role of the process that used it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from benchmarks.process_tree import processor_seconds_by_role


def now() -> dict[str, float]:
    """Returns role -> processor seconds that this process and its living descendants have used so far."""
    return {role.value: seconds for role, seconds in processor_seconds_by_role(os.getpid()).items()}


def since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Returns role -> processor seconds between two moments; a role that did not exist before counts in full."""
    return {role: seconds - before.get(role, 0.0) for role, seconds in after.items()}
