"""The table of mutants, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.simulation.mutants.catalogue import THEMES
from tests.simulation.mutants.hunt import Hunt
from tests.simulation.mutants.mutant import Mutant

TITLE = "# Planted bugs, and what finds them"
FOUND_SHOWN = 110
"""Most characters of a violation that the table shows."""

OPENING = """
A test that cannot fail proves nothing. So we plant bugs in the production code, one at a time, and look whether the
simulation finds them: it plays seed after seed until an invariant does not hold. A seed counts only if it passes
without the bug. `python -m tests.simulation.mutants` hunts them and makes this table; with `--results` it keeps what
earlier rounds have found, so a figure is that of the simulation as it was in its round.

{total} mutants: the simulation finds {found} of them, half of those within {median} seeds. It spares {spared}, each for
the reason given, and found by the test that is named. {together} are bugs planted together: where one check hides the
absence of another, both are taken out at once, and each is also taken out alone.
"""

COLUMNS = "| Mutant | What was written | Seeds until found | How it shows |\n|---|---|---:|---|"


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
    what = mutant.mistake
    if mutant.parts:
        what += f" ({' + '.join(mutant.parts)})"
    if hunt.seed is not None:
        return _cells(f"**{mutant.name}**", what, str(hunt.played), _shortened(hunt.found))
    how = f"Spared: {mutant.spared}." if mutant.spared else "**Alive.**"
    if hunt.failed_test:
        how += f" Found by: *{hunt.failed_test.removeprefix('test_').replace('_', ' ')}*."
    return _cells(f"**{mutant.name}**", what, f"none in {hunt.played}" if hunt.played else "not played", how)


def _shortened(text: str) -> str:
    return text if len(text) <= FOUND_SHOWN else f"{text[:FOUND_SHOWN].rstrip()} …"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
