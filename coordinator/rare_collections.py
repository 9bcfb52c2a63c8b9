"""Python's cycle collector during a run, on the driver.

Every few hundred objects it walks the young ones, and now and then everything that is loaded. What a run makes, records
of what is in flight and what tasks report, forms no cycles, and there is much of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 20)
"""The thresholds of the collector during a run."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Lets the collector look less often while the block runs; the caller's thresholds are back afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
