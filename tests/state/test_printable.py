"""Text of unknown origin is one entry, without control characters, and not endless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.printable import BLOCK_LINES, LINE_LIMIT, block, message_of, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve 日本\u3000語", "naïve 日本\u3000語"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("one\ntxbatch: two", "one\\ntxbatch: two"),
        ("over\rwritten", "over\\rwritten"),
        ("\x9b31m", "\\x9b31m"),
        ("right\u202eleft", "right\\u202eleft"),
        ("file\udc80name", "file\\udc80name"),
    ],
)
def test_a_line_writes_nothing_but_itself(text, shown):
    assert one_line(text) == shown


def test_a_long_line_is_cut_and_says_by_how_much():
    assert one_line("x" * 1_500) == "x" * 1_000 + "… (500 more)"


def test_a_block_keeps_its_lines_and_its_end():
    text = "\n".join(["Traceback (most recent call last):", *map(str, range(500)), "ValueError: \x1b[2J\tno"])
    lines = block(text).split("\n")
    assert len(lines) == BLOCK_LINES + 1
    assert lines[0] == "Traceback (most recent call last):"
    assert "… 422 lines left out …" in lines
    assert lines[-1] == "ValueError: \\x1b[2J\tno"


def test_the_kind_of_an_error_with_an_endless_message_is_kept():
    assert block("  File\nValueError: " + "x" * 10_000_000).split("\n")[1].startswith("ValueError: xxx")


@given(st.text())
def test_whatever_is_shown_is_printable_and_bounded(text):
    line = one_line(text)
    assert all(c.isprintable() or c.isspace() for c in line)
    assert not set("\n\r\x1b\x07\x08") & set(line)
    assert len(line) <= 10 * LINE_LIMIT + 30
    assert not set("\r\x1b\x07\x08") & set(block(text))


def test_an_error_whose_message_raises_is_named_nevertheless():
    class BrokenError(Exception):
        def __str__(self):
            raise KeyError("no")

    assert message_of(BrokenError()) == "<its message raised KeyError>"
