"""What components note of their calls is of one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tasks.wirings import Calls


@pytest.fixture(autouse=True)
def _calls_of_one_test() -> Iterator[None]:
    Calls.take()
    yield
    Calls.take()
