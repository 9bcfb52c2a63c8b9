"""Judges the user's code: whether its factory loads, builds a topology, and its components can be shipped. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.inspection.finding import Finding, from_error, ok
from state.errors import TransactionError
from state.printable import counted

STEPS = {
    "factory": "nothing can run without it",
    "pickling": "executors get the components pickled",
    "input": "a run asks its spout for this before it takes over",
}
"""Subject -> why it matters that it works."""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """How far the factory's topology got on its way to tasks.

    Attributes:
        target: as named on the command line.
        topology_id: of the topology it makes, "" if it makes none.
        component_count: number of components of that topology.
        failed_at: the step that failed, one of `STEPS`; "" if none did.
        error: what it raised.
        fingerprint: of the input; "" for a plain topology.
    """

    target: str
    topology_id: str = ""
    component_count: int = 0
    failed_at: str = ""
    error: TransactionError | None = None
    fingerprint: str = ""


def check_code(facts: CodeFacts) -> list[Finding]:
    """Returns one finding for each step, up to the first that failed."""
    made = f"{facts.target} makes topology {facts.topology_id!r} of {counted(facts.component_count, 'component')}"
    sound = {
        "factory": made,
        "pickling": "every component can be pickled",
        "input": f"the spout finds its input: {facts.fingerprint}" if facts.fingerprint else "a plain topology",
    }
    findings: list[Finding] = []
    for step, why in STEPS.items():
        if step == facts.failed_at and facts.error is not None:
            return [*findings, from_error(step, facts.error, why)]
        findings.append(ok(step, sound[step]))
    return findings
