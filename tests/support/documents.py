"""What tests read in documents: fenced blocks, and headings as the anchors that GitHub makes of them."""

from __future__ import annotations

import re
from pathlib import Path

FENCED = re.compile(r"```.*?```", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """A heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    """Every anchor of a document; a heading that is repeated gets a number."""
    names = [anchor(heading) for heading in HEADING.findall(FENCED.sub("", document.read_text(encoding="utf-8")))]
    earlier = [names[:position].count(name) for position, name in enumerate(names)]
    return {f"{name}-{count}" if count else name for name, count in zip(names, earlier, strict=True)}
