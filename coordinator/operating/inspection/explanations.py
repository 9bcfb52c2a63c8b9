"""The entries of docs/troubleshooting.md, one for each `Trouble`, for ``txbatch explain``.

An installed package has no docs folder, so this package holds a copy of the page. docs/troubleshooting.md is the
original; a test compares the two.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from state.errors import TopologyError
from state.printable import one_line
from state.troubles import Trouble

OFFERED_MAX, WORD_LIMIT = 5, 40
COPY = Path(__file__).with_name("troubleshooting.md")
_CHAPTER_OR_ENTRY = re.compile(r"^##(#?) ([^\n]+)\n+(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"\*\*(.+?)\*\*\s*", re.DOTALL)
_WORD = re.compile(r"[\w-]{4,}")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]*)(#[^)]+)?\)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """One entry of the page.

    Attributes:
        trouble: the anchor of the entry.
        chapter: the heading above it.
        title: its first sentence, which says what has happened.
        text: the rest, in Markdown: why, and what to do.
    """

    trouble: Trouble
    chapter: str
    title: str
    text: str


@cache
def explanations() -> tuple[Explanation, ...]:
    """Returns all entries in the order of the page; called by ``txbatch explain``."""
    return tuple(entries_of(COPY.read_text(encoding="utf-8")))


def explanation_of(word: str) -> Explanation:
    """Returns one entry; called by ``txbatch explain``, with the typed word.

    Raises:
        TopologyError: there is no such entry; the message names similar ones.
    """
    known = {str(entry.trouble): entry for entry in explanations()}
    found = known.get(word.strip().lower().rpartition("#")[2])
    if found is None:
        meant = "".join(f"\n  {name}: {known[name].title}" for name in _alike(word.lower(), known))
        raise TopologyError(
            f"no entry {one_line(word, WORD_LIMIT)!r}; give the name in the last line of an error"
            f"{', or one of these' if meant else ''}; `txbatch explain` lists all{':' if meant else ''}{meant}"
        )
    return found


def _alike(word: str, known: Mapping[str, Explanation]) -> list[str]:
    """Returns the names of entries that are spelled alike, and of entries that contain most of the words."""
    said = set(_WORD.findall(word))
    counts = {
        name: sum(each in f"{name} {entry.title} {entry.text}".lower() for each in said)
        for name, entry in known.items()
    }
    saying = sorted((name for name in known if counts[name]), key=lambda name: -counts[name])
    return list(dict.fromkeys([*get_close_matches(word, known, n=OFFERED_MAX, cutoff=0.5), *saying]))[:OFFERED_MAX]


def entries_of(page: str) -> Iterator[Explanation]:
    """Yields the entries of the page: chapters have headings of level two, entries of level three."""
    chapter = ""
    for deeper, heading, body in _CHAPTER_OR_ENTRY.findall(page):
        if not deeper:
            chapter = heading
            continue
        title = _TITLE.match(body)
        if title is None:
            raise ValueError(f"entry {heading!r} does not begin with a bold sentence")
        yield Explanation(Trouble(heading), chapter, _plain(title[1]), body[title.end() :].strip())


def in_lines(text: str, width: int) -> list[str]:
    """Returns Markdown as lines of plain text, for a terminal.

    A link becomes its words, followed by the page in brackets if it leads to another page.
    """
    lines: list[str] = []
    for paragraph in re.split(r"\n\n+|\n(?=\* )", _plain(text, spaces=False)):
        is_point = paragraph.startswith("* ")
        if lines and not is_point:
            lines.append("")
        lines += textwrap.wrap(
            " ".join(paragraph.split()),
            width,
            subsequent_indent="  " if is_point else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _plain(text: str, *, spaces: bool = True) -> str:
    def words(link: re.Match[str]) -> str:
        label, page, anchor = link[1], link[2], link[3] or ""
        return f"{label} (docs/{page}{anchor})" if page else label

    shown = _LINK.sub(words, text).replace("**", "")
    return " ".join(shown.split()) if spaces else shown
