"""What is told of a failure in one line."""

from __future__ import annotations

import pytest

from coordinator.watching.failure_cause import gist


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("one\ntwo", "one"),
        ("count[0]: Traceback (most recent call last):\n  File x\nValueError: bad\n", "count[0]: ValueError: bad"),
        ("\x1b[2J", r"\x1b[2J"),
        (
            "task 0 raised:\nTraceback (most recent call last):\n  File x\nValueError: a\nb",
            "task 0 raised: ValueError: a",
        ),
        (f"at tuple {'x' * 200} raised:\n  File y\nKeyError: 'k'", f"at tuple {'x' * 141}… (67 more) KeyError: 'k'"),
    ],
)
def test_a_gist_is_the_line_that_tells_the_cause(text: str, said: str) -> None:
    assert gist(text) == said
