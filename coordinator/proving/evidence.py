"""What quiet runs show of a topology's code: two of them differ, or one does what exactly once cannot bear."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.user_code import is_users
from coordinator.engines.waves.worker_traceback import PLACE
from coordinator.proving.mistakes import FoundMistake, Mistake
from coordinator.proving.quiet_run import QuietRun, QuietTransaction, quiet_run
from coordinator.proving.watch import CALENDAR, Sighting, Sightings, Watch
from coordinator.topology.building.topology import Topology
from state.errors import TransactionError, UserCodeError
from state.printable import one_line, said_by

CONTENT_MAX = 100_000
"""How much of a module's or a class's value is compared, in characters."""
PLAIN = (int, float, str, bytes, type(None), list, tuple, dict, set, frozenset, deque)
"""What is shown as text that tells its content."""


_RAISED = re.compile(r"^  File .*\n(?: .*\n)*(\S.*)", re.MULTILINE)
"""The first line of an exception, after the last place in a traceback."""


@dataclass(frozen=True, slots=True)
class WatchedRuns:
    """Two quiet runs, one after the other in one process; the first was watched.

    Attributes:
        second: the other, or the error that it raised.
        seen: what was seen in the first.
        kept: names in the user's modules and classes whose values the runs have changed, with their places.
    """

    first: QuietRun
    second: QuietRun | TransactionError
    seen: Sightings
    kept: Sequence[Sighting]


def watched_runs(topology: Topology, batches: int) -> WatchedRuns:
    """Runs a topology twice; called in a copy of the process.

    Raises:
        TransactionError: what a run would raise.
    """
    classes = {type(component.spec): component.component_id for component in topology.components}
    before, watch = _lasting(classes), Watch(classes)
    first = quiet_run(topology, batches, watch)
    try:
        second: QuietRun | TransactionError = quiet_run(topology, batches)
    except TransactionError as error:
        second = error
    return WatchedRuns(first, second, watch.seen, list(_changed(before, classes)))


def mistakes_in(runs: WatchedRuns, other: QuietRun, topology: Topology) -> Iterator[FoundMistake]:
    """Yields what is wrong with a topology even if nothing goes wrong; `other` ran in another process."""
    for seen in runs.seen.effects:
        yield FoundMistake(Mistake.EFFECT, seen.component_id, seen.place, seen.what)
    for seen in runs.seen.changed:
        yield FoundMistake(
            Mistake.CHANGES_EMITTED, seen.component_id, seen.place, "emitted here, and changed later", does_harm=False
        )
    if differing := first_difference(runs.first, other):
        yield _drawn(*differing, runs.seen.draws, topology)
    elif differing := first_difference(runs.first, runs.second):
        yield _kept(*differing, runs, topology)
    else:
        for seen in runs.seen.draws:
            if seen.what in CALENDAR and seen.component_id:  # what a spout's coordinator has cut is stored
                evidence = f"calls {seen.what}; two runs a moment apart did the same, at another time they may not"
                yield FoundMistake(Mistake.DRAWS, seen.component_id, seen.place, evidence, does_harm=False)
    yield from _foreign_reads(runs)


def place_of_class(component_id: str, topology: Topology) -> str:
    """Returns where the class of a component is defined, or the step that it stands for; "" if nobody knows."""
    if not component_id:
        return ""
    spec: object = topology.component(component_id).spec
    if isinstance(spec, MadeOfFunctions):
        return spec.made_at
    kind = type(spec)
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):
        return ""


def place_of_error(error: UserCodeError) -> str:
    """Returns the innermost line of the user's code in an error's traceback; "" if there is none."""
    places = [(found["file"], found["line"]) for found in PLACE.finditer(error.traceback_text)]
    return next((f"{file}:{line}" for file, line in reversed(places) if is_users(file)), "")


def sentence_of(error: TransactionError) -> str:
    """Returns an error in one line; of what user code raised, the line that names it."""
    if isinstance(error, UserCodeError) and (raised := _RAISED.findall(error.traceback_text)):
        return one_line(f"component {error.component_id!r} raised {raised[-1]}")
    return said_by(error)


def first_difference(one: QuietRun, other: QuietRun | TransactionError) -> tuple[str, str, str] | None:
    """Returns what differs first: who it is, its component, and what it did otherwise; None if nothing does."""
    if isinstance(other, TransactionError):
        return "it", other.component_id if isinstance(other, UserCodeError) else "", f"ends: {sentence_of(other)}"
    for txid, (left, right) in enumerate(zip(one.transactions, other.transactions, strict=False), start=1):
        for component_id, emitted in left.emitted.items():
            again = right.emitted[component_id]
            if emitted != again:
                pairs = zip([*emitted, "nothing"], [*again, "nothing"], strict=False)
                found = next(((a, b) for a, b in pairs if a != b), (len(emitted), len(again)))
                return (
                    f"txid {txid}",
                    component_id,
                    one_line(f"emits {_values(found[0])}, and then {_values(found[1])}"),
                )
        for (component_id, task), writes in left.writes.items():
            if writes != right.writes.get((component_id, task)):
                return f"txid {txid}", component_id, "changes its state otherwise"
    if len(one.transactions) != len(other.transactions):
        return "the spout", "", f"cuts {len(one.transactions)} transactions, and then {len(other.transactions)}"
    return None


def _values(emission: Any) -> str:
    return repr(emission[1]) if isinstance(emission, tuple) else str(emission)


def _drawn(who: str, component_id: str, how: str, draws: Sequence[Sighting], topology: Topology) -> FoundMistake:
    own = [seen for seen in draws if seen.component_id in (component_id, "")]
    evidence = f"run again, {who} {how}"
    if own:
        calls = ", ".join(dict.fromkeys(seen.what for seen in own))
        return FoundMistake(Mistake.DRAWS, component_id, own[0].place, f"{evidence}; it calls {calls}")
    return FoundMistake(Mistake.DRAWS, component_id, place_of_class(component_id, topology), evidence)


def _kept(who: str, component_id: str, how: str, runs: WatchedRuns, topology: Topology) -> FoundMistake:
    own = [seen for seen in runs.kept if seen.component_id == component_id] or list(runs.kept)
    evidence = f"run again in the same process, {who} {how}"
    if own:
        names = ", ".join(seen.what for seen in own)
        component_id = component_id or own[0].component_id
        return FoundMistake(Mistake.KEEPS, component_id, own[0].place, f"{evidence}; {names} has changed")
    raised_at = place_of_error(runs.second) if isinstance(runs.second, UserCodeError) else ""
    return FoundMistake(Mistake.KEEPS, component_id, raised_at or place_of_class(component_id, topology), evidence)


def _foreign_reads(runs: WatchedRuns) -> Iterator[FoundMistake]:
    for txid, transaction in enumerate(runs.first.transactions, start=1):
        for (component_id, task), (name, field), writer in _crossing(transaction):
            evidence = f"in txid {txid} task {task} reads {field!r} of state {name!r}, which task {writer} writes"
            yield FoundMistake(Mistake.FOREIGN_READ, component_id, runs.seen.reads.get((name, field), ""), evidence)
            return


def _crossing(transaction: QuietTransaction) -> Iterator[tuple[tuple[str, int], tuple[str, Any], int]]:
    """Yields reader, what it reads, and the other task of its component that writes it.

    What another component writes is meant to be read as it was before.
    """
    for reader, reads in transaction.reads.items():
        for name, field in sorted(reads, key=repr):
            for writer, writes in transaction.writes.items():
                changed = writes.get(name)
                if writer != reader and writer[0] == reader[0] and changed is not None:
                    fields = {*changed.puts, *changed.increments, *changed.deletes}
                    if field in fields:
                        yield reader, (name, field), writer[1]


def _lasting(classes: Mapping[type, str]) -> dict[tuple[Any, str], str]:
    """Returns what outlasts a run in the user's modules and classes: (module or class, name) -> content, as text."""
    modules = [module for module in list(sys.modules.values()) if is_users(getattr(module, "__file__", None) or "<>")]
    bases = {base for kind in classes for base in kind.__mro__ if sys.modules.get(base.__module__) in modules}
    return {
        (owner, name): _content_of(value)
        for owner in (*bases, *modules)
        for name, value in list(vars(owner).items())
        if not name.startswith("__") and isinstance(value, PLAIN)
    }


