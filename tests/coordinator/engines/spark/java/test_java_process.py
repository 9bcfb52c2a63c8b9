"""How a Java process ended is told in words, with what helps."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.engines.spark.java.java_watch import GatewayProcess

EXITS = """
import os, sys
code = int(sys.argv[1])
os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)
"""


def over(is_ours: bool, **process: Any) -> GatewayProcess:
    """A gateway's, over this process."""
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=None)))
    gateway: Any = SimpleNamespace(jvm=jvm, **process)
    return GatewayProcess(gateway, is_ours=is_ours)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-9, "it was killed by signal 9, as the kernel does when the machine's memory runs out"),
        (-15, "it was killed by signal 15 (SIGTERM)"),
        (52, "exit code 52, its memory ran out: raise spark.driver.memory, or cut smaller transactions"),
        (53, "exit code 53, it could make no folder: name a usable one by --conf spark.local.dir=DIR"),
        (1, "exit code 1"),
    ],
)
def test_the_end_of_a_process_is_told(code: int, told: str) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", EXITS, str(code)])
    assert over(True, proc=process).how_it_ended() == told


def test_a_process_of_somebody_else_is_known_by_its_connection_alone_and_never_ended() -> None:
    process = over(False)
    assert process.name() == "Spark's Java process"
    assert process.how_it_ended() == "its connection is broken"
    process.end()


@pytest.mark.parametrize("is_ours", [True, False])
def test_only_a_process_of_ours_is_ended(is_ours: bool) -> None:
    running = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        over(is_ours, proc=running).end()
        assert (running.poll() is not None) is is_ours
    finally:
        running.kill()
        running.wait()
        assert running.stdin is not None
        running.stdin.close()
