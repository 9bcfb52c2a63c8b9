"""Topics of a test's own on the broker all tests share; a conftest imports the fixtures."""

from __future__ import annotations

from itertools import count

import pytest


@pytest.fixture(scope="session")
def topic_numbers():
    return count(1)


@pytest.fixture
def make_topic(broker, topic_numbers, request):
    """Makes a topic; its settings' names have underscores for dots."""

    def make(partitions=1, **configuration):
        name = f"{request.node.originalname[:80]}.{next(topic_numbers)}"
        return broker.create_topic(name, partitions, **configuration)

    return make
