"""Scenarios: random topologies, their input, and what happens to them. Plain data, drawn from one `Random`.

Everything a scenario's bolts do is independent of arrival order, and of placement where the grouping does
not fix it, so that `reference_fold` can say what has to come out. A component's *mode* tells what is known
of placement:

* ``any``: nothing. It works tuple by tuple, or makes partial sums.
* ``keyed``: equal keys meet on one task.
* ``one``: everything is on the first task, the others have empty batches.
* ``all``: every task has everything.

Partial sums are not known tuple by tuple, only their sums by key are; a stream of them is not *exact*, and
what hears it may only do what sums allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from tests.support.scenarios.reference_fold import fold

KEYS = "abcde"
STREAMS = ("default", "side", "named")
"""``named`` is direct."""
FREE_GROUPINGS = ("shuffle", "none", "local", "fields", "partial", "all", "global", "by_key", "twice")
MAX_TUPLES = 400
SPOUT = "spout"

OPERATIONS = {
    "any": ("sums", "total", "amounts", "scores", "members", "last", "log"),
    "keyed": ("running", "largest", "echo", "fleeting", "toggled", "ranked"),
}


@dataclass(frozen=True)
class Input:
    """One subscription."""

    source: str
    stream: str
    grouping: str


@dataclass(frozen=True)
class Part:
    """One component.

    Attributes:
        behaviour: what it emits for what it hears, see `behaviours`.
        emits: ``execute``, ``finish`` or ``all``: when and how.
        outputs: its streams.
        splits: whether a tuple goes to one stream by its value, or to each.
        direct_to: the subscriber of its direct stream.
        committer: which of the committer classes, None for any other bolt.
        operations: what it does to state.
        takes_batches: whether it executes batches.
        sends_batches: whether it emits batches, where its stream is not direct.
    """

    component_id: str
    tasks: int
    inputs: tuple[Input, ...] = ()
    mode: str = "any"
    behaviour: str = "pass"
    emits: str = "execute"
    outputs: tuple[str, ...] = ()
    splits: bool = False
    direct_to: tuple[str, ...] = ()
    committer: int | None = None
    operations: tuple[str, ...] = ()
    takes_batches: bool = False
    sends_batches: bool = False


@dataclass(frozen=True)
class Trip:
    """A FailedException: the first `times` attempts to come by raise it."""

    component_id: str
    task_index: int
    txid: int
    phase: str
    times: int


@dataclass(frozen=True)
class Scenario:
    """A topology, its input and its fate.

    Attributes:
        parts: the spout, then the bolts in flow order.
        batches: the rows of each transaction.
        partitions: of a partitioned spout; 0 for one that is not.
        interruptions: (tick, ``abandon`` or ``timeout``), ascending.
    """

    parts: tuple[Part, ...]
    batches: tuple[tuple[tuple[str, int], ...], ...]
    partitions: int = 0
    ackers: int = 1
    window: int = 1
    group: int = 1
    operations_max: int = 75_000
    capacity: int = 8
    seed: int = 0
    trips: tuple[Trip, ...] = ()
    fault_budget: int = 0
    interruptions: tuple[tuple[int, str], ...] = ()

    def committers(self) -> list[Part]:
        """The components that keep state."""
        return [part for part in self.parts if part.committer is not None]


def random_scenario(random: Random, *, with_faults: bool = True) -> Scenario:
    """Draws a scenario.

    Args:
        random: of Hypothesis, which reduces what fails, or seeded.
        with_faults: whether frames are disturbed and runs interrupted, which only the local cluster can do.
    """
    parts = _random_parts(random)
    transactions = random.randint(1, 6)
    scenario = Scenario(
        parts=parts,
        batches=tuple(_random_batch(random) for _ in range(transactions)),
        partitions=random.choice([0, 0, random.randint(1, 4)]),
        ackers=random.randint(1, 3),
        window=random.randint(1, 6),
        group=random.randint(1, 4),
        operations_max=random.choice([75_000, 75_000, random.randint(1, 12)]),
        capacity=random.randint(1, 8),
        seed=random.randint(0, 2**32),
        trips=tuple(_random_trip(random, parts, transactions) for _ in range(random.choice([0, 0, 1, 2, 4]))),
        fault_budget=random.choice([0, 0, 1, 2, 4]) if with_faults else 0,
        interruptions=_random_interruptions(random) if with_faults else (),
    )
    while fold(scenario).tuple_count > MAX_TUPLES:
        scenario = replace(scenario, batches=tuple(batch[: len(batch) // 2] for batch in scenario.batches))
    return scenario


def with_batches(scenario: Scenario, random: Random) -> Scenario:
    """The same scenario, but some of its components execute batches, emit batches, or do both."""

    def changed(part: Part) -> Part:
        return replace(part, takes_batches=random.random() < 0.6, sends_batches=random.random() < 0.6)

    return replace(scenario, parts=tuple(map(changed, scenario.parts)))


def _random_batch(random: Random) -> tuple[tuple[str, int], ...]:
    return tuple((random.choice(KEYS), random.randint(-3, 9)) for _ in range(random.choice([0, 1, 2, 3, 6])))


def _random_interruptions(random: Random) -> tuple[tuple[int, str], ...]:
    ticks = sorted({random.randint(0, 200) for _ in range(random.choice([0, 0, 1, 3]))})
    return tuple((tick, random.choice(["abandon", "timeout"])) for tick in ticks)


def _random_trip(random: Random, parts: tuple[Part, ...], transactions: int) -> Trip:
    part = random.choice(parts)
    phases = ["emit"] if part.component_id == SPOUT else ["prepare", "execute", "finish", "finished", "cleanup"]
    return Trip(
        part.component_id,
        random.randrange(part.tasks),
        random.randint(1, transactions),
        random.choice(phases),
        random.randint(1, 2),
    )


def _random_parts(random: Random) -> tuple[Part, ...]:
    outputs = _random_outputs(random, at_least=1)
    parts = [Part(SPOUT, random.randint(1, 3), outputs=outputs, splits=random.random() < 0.3)]
    exact = {SPOUT: True}
    committer_count = 0
    number_of_bolts = random.randint(1, 7)
    for number in range(number_of_bolts):
        commits = committer_count < 4 and (number == number_of_bolts - 1 or random.random() < 0.4)
        part = _random_bolt(random, f"b{number}", parts, exact, committer_count if commits else None)
        committer_count += commits
        parts.append(part)
    heard = [(i.source, part.component_id) for part in parts for i in part.inputs if i.stream == "named"]
    return tuple(replace(p, direct_to=tuple(who for source, who in heard if source == p.component_id)) for p in parts)


def _random_bolt(
    random: Random, component_id: str, parts: list[Part], exact: dict[str, bool], committer: int | None
) -> Part:
    ways = [(part.component_id, stream) for part in parts for stream in part.outputs]
    count = min(len(ways), random.choice([1, 1, 2, 2, 3]))
    recent = ways[-4:]
    chosen = sorted({random.choice(random.choice([ways, recent])) for _ in range(count)})
    is_exact = all(exact[source] for source, _ in chosen)
    mode, tasks, inputs = _random_inputs(random, chosen, exact)
    behaviours = ["pass", "silent"]
    if is_exact:
        behaviours += ["filter", "multiply", "rekey"]
    if mode == "any":
        behaviours += ["partial_sum"]
    else:
        behaviours += ["sum", "sum"]
    if mode == "one" and is_exact:
        behaviours += ["size"]
    operations: tuple[str, ...] = ()
    if committer is not None:
        operations = _random_operations(random, mode, is_exact=is_exact)
        if "running" in operations:
            behaviours += ["running", "running"]
    behaviour = random.choice(behaviours)
    exact[component_id] = behaviour != "partial_sum" and (is_exact or behaviour in ("sum", "running"))
    outputs = _random_outputs(random, at_least=0)
    return Part(
        component_id,
        tasks,
        inputs,
        mode,
        behaviour,
        random.choice(["execute", "finish", "all"]),
        outputs,
        splits=exact[component_id] and random.random() < 0.3,
        committer=committer,
        operations=operations,
    )


def _random_inputs(
    random: Random, ways: list[tuple[str, str]], exact: dict[str, bool]
) -> tuple[str, int, tuple[Input, ...]]:
    is_direct = any(stream == "named" for _, stream in ways)
    mode = random.choice(["any", "keyed", "one"] if is_direct else ["any", "keyed", "one", "all"])
    tasks = random.randint(1, 3)
    if mode == "one" and is_direct:
        tasks = 1
    by_name = not is_direct and random.random() < 0.7

    def grouping(source: str, stream: str) -> str:
        if stream == "named":
            return "direct"
        if mode == "all":
            return "all"
        if mode == "keyed":
            return "fields" if by_name else "by_key"
        if mode == "one" and tasks > 1:
            return "global"
        return random.choice(FREE_GROUPINGS + (("drop_fives",) if exact[source] else ()))

    return mode, tasks, tuple(Input(source, stream, grouping(source, stream)) for source, stream in ways)


def _random_operations(random: Random, mode: str, *, is_exact: bool) -> tuple[str, ...]:
    possible = list(OPERATIONS["any"])
    if is_exact:
        possible.append("counts")
    if mode != "any":
        possible += OPERATIONS["keyed"]
    if mode == "one":
        possible.append("sizes")
    chosen = set(_some(random, possible, random.randint(1, 4)))
    if "echo" in chosen:
        chosen.add("sums")
    if "sizes" in chosen:
        chosen.add("sent")
    return tuple(sorted(chosen))


def _random_outputs(random: Random, *, at_least: int) -> tuple[str, ...]:
    return tuple(sorted(_some(random, STREAMS, random.choice([at_least, 1, 1, 2, 3]))))


def _some(random: Random, of: Iterable[str], count: int) -> list[str]:
    left = list(of)
    return [left.pop(random.randrange(len(left))) for _ in range(min(count, len(left)))]
