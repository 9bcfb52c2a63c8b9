"""A master that is not there is told in a sentence, at once."""

from __future__ import annotations

import socket

import pytest

from coordinator.engines.spark.session import check_reachable
from state.errors import EngineError


@pytest.fixture
def port() -> int:
    """A port nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_dead_master_is_named_with_every_address(port: int) -> None:
    master = f"spark://127.0.0.1:{port},127.0.0.1:{port}"
    with pytest.raises(EngineError) as caught:
        check_reachable(master)

    refused = f"127.0.0.1:{port}: Connection refused"
    assert str(caught.value) == (
        f"Spark master {master!r} cannot be reached: {refused}; {refused}; start it, or check --master"
    )


def test_one_master_that_listens_is_enough(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        check_reachable(f"spark://127.0.0.1:{port},127.0.0.1:{listening.getsockname()[1]}")


@pytest.mark.parametrize(
    "master", ["local[*]", "yarn", "k8s://https://host:443", "spark://host", "spark://:x", "nonsense"]
)
def test_what_is_no_address_is_left_to_spark(master: str) -> None:
    check_reachable(master)
