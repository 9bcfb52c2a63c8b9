"""What components note of their calls is of one test; a conftest imports the fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.tasks.wirings import Calls


@pytest.fixture(autouse=True)
def calls_of_one_test() -> Iterator[None]:
    Calls.take()
    yield
    Calls.take()
