"""A cluster in this process, and a machine that is never too busy to look at a folder."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from coordinator import LocalCluster
from coordinator.sources.files import reading_order


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(seed=3) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_look_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a look is long now and then; a run that is idle during the pause after it has not read all."""
    monkeypatch.setattr(reading_order, "LONG_LOOK_S", math.inf)
