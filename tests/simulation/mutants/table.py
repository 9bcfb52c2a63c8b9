"""The table of mutants, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.simulation.mutants.catalogue import THEMES
from tests.simulation.mutants.hunt import Hunt
from tests.simulation.mutants.mutant import Mutant

TITLE = "# Planted bugs, and what finds them"
FOUND_SHOWN = 45
"""Most characters of a violation that the table shows."""

OPENING = """
[Reliability](../../../docs/reliability.md#planted-bugs) says what planted bugs are for.
`python -m tests.simulation.mutants` hunts them and makes this table; with `--results` it keeps what earlier rounds have
found, so a figure is that of the simulation as it was in its round. A seed counts only if it passes without the bug.

Of {total} mutants the simulation finds {found}, half of them within {median} seeds. It spares {spared}, each for the
reason given; the test in italics finds it. {together} are bugs planted together (a + b), because one check hides the
absence of another; each is also planted alone.
"""

COLUMNS = "| Mutant | What was written | Seeds | How it shows, or why it is spared |\n|---|---|---:|---|"


def markdown(hunts: Mapping[str, Hunt]) -> str:
    """Returns the table of the hunts that have ended."""
    found = sorted(hunt.played for hunt in hunts.values() if hunt.seed is not None)
    mutants = [mutant for theme in THEMES.values() for mutant in theme if mutant.name in hunts]
    opening = OPENING.format(
        total=len(mutants),
        found=len(found),
        median=found[(len(found) - 1) // 2] if found else 0,
        spared=sum(hunts[mutant.name].seed is None for mutant in mutants),
        together=sum(bool(mutant.parts) for mutant in mutants),
    )
    return "\n".join([TITLE, opening, *_themes(hunts)])


def _themes(hunts: Mapping[str, Hunt]) -> Iterator[str]:
    for theme, mutants in THEMES.items():
        rows = [_row(mutant, hunts[mutant.name]) for mutant in mutants if mutant.name in hunts]
        if rows:
            yield "\n".join([f"## {theme}\n", COLUMNS, *rows, ""])


def _row(mutant: Mutant, hunt: Hunt) -> str:
    what = " + ".join(mutant.parts) or mutant.mistake
    if hunt.seed is not None:
        return _cells(f"**{mutant.name}**", what, str(hunt.played), _shortened(hunt.found))
    how = mutant.spared or "**alive**"
    if hunt.failed_test:
        how += f": *{hunt.failed_test}*"
    return _cells(f"**{mutant.name}**", what, f"none in {hunt.played}" if hunt.played else "not played", how)


def _shortened(text: str) -> str:
    """How a run ended, without what its error said; of anything else the beginning."""
    if text.startswith("a run ended by "):
        return text.removeprefix("a run ended by ").partition(":")[0].removesuffix(" without cause")
    return text if len(text) <= FOUND_SHOWN else f"{text[:FOUND_SHOWN].rstrip()} …"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
