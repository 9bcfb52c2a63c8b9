"""How many examples a property draws where it needs another number than its profile's."""

from __future__ import annotations

from hypothesis import settings

CHECK_EXAMPLES = 5
"""What a property draws in `make check`, which has a minute for everything."""


def examples(number: int) -> int:
    """Returns `number`, or in `make check` a tenth of it."""
    is_check = settings().max_examples == CHECK_EXAMPLES
    return max(number // 10, CHECK_EXAMPLES) if is_check else number
