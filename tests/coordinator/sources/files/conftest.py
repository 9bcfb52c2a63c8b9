"""No test hates what another one did."""

from __future__ import annotations

import pytest

from tests.support.sources.growing_folder import Keep


@pytest.fixture(autouse=True)
def _nothing_is_hated() -> None:
    Keep.hated = ""
