"""Reads views and drawings back: what they say, and where texts and shapes are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

from coordinator.operating.ui.svg_charts import CHARACTER, LABEL_HEIGHT


@dataclass(frozen=True)
class Label:
    """A text with the place it takes, as wide as its font may make it."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: Label) -> bool:
        """Whether two labels share a place."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def element_of(drawing: str) -> ElementTree.Element:
    """The drawing as XML: it is well-formed."""
    return ElementTree.fromstring(drawing)


def labels_of(drawing: str) -> list[Label]:
    """Its labels."""
    found = []
    for text in element_of(drawing).iter("text"):
        said = text.text or ""
        width, x, y = CHARACTER * len(said), float(text.attrib["x"]), float(text.attrib["y"])
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.get("text-anchor", "start")]
        found.append(Label(said, left, left + width, y - LABEL_HEIGHT + 4, y))
    return found


def overlapping(drawing: str) -> list[tuple[str, str]]:
    """Labels that share a place."""
    return [(a.text, b.text) for a, b in combinations(labels_of(drawing), 2) if a.meets(b)]


def outside(drawing: str) -> list[str]:
    """Labels that leave the drawing."""
    _, _, width, height = map(float, element_of(drawing).attrib["viewBox"].split())
    return [
        label.text
        for label in labels_of(drawing)
        if label.left < -0.01 or label.right > width + 0.01 or label.top < -0.01 or label.bottom > height + 0.01
    ]


def told(view: Any) -> Iterator[str]:
    """A view as lines of text: its fields that are not empty, and of drawings the words in them."""
    for name, value in _said(view):
        yield from (f"{name}: {_short(each)}" for each in (value if isinstance(value, tuple) else [value]))


def _said(view: Any) -> Iterator[tuple[str, Any]]:
    found = ((field.name, getattr(view, field.name)) for field in fields(view))
    return ((name, value) for name, value in found if value not in ("", (), None, False))


def _short(value: Any) -> str:
    if is_dataclass(value):
        return ", ".join(f"{name} {_short(each)}" for name, each in _said(value))
    return " ".join(re.sub("<[^>]*>", " ", value).split()) if str(value).startswith("<svg") else str(value)
