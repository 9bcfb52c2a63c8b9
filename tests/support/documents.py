"""What tests read in documents: fenced blocks, and headings as the anchors that GitHub makes of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:^\*Not run by the tests: ([^*]+)\*\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"```.*?```", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block with a language.

    Attributes:
        text: what is in it.
        reason: why no test runs it, as the document says right above; empty if one does.
    """

    text: str
    reason: str


def blocks(document: Path, language: str) -> list[Block]:
    """The blocks of a document in one language, in order."""
    found = BLOCK.findall(document.read_text(encoding="utf-8"))
    return [Block(text, reason) for reason, each, text in found if each == language]


def python_of(document: str) -> list[str]:
    """The blocks of Python that tests run, of a document below the checkout."""
    return [block.text for block in blocks(ROOT / document, "python") if not block.reason]


def executed(document: str, number: int, given: dict[str, Any]) -> dict[str, Any]:
    """Runs one block of a document, counted from 0, with the names that the text around it explains."""
    exec(compile(python_of(document)[number], f"{document}, block {number}", "exec"), given)
    return given


def anchor(heading: str) -> str:
    """A heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    """Every anchor of a document; a heading that is repeated gets a number."""
    names = [anchor(heading) for heading in HEADING.findall(FENCED.sub("", document.read_text(encoding="utf-8")))]
    earlier = [names[:position].count(name) for position, name in enumerate(names)]
    return {f"{name}-{count}" if count else name for name, count in zip(names, earlier, strict=True)}
