"""Topics of a test's own on the broker all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def make_topic(broker, request):
    """Makes a topic; its settings' names have underscores for dots."""
    made = iter(range(100))

    def make(partitions=1, **configuration):
        name = f"{request.node.originalname[:80]}.{next(made)}"
        return broker.create_topic(name, partitions, **configuration)

    return make
