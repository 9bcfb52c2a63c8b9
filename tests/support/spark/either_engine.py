"""The mark of tests that run once on Spark and once without; workers import it with the test, so it imports little."""

from __future__ import annotations

import pytest

EITHER_ENGINE = pytest.mark.parametrize("cluster", ["spark", "local"], indirect=True)
"""Of tests whose topologies leave the same state on Spark and without it."""
