"""The troubleshooting page as a package carries it, and as a terminal shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.operating.inspection.explanations import (
    COPY,
    Explanation,
    entries_of,
    explanation_of,
    explanations,
    in_lines,
)
from state.errors import TopologyError
from state.troubles import PAGE, Trouble

ROOT = Path(__file__).resolve().parents[4]


def test_every_trouble_is_explained_by_a_copy_of_the_page_in_docs() -> None:
    assert [entry.trouble for entry in explanations()] == list(Trouble)
    assert all(entry.title.endswith(".") and entry.text for entry in explanations())
    assert COPY.read_bytes() == (ROOT / PAGE).read_bytes(), f"copy {PAGE} to {COPY.relative_to(ROOT)}"


def test_an_entry_has_a_chapter_a_title_and_a_text() -> None:
    page = "# Page\n\nIntroduction.\n\n## The server\n\n### torn\n\n**Half a\nwrite.** Restore a copy.\n\n* or this\n"
    assert list(entries_of(page)) == [
        Explanation(Trouble.TORN, "The server", "Half a write.", "Restore a copy.\n\n* or this")
    ]


def test_links_and_emphasis_become_words_and_lines_fit() -> None:
    text = "See **this** and [Values](operations.md#values), or [`torn`](#torn).\n\n* one point that is\n  long\n* two"
    assert in_lines(text, 24) == [
        "See this and Values",
        "(docs/operations.md#values),",
        "or `torn`.",
        "* one point that is long",
        "* two",
    ]


def test_no_markdown_is_left_in_what_a_terminal_shows() -> None:
    shown = "\n".join("\n".join([entry.title, *in_lines(entry.text, 80)]) for entry in explanations())
    assert "**" not in shown
    assert "](" not in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("word", ["fenced", " Fenced", "docs/troubleshooting.md#fenced"], ids=["name", "case", "link"])
def test_an_entry_is_found_by_its_name(word: str) -> None:
    assert explanation_of(word).trouble is Trouble.FENCED


@pytest.mark.parametrize(
    ("word", "offered"),
    [("fence", "fenced"), ("FencedError", "fenced"), ("parquet kafka", "input-gone"), ("torn write", "torn")],
)
def test_entries_that_may_be_meant_are_offered_with_their_titles(word: str, offered: str) -> None:
    with pytest.raises(TopologyError) as refused:
        explanation_of(word)
    first, *entries = str(refused.value).splitlines()
    assert first == (
        f"no entry {word!r}; give the name in the last line of an error, or one of these; `txbatch explain` lists all:"
    )
    assert 0 < len(entries) <= 5
    assert any(offered in entry.partition(":")[0] for entry in entries)


def test_a_name_like_none_leads_to_the_list() -> None:
    with pytest.raises(TopologyError, match=r"in the last line of an error; `txbatch explain` lists all$"):
        explanation_of("x" * 100)
