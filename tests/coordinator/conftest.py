"""A cluster in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator import LocalCluster


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(seed=3) as made:
        yield made
