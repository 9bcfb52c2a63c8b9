"""Writes down what a simulated server does, call by call, as a program that lets the model's rules do the same.

Each call that the server executes is kept with its arguments, its answer and what the server holds afterwards, in the
model's terms: whatever the rules take for opaque becomes a number. The program sets the call, lets the rules execute
it, and asserts answer and state; docs/model/trace.pml is its other part. Calls of runs are compared with what the rules
of a run allow. What happens to the server otherwise, such as a loss, is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from coordinator.testing.simulated.process import Caller
from state.keys import Keys, parse_metadata_field
from tests.simulation.sim_server import SimServer
from tests.simulation.workload import TOPOLOGY_ID
from tests.support.scenarios.transfers import PARTITIONS

MODEL = Path(__file__).parents[2] / "docs" / "model"
KINDS = {
    "acquire": "ACQUIRE",
    "metadata": "METADATA",
    "commit": "COMMIT",
    "barrier": "BARRIER",
    "confirm": "CONFIRM",
    "last_group": "LAST_GROUP",
    "drop_begin": "DROP_BEGIN",
    "drop_keys": "DROP_KEYS",
    "drop_end": "DROP_END",
}
NOT_MODELLED = ("VERSION", "TYPE", "LIMIT")
"""Answers that depend on what the model has not: a format, the types of keys, the sizes of numbers."""
STEPS_MAX = 400
"""Of one program."""
OWN_SCOPES = ("note.", "replayed")
"""Scopes of the metadata log itself, for which run.pml has no rules."""
_KEYS = Keys(TOPOLOGY_ID)
Fields = dict[str, int]
"""Field of `Server` or `Call` in the model -> what it holds; absent means 0."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that the server has executed.

    Attributes:
        caller: who has sent it, or "late" or "repeated".
        is_of_run: whether a run has sent it that has only heard from this server.
        call: its fields, and `kind`.
        status: of the answer.
        before, after: what the server held.
    """

    caller: str
    is_of_run: bool
    call: Mapping[str, int | str]
    status: str
    before: Fields
    after: Fields


@dataclass(frozen=True, slots=True)
class Answered:
    """A run has received the answer to its last call."""

    caller: str
    status: str


@dataclass(slots=True)
class Trace:
    """What a server has done, in the model's terms.

    Attributes:
        steps: in order.
        last_txid: the highest that was seen.
        scopes: of metadata, in the order in which they were seen.
        unanswered: whose last call was executed and not answered yet.
        elsewhere: who has heard from a former server.
    """

    steps: list[Executed | Answered] = field(default_factory=list)
    last_txid: int = 1
    scopes: dict[str, int] = field(default_factory=lambda: {f"unused {i}": i for i in range(PARTITIONS + 1)})
    unanswered: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    _numbers: dict[str, dict[Any, int]] = field(default_factory=dict)

    def number(self, kind: str, value: Any) -> int:
        """Returns the number that stands for a value; 0 for an empty one."""
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(value, len(numbers) + 1) if value else 0

    def cell(self, name: bytes | str) -> str:
        """Returns the index of a metadata field."""
        scope, txid = parse_metadata_field(name if isinstance(name, str) else name.decode())
        self.last_txid = max(self.last_txid, txid)
        return f"CELL({self.scopes.setdefault(scope, len(self.scopes))}, {txid})"

    def spout_scopes(self) -> list[int]:
        """Returns the scopes of which run.pml has rules."""
        return [number for scope, number in self.scopes.items() if not scope.startswith((*OWN_SCOPES, "unused"))]

    def fence(self, text: str) -> tuple[int, int, int]:
        """Returns counter, revision and token of a fence."""
        counter, revision, token = text.split(":") if text else ("0", "0", "")
        return int(counter), int(revision), self.number("nonce", token)

    def held(self, hash_of: Callable[[str], Mapping[bytes, bytes]]) -> Fields:
        """Returns what the server holds."""
        control = {name.decode(): value.decode() for name, value in hash_of(_KEYS.control).items()}
        fields: Fields = {}
        if "generation" in control:
            fields["fence"], fields["since"], fields["nonce"] = self.fence(control["fence"])
            fields["generation"] = self.number("generation", control["generation"])
            first = int(control["generation"][:8], 16)
            fields |= {name: int(control[name]) - first for name in ("begun", "ended")}
            fields |= {name: int(control[name]) for name in ("revision", "committed")}
            fields |= {name: int(control[name]) + 1 for name in ("told", "dropping") if name in control}
            fields["last_call"] = self.number("digest", control["last_call"])
            fields["source"] = self.number("source", control["source_fingerprint"])
            fields["topology"] = self.number("topology", control["topology"])
        for name, value in hash_of(_KEYS.metadata).items():
            fields[f"metadata[{self.cell(name)}]"] = self.number("metadata", value)
        for txid, receipt in hash_of(_KEYS.receipts).items():
            self.last_txid = max(self.last_txid, int(txid))
            attempt, _, first_txid, _ = receipt.decode().split()
            fields[f"receipt[{int(txid)}]"] = self.number("attempt", attempt)
            fields[f"group[{int(txid)}]"] = int(first_txid)
        for txid, record in hash_of(_KEYS.quarantine).items():
            self.last_txid = max(self.last_txid, int(txid))
            fields[f"aside[{int(txid)}]"] = self.number("record", record)
        for name, value in hash_of(_KEYS.state("seen")).items():
            fields[f"seen[{int(name[1:])}]"] = int(value)
        return {name: value for name, value in fields.items() if value}

    def call(
        self, function: str, keys: Sequence[str], argv: Sequence[Any], status: str, before: Fields
    ) -> dict[str, int | str]:
        """Returns the fields of a call."""
        texts = [item if isinstance(item, str) else item.decode("utf-8", "replace") for item in argv]
        fields: dict[str, int | str] = {"kind": KINDS[function]}
        fields["fence"], fields["since"], fields["owner"] = self.fence(texts[0])
        if function == "acquire":
            names = ("generation", "topology", "source", "accepted_topology", "accepted_source")
            fields["nonce"] = self.number("nonce", texts[1])
            fields |= {
                name: self.number(name.removeprefix("accepted_"), text)
                for name, text in zip(names, texts[2:7], strict=True)  # and no fence of shards, of which there are none
            }
        elif function == "drop_begin":
            fields["nonce"] = self.number("nonce", texts[1])
        elif function.startswith("drop_"):
            fields["number"] = int(texts[1])
        else:
            fields["generation"], fields["revision"] = self.number("generation", texts[1]), int(texts[2])
            if len(texts) > 3:  # a call that writes
                fields["digest"] = self.number("digest", texts[3])
                fields["source"] = self.number("source", texts[5])
                fields["topology"] = self.number("topology", texts[6])
            if function == "metadata":
                fields |= self._changes(list(argv[7:]))
            elif function == "commit":
                fields |= self._commit(keys, argv, texts, status, before)
        return {name: value for name, value in fields.items() if value}

    def _changes(self, rest: list[Any]) -> Fields:
        """Takes puts and deletes of metadata from the front of a list of arguments."""
        count = int(rest.pop(0))
        pairs = [(rest.pop(0), rest.pop(0)) for _ in range(count)]
        found = {f"change[{self.cell(name)}]": self.number("metadata", _bytes(value)) for name, value in pairs}
        names = [rest.pop(0) for _ in range(int(rest.pop(0)))]
        return found | {f"change[{self.cell(name)}]": -1 for name in names}

    def _commit(
        self, keys: Sequence[str], argv: Sequence[Any], texts: Sequence[str], status: str, before: Fields
    ) -> Fields:
        first, count = int(texts[9]), int(texts[10])
        last = first + count - 1
        self.last_txid = max(self.last_txid, last)
        fields: Fields = {"told": int(texts[7]) + 1 if texts[7] else 0, "first": first, "last": last}
        attempts = enumerate(texts[11 : 11 + count], start=first)
        fields |= {f"attempt[{txid}]": self.number("attempt", attempt) for txid, attempt in attempts}
        rest = list(argv[11 + count :])
        fields |= self._changes(rest)
        if _KEYS.state("seen") in keys:
            fields |= _rows(rest, str(keys.index(_KEYS.state("seen")) + 1), before)
        if _KEYS.quarantine in keys:
            fields |= self._quarantine(rest)
        fields["is_refused"] = int(status in NOT_MODELLED)
        return fields

    def _quarantine(self, rest: Sequence[Any]) -> Fields:
        """Returns what the last section of a commit does to the quarantined batches."""
        if rest[-5] == "admit":
            return {"aside_limit": int(rest[-3]) + 1, "record": self.number("record", _bytes(rest[-1]))}
        return {"taken": int(rest[-1])}


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _rows(rest: Sequence[Any], index: str, before: Fields) -> Fields:
    """Returns what the sections of a commit add to the rows counted of each partition, whether they say so or put."""
    found: Fields = {}
    for at in range(len(rest) - 4):
        if list(rest[at : at + 3]) != [index, "hash", "int"]:
            continue
        if rest[at + 3] == "increment":
            names, width, deltas = _bytes(rest[at + 7]).split(b"\n"), int(rest[at + 8]), _bytes(rest[at + 9])
            for place, name in enumerate(names):
                delta = int.from_bytes(deltas[place * width : (place + 1) * width], "big", signed=True)
                found[f"rows[{int(name[1:])}]"] = delta
        elif rest[at + 3] == "put":
            pairs = rest[at + 5 : at + 5 + 2 * int(rest[at + 4])]
            for name, value in zip(pairs[::2], pairs[1::2], strict=True):
                partition = int(_bytes(name)[1:])
                found[f"rows[{partition}]"] = int(value) - before.get(f"seen[{partition}]", 0)
    return found


def _status(status: str, before: Fields) -> str:
    """Returns what the model answers where the library answers `status`."""
    if status in NOT_MODELLED:
        return "REFUSED"
    is_remembered = status == "DROPPED" and "dropping" not in before
    return "REGRESSED" if is_remembered else status  # only messages depend on which


class EnoughError(Exception):
    """The trace is as long as it was to become; ends the simulation."""


@contextmanager
def traced(most: int = STEPS_MAX) -> Iterator[Trace]:
    """Yields what any simulated server does within the block; `simulate` ends after so many steps."""
    trace, apply, call = Trace(), SimServer._apply, SimServer.call

    def executed(server: SimServer, caller: str, arguments: tuple[Any, ...]) -> Any:
        function = str(arguments[1]).partition("_")[2].partition("_")[2] if arguments[0].startswith("FCALL") else ""
        if function not in KINDS:
            return apply(server, caller, arguments)
        if len(trace.steps) >= most:
            raise EnoughError
        before = trace.held(server.inner.hash)
        reply = apply(server, caller, arguments)
        status, after = reply[0].decode(), trace.held(server.inner.hash)
        keys = [str(key) for key in arguments[3 : 3 + int(arguments[2])]]
        argv = arguments[3 + len(keys) :]
        is_known = status not in NOT_MODELLED or (function == "commit" and status != "VERSION")
        is_of_remains = function in ("drop_keys", "drop_end") and not argv[0]
        if is_known and not is_of_remains:
            given = trace.call(function, keys, argv, status, before)
            is_of_run = caller.startswith("driver") and caller not in trace.elsewhere
            trace.steps.append(Executed(caller, is_of_run, given, _status(status, before), before, after))
            trace.unanswered.add(caller)
        return reply

    def answered(server: SimServer, caller: Caller, arguments: tuple[Any, ...], place: int | None = None) -> Any:
        reply = call(server, caller, arguments, place)
        if arguments[0] == "FCALL" and str(arguments[1]).endswith(("_acquire", "_metadata", "_commit", "_barrier")):
            is_here, is_write = caller.name in trace.unanswered, not str(arguments[1]).endswith("_acquire")
            if is_here and is_write:
                trace.steps.append(Answered(caller.name, reply[0].decode()))
            elif not is_here:
                trace.elsewhere.add(caller.name)
            trace.unanswered.discard(caller.name)
        return reply

    with mock.patch.object(SimServer, "_apply", executed), mock.patch.object(SimServer, "call", answered):
        yield trace


# As a program ------------------------------------------------------------------------------------------------------


HEAD = """#define PARTITIONS {partitions}
#define SCOPES {scopes}
#define TXIDS {txids}
#define RUNS {runs}
#include "{model}/trace.pml"

