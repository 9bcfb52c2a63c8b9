"""Docstrings, messages and pages are plain English: what makes a reader stop is counted, and may only become less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
MOST = 6
"""Phrases in all docstrings, messages and pages; lower it when there are fewer."""
STACKED = {
    "a clause on a pronoun": r"(?<!each )(?<!all )(?<!some )(?<!one )(?<!none )(?<!most )\bof (?:which|whom)\b",
    "a verb of telling": r"\b(?:un)?told\b|\btells? of\b",
    "a clause in place of a noun": r"\bwhat (?:is|was|are|were|has been|came|becomes|became|remains) (?:\w+ )?of\b",
    "a negated noun": r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|other|such|different|less|worse)\w+",
    "a clause in place of a subject": r"\b(?:whoever|whomever)\b",
    "a pronoun for a noun": r"\b(?:that|those) of (?:it|them|these|which|one)\b",
    "an old word": r"\banew\b|\bbesides?\b|\bgo(?:es)? on\b|\b(?:came|comes?) of\b|\b(?:is|are|was|were) over\b",
    "a quantity of nothing": r"\bso (?:many|long)\b(?! as)",
}
EXAMPLES = {
    "a clause on a pronoun": "a batch of which its task is given no tuple",
    "a verb of telling": "the spout is told at once",
    "a clause in place of a noun": "compares what was read of the file",
    "a negated noun": "what is no text is refused",
    "a clause in place of a subject": "given to whoever decides",
    "a pronoun for a noun": "the digest of the block and that of it",
    "an old word": "it goes on after a pause",
    "a quantity of nothing": "waits so long at most",
}


def texts() -> Iterator[tuple[str, str]]:
    """Yields a place and a text, of all that people read; texts in code have a space in them."""
    for module in (each for package in PACKAGES for each in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{module.relative_to(ROOT)}:{node.lineno}", node.value
    for page in (
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    ):
        yield str(page.relative_to(ROOT)), re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)


def found_in(text: str) -> list[str]:
    return [match[0] for pattern in STACKED.values() for match in re.finditer(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize("kind", STACKED)
def test_each_kind_of_phrase_is_found(kind: str) -> None:
    assert re.search(STACKED[kind], EXAMPLES[kind])


def test_phrases_that_make_a_reader_stop_do_not_come_back() -> None:
    found = [f"{place}: {phrase}" for place, text in texts() for phrase in found_in(text)]
    assert len(found) <= MOST, "\n".join(found)
