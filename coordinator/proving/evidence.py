"""The mistakes that quiet runs show in a topology's code: two runs differ, or one does what exactly-once forbids."""

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
from coordinator.proving.watch import CALENDAR_CALLS, Sighting, Sightings, Watch
from coordinator.topology.building.topology import Topology
from state.errors import TransactionError, UserCodeError
from state.printable import message_of, one_line

CONTENT_MAX = 100_000
"""How many characters of a value in a module or class are compared."""
PLAIN = (int, float, str, bytes, type(None), list, tuple, dict, set, frozenset, deque)
"""Types of values that are compared by their text, which shows their whole content."""


_RAISED = re.compile(r"^  File .*\n(?: .*\n)*(\S.*)", re.MULTILINE)
"""The first line of an exception, after the last place in a traceback."""


@dataclass(frozen=True, slots=True)
class WatchedRuns:
    """Two quiet runs, one after the other in one process; the first was watched.

    Attributes:
        second: the second run, or the error that it raised.
        seen: what was seen in the first run.
        kept: names in the user's modules and classes whose values the runs have changed, with file and line.
    """

    first: QuietRun
    second: QuietRun | TransactionError
    seen: Sightings
    kept: Sequence[Sighting]


def watched_runs(topology: Topology, batches: int) -> WatchedRuns:
    """Runs a topology twice; called in a copy of the process.

    Raises:
        TransactionError: the first run fails.
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
    """Yields the mistakes that show without any fault; `other` ran in another process."""
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
            if seen.what in CALENDAR_CALLS and seen.component_id:  # a spout's coordinator may draw: its cuts are stored
                evidence = f"calls {seen.what}; two runs a moment apart did the same, at another time they may not"
                yield FoundMistake(Mistake.DRAWS, seen.component_id, seen.place, evidence, does_harm=False)
    yield from _foreign_reads(runs)


def place_of_class(component_id: str, topology: Topology) -> str:
    """Returns the file and line of a component's class, or of the step that made it; "" if they are not known."""
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
    """Returns an error in one line; for an error of user code, the line that names the exception."""
    if isinstance(error, UserCodeError) and (raised := _RAISED.findall(error.traceback_text)):
        return one_line(f"component {error.component_id!r} raised {raised[-1]}")
    return message_of(error)


def first_difference(one: QuietRun, other: QuietRun | TransactionError) -> tuple[str, str, str] | None:
    """Returns the first difference as (subject, component id, predicate of a sentence); None if there is none."""
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
    """Yields reader, the field it reads, and the other task of its component that writes that field.

    A field that another component writes may be read: its value before the transaction is meant.
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
    """Returns the values that outlast a run in the user's modules and classes: (owner, name) -> content as text."""
    modules = [module for module in list(sys.modules.values()) if is_users(getattr(module, "__file__", None) or "<>")]
    bases = {base for kind in classes for base in kind.__mro__ if sys.modules.get(base.__module__) in modules}
    return {
        (owner, name): _content_of(value)
        for owner in (*bases, *modules)
        for name, value in list(vars(owner).items())
        if not name.startswith("__") and isinstance(value, PLAIN)
    }


def _content_of(value: object) -> str:
    """Returns a value as text; values whose `repr` fails have the same text if they have the same type."""
    try:
        return repr(value)[:CONTENT_MAX]
    except Exception:  # noqa: BLE001 - `repr` may be user code
        return f"a {type(value).__name__} that cannot be shown"


def _changed(before: Mapping[tuple[Any, str], str], classes: Mapping[type, str]) -> Iterator[Sighting]:
    """Yields the names whose content has changed, at the line where each is set first, not where it is imported."""
    for (owner, name), content in _lasting(classes).items():
        if before.get((owner, name)) == content:
            continue
        found = _first_set(owner, name)
        if found:
            component_id = next((each for kind, each in classes.items() if owner in kind.__mro__), "")
            yield Sighting(f"{owner.__name__}.{name}", component_id, f"{inspect.getsourcefile(owner)}:{found}")


def _first_set(owner: Any, name: str) -> int:
    """Returns the line where a module or class sets a name first, alone or with others; 0 if none is found."""
    try:
        lines, first = inspect.getsourcelines(owner)
        whole = ast.parse(inspect.getsource(inspect.getmodule(owner) or owner))
    except (OSError, TypeError, SyntaxError):
        return 0
    names = (node for node in ast.walk(whole) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    places = (node.lineno for node in names if node.id == name)
    return min((place for place in places if first <= place < max(first, 1) + len(lines)), default=0)