init {{
"""


def program(trace: Trace) -> str:
    """Returns the program that lets the model do what the trace says, its first steps if there are many."""
    drivers: dict[str, int] = {}
    lines: list[str] = [f"is_spout_scope[{scope}] = true;" for scope in trace.spout_scopes()]
    held: Fields = {}
    given: Mapping[str, int | str] = {}
    for number, step in enumerate(islice(trace.steps, STEPS_MAX)):
        if isinstance(step, Answered):
            if step.status in ("OK", "ALREADY") and step.caller in drivers:
                lines.append(f"go!2,{drivers[step.caller]}; is_done?_;")
            continue
        if step.before != held:
            lines += [f"{where}.{each}" for where in ("server", "expected") for each in _set(held, step.before)]
        lines.append(f'printf("step {number}: {step.call["kind"]} of {step.caller} -> {step.status}\\n");')
        lines += [f"call.{each}" for each in _set(given, step.call)]
        lines += [f"expected.{each}" for each in _set(step.before, step.after)]
        who = drivers.setdefault(step.caller, len(drivers)) if step.is_of_run else 0
        lines += [f"go!{int(step.is_of_run)},{who}; is_done?_;", f"assert(reply == {step.status});"]
        lines.append("compare_now!0; is_compared?_;")
        held, given = step.after, step.call
    head = HEAD.format(
        partitions=PARTITIONS, scopes=len(trace.scopes), txids=trace.last_txid, model=MODEL, runs=max(1, len(drivers))
    )
    return head + "".join(f"  {line}\n" for line in lines) + '  printf("all steps agree\\n")\n}\n'


def _set(old: Mapping[str, int | str], new: Mapping[str, int | str]) -> Iterable[str]:
    """Yields assignments that make the old fields the new ones."""
    for name in {**old, **new}:
        if old.get(name, 0) != new.get(name, 0):
            yield f"{name} = {new.get(name, 0)};"
