"""The table of mutants, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.simulation.mutants.hunt import Hunt


def markdown(hunts: Mapping[str, Hunt]) -> str:
    return ""