def _content_of(value: object) -> str:
    """Returns a value as text; one that cannot be shown is as any other of its type."""
    try:
        return repr(value)[:CONTENT_MAX]
    except Exception:  # noqa: BLE001 - it is code of whoever wrote the value's class
        return f"a {type(value).__name__} that cannot be shown"


def _changed(before: Mapping[tuple[Any, str], str], classes: Mapping[type, str]) -> Iterator[Sighting]:
    """Yields what has another content by now, at the line where it is set first, not where it is imported."""
    for (owner, name), content in _lasting(classes).items():
        if before.get((owner, name)) == content:
            continue
        found = _first_set(owner, name)
        if found:
            component_id = next((each for kind, each in classes.items() if owner in kind.__mro__), "")
            yield Sighting(f"{owner.__name__}.{name}", component_id, f"{inspect.getsourcefile(owner)}:{found}")


def _first_set(owner: Any, name: str) -> int:
    """Returns the line of a module or class in which a name is set first, alone or with others; 0 if none is found."""
    try:
        lines, first = inspect.getsourcelines(owner)
        whole = ast.parse(inspect.getsource(inspect.getmodule(owner) or owner))
    except (OSError, TypeError, SyntaxError):
        return 0
    names = (node for node in ast.walk(whole) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    places = (node.lineno for node in names if node.id == name)
    return min((place for place in places if first <= place < max(first, 1) + len(lines)), default=0)
