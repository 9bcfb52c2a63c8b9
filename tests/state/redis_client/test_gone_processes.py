"""Whether the process that has told its id is gone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from state.redis_client.presence import is_gone, pid_space

HERE = pid_space()
needs_linux = pytest.mark.skipif(not HERE, reason="only Linux names the boot and the namespace of process ids")


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended and was waited for."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


@needs_linux
def test_a_process_that_has_ended_is_gone(ended: int) -> None:
    assert is_gone(ended, HERE)


@needs_linux
def test_a_process_that_has_ended_is_gone_even_before_its_parent_has_asked() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""], stdout=subprocess.PIPE)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(process.pid, HERE)
    process.communicate()


@needs_linux
def test_this_process_and_one_of_another_user_are_there() -> None:
    assert not is_gone(os.getpid(), HERE)
    assert not is_gone(1, HERE)


@pytest.mark.parametrize("space", ["", "another-boot pid:[1]"], ids=["not told", "of another boot or container"])
def test_of_a_process_elsewhere_nothing_is_concluded(ended: int, space: str) -> None:
    assert not is_gone(ended, space)


@pytest.mark.parametrize("pid", [0, -1, 1 << 80, "12"], ids=["zero", "negative", "too large", "text"])
def test_an_id_that_is_none_is_not_gone(pid: int) -> None:
    assert not is_gone(pid, HERE)
