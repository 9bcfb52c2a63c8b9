"""How many examples a property draws where it needs another number than its profile's."""

from __future__ import annotations

from hypothesis import settings

CHECK_EXAMPLES, CHANGE_EXAMPLES = 5, 20
"""What a property draws in `make check`, which has a minute for everything, and in `make test`; nightly, 100."""
SHARES = {CHECK_EXAMPLES: 10, CHANGE_EXAMPLES: 3}


def examples(number: int) -> int:
    """Returns `number` in `make nightly`, in `make test` a third of it, and in `make check` a tenth."""
    return max(number // SHARES.get(settings().max_examples, 1), CHECK_EXAMPLES)
