"""What a scenario has to leave behind, computed apart: one thread, one transaction after the other.

It knows nothing of attempts, tasks' identities, groups, frames or write sets. What a stream carries in a
transaction is a bag of rows; state is a dict that is changed in place.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.scenarios.behaviours import Row, fate, mapped, neighbour, sums

if TYPE_CHECKING:
    from tests.support.scenarios.random_topologies import Input, Part, Scenario

Bag = Counter[Row]
EMPTY: dict[str, Any] = {
    **{name: {} for name in ("sums", "counts", "amounts", "running", "largest", "echo", "fleeting")},
    **{name: {} for name in ("scores", "ranked", "sent")},
    **{name: set() for name in ("members", "toggled")},
    **dict.fromkeys(("total", "last")),
    **{name: [] for name in ("log", "sizes")},
}


@dataclass
class Folded:
    """What came out.

    Attributes:
        states: by txid from 0 on, state name -> what it holds.
        tuple_count: tuples that bolts execute in all.
    """

    states: list[dict[str, Any]] = field(default_factory=list)
    tuple_count: int = 0


def fold(scenario: Scenario) -> Folded:
    """Folds the batches, txid by txid, component by component."""
    state = {
        f"{operation}{part.committer}": deepcopy(EMPTY[operation])
        for part in scenario.committers()
        for operation in EMPTY
    }
    folded = Folded([deepcopy(state)])
    for txid, batch in enumerate(scenario.batches, start=1):
        streams: dict[tuple[str, str], Bag] = {}
        for part in scenario.parts:
            if not part.inputs:
                _put_out(part, Counter(batch), streams)
                continue
            shares = _shares(part, streams)
            folded.tuple_count += sum(share.total() for share in shares)
            if part.committer is not None:
                _keep(part, shares, txid, state)
            emitted: Bag = Counter()
            for share in shares:
                emitted.update(_emitted(part, share, state))
            _put_out(part, emitted, streams)
        folded.states.append(deepcopy(state))
    return folded


def _shares(part: Part, streams: dict[tuple[str, str], Bag]) -> list[Bag]:
    """The bags that have to be looked at apart: by key, by task, or all in one where it makes no difference."""
    arrived: Bag = Counter()
    for heard in part.inputs:
        arrived.update(_routed(part, heard, streams[heard.source, heard.stream]))
    if part.mode == "all":
        return [arrived] * part.tasks
    if part.mode == "one":
        return [arrived] + [Counter[Row]() for _ in range(part.tasks - 1)]
    if part.mode == "keyed":
        keys = sorted({key for key, _ in arrived})
        return [Counter({row: count for row, count in arrived.items() if row[0] == key}) for key in keys]
    return [arrived]


def _routed(part: Part, heard: Input, bag: Bag) -> Bag:
    """How often each row arrives, over all tasks; in mode "all" at each task."""
    if heard.grouping == "drop_fives":
        return Counter({row: count for row, count in bag.items() if row[1] % 5})
    copies = 1
    if heard.grouping == "twice":
        copies = 2
    elif heard.grouping == "all" and part.mode != "all":
        copies = part.tasks
    return Counter({row: count * copies for row, count in bag.items()})


def _emitted(part: Part, share: Bag, state: dict[str, Any]) -> Bag:
    match part.behaviour:
        case "sum" | "partial_sum":
            return Counter(sums(share.elements()).items())
        case "size":
            return Counter([("a", share.total())])
        case "running":
            running = state[f"running{part.committer}"]
            return Counter((key, running[key]) for key in sums(share.elements()))
    return Counter(made for row in share.elements() for made in mapped(part.behaviour, row))


def _put_out(part: Part, emitted: Bag, streams: dict[tuple[str, str], Bag]) -> None:
    for place, stream in enumerate(part.outputs):
        streams[part.component_id, stream] = Counter(
            {row: n for row, n in emitted.items() if not part.splits or row[1] % len(part.outputs) == place}
        )


def _keep(part: Part, shares: list[Bag], txid: int, state: dict[str, Any]) -> None:
    before = deepcopy(state.get(f"sums{part.committer}", {}))
    rows = [row for share in shares for row in share.elements()]
    keyed = sums(shares[0].elements() if part.mode == "all" and shares else rows)
    for operation in part.operations:
        name = f"{operation}{part.committer}"
        match operation:
            case "total":
                state[name] = (state[name] or 0) + sum(value for _, value in rows)
            case "last":
                state[name] = txid
            case "log":
                state[name].append(txid)
            case "sizes":
                state[name].append(sum(value for _, value in rows))
            case "sent":
                state[name] |= {f"{txid}-0": dict(sorted(keyed.items()))} if keyed else {}
            case "members":
                state[name] |= {key for key, _ in rows}
            case "sums" | "counts" | "amounts" | "scores":
                weight = {"sums": 1, "counts": 0, "amounts": 0.5, "scores": 0.25}[operation]
                for key, value in rows:
                    state[name][key] = state[name].get(key, 0) + (value * weight if weight else 1)
            case _:
                writers = part.tasks if part.mode == "all" else 1
                for key, total in keyed.items():
                    _keep_keyed(operation, state[name], (key, total), before, writers)


def _keep_keyed(operation: str, held: Any, row: Row, before: dict[str, int], writers: int) -> None:
    """What the task with all of a key does to it; several such tasks write the same, but add up."""
    key, total = row
    match operation:
        case "running":
            held[key] = held.get(key, 0) + total + 1
        case "largest":
            held[key] = max(held.get(key, total), total)
        case "echo":
            held[key] = before.get(neighbour(key), -1)
        case "ranked":
            held[key] = float(total)
        case "toggled":
            held ^= {key}
        case "fleeting":
            match fate(total):
                case "delete":
                    held.pop(key, None)
                case "increment":
                    held[key] = held.get(key, 0) + total * writers
                case "put":
                    held[key] = total
