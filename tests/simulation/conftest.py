"""What simulations switch off is switched on again after each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    logger, disabled = logging.getLogger("txbatch"), logging.root.manager.disable
    level = logger.level
    yield
    logger.setLevel(level)
    logging.disable(disabled)
