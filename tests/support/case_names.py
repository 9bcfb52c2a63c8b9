"""Names of test cases by their values, the same in every process that collects them."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def shown(value: Any) -> str:
    """Shows a value without where it is in memory, and sets in order; used as ``ids=shown``."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__} of {', '.join(sorted(map(shown, value)))}"
    if type(value) is list:
        return f"[{', '.join(map(shown, value))}]"
    return _ADDRESS.sub("", repr(value))
