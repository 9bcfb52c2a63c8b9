"""The coordinator of several sources: cuts a part of each one that is ready, and compares each with earlier runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from itertools import chain
from typing import Any

from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import FailedException, SourceError
from state.troubles import Trouble

Parts = dict[str, tuple[int, Any]]
"""Source -> (txid that its last part was cut for, that part); sources without a part are missing."""


def cut_for(metadata: Parts, number: int) -> list[tuple[str, Any]]:
    """Returns source and part of everything that a transaction reads, in the order of the sources."""
    return [(name, part) for name, (own_number, part) in metadata.items() if own_number == number]


def newest(metadata: Parts) -> list[tuple[str, Any]]:
    """Returns source and part of everything that a transaction reads; its txid is the highest in its metadata."""
    return cut_for(metadata, max(number for number, _ in metadata.values()))


def close_all(made: Iterable[Any]) -> None:
    """Closes all objects, even if one raises."""
    with ExitStack() as opened:
        for each in made:
            opened.callback(each.close)


class InputsCoordinator(SpoutCoordinator):
    """Cuts a part of each source that is ready.

    Args:
        coordinators: source -> its coordinator.
        fingerprints: source -> its fingerprint.
        first: the sources that are read to their ends before the others begin.
    """

    def __init__(
        self,
        coordinators: Mapping[str, SpoutCoordinator],
        fingerprints: Mapping[str, str],
        first: Collection[str] = (),
    ) -> None:
        self._coordinators, self._fingerprints = coordinators, fingerprints
        self._leading = set(first)  # first sources that have not ended yet
        self._cut: tuple[int, Parts] = 0, {}  # the parts cut so far, in case another source raises
        self._noted: Mapping[str, Any] = {}
        self._notes: dict[str, dict[str, Any]] = {name: {} for name in coordinators}

    def compare(self, former: FormerInput) -> InputChange | None:
        known = fingerprints_in(former.fingerprint)
        if known is None:
            single = "the topology has read a single source before, whose positions mean nothing to several"
            return InputChange(impossible=(single,))
        gone = [name for name in known if name not in self._coordinators]
        first = former.last_txid - len(former.pending) + 1
        waiting = [cut_for(metadata, number) for number, metadata in enumerate(former.pending, start=first)]
        lost = sorted({name for parts in waiting for name, _ in parts if name in gone})
        changes = [
            InputChange(
                changed=tuple(f"input {name!r} is not read any more" for name in gone),
                impossible=tuple(
                    f"input {name!r} is gone, and a batch that was cut from it is not committed" for name in lost
                ),
            )
        ]
        for name, coordinator in self._coordinators.items():
            number, part = (former.last or {}).get(name, (0, None))
            if name not in known and not number:
                read = [other for other, line in known.items() if line == self._fingerprints[name]]
                sentences = (f"input {name!r} is what was read as {other!r}" for other in read)
                changes.append(InputChange(again=tuple(sentences)))
                continue
            is_same = known.get(name) == self._fingerprints[name]
            pending = tuple(part for parts in waiting for own, part in parts if own == name)
            own = FormerInput(
                last_txid=number,
                last=part,
                committed_txid=min(number, former.committed_txid),
                notes=_own_notes(former, name),
                fingerprint=known.get(name, ""),
                is_same=is_same,
                pending=pending,
            )
            change = coordinator.compare(own) if number else InputChange()
            if change is not None:
                changes.append(_named(name, change))
            elif not is_same:
                return None
        return _joined(changes)

    def is_empty(self) -> bool:
        return all(each.is_empty() for each in self._informed().values())

    def resume(self) -> None:
        if not isinstance(self.run_so_far.last, dict | None):
            raise SourceError(
                f"stored metadata {self.run_so_far.last!r:.100} is not of several inputs: the topology has read a "
                "single source before; drop it, or take another topology id"
            ).about(Trouble.OTHER_SOURCE)
        for coordinator in self._informed().values():
            coordinator.resume()

    def is_ready(self) -> bool:
        return any(each.is_ready() for each in self._due().values())

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self._cut[0] != txid:
            self._cut = txid, {}
        before: Parts = previous or {}
        parts: Parts = {}
        due = self._due()
        for name, coordinator in self._coordinators.items():
            last = before.get(name)
            if name in due and name not in self._cut[1] and coordinator.is_ready():
                part = coordinator.initialize_transaction(txid, None if last is None else last[1])
                self._cut[1][name] = txid, part
            if (found := self._cut[1].get(name, last)) is not None:
                parts[name] = found
        if not self._cut[1]:
            raise FailedException(f"no input has anything for txid {txid} after all")
        return {**parts, **{name: part for name, part in before.items() if name not in self._coordinators}}

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        return {
            f"{name}:{note}": value
            for name, coordinator, part in self._read_by(metadata)
            for note, value in coordinator.notes(part).items()
        }

    def position(self, metadata: Any) -> Any:
        return {name: coordinator.position(part) for name, coordinator, part in self._read_by(metadata)}

    def is_exhausted(self) -> bool:
        return all(each.is_exhausted() for each in self._informed().values())

    def is_finite(self) -> bool:
        return all(each.is_finite() for each in self._coordinators.values())

    def progress(self) -> float | None:
        """Returns the lowest progress of all sources, since a transaction takes a part of each; None if unknown."""
        found = [each.progress() for each in self._informed().values()]
        known = [each for each in found if each is not None]
        return min(known) if len(known) == len(found) else None

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(coordinator.estimated_bytes(part) for _, coordinator, part in self._read_by(metadata))

    def deactivate(self) -> None:
        for each in self._informed().values():
            each.deactivate()

    def activate(self) -> None:
        for each in self._informed().values():
            each.activate()

    def close(self) -> None:
        close_all(self._coordinators.values())

    def _read_by(self, metadata: Parts) -> list[tuple[str, SpoutCoordinator, Any]]:
        """Returns name, coordinator and part of each source that a transaction reads and that is still an input."""
        own = self._coordinators
        return [(name, own[name], part) for name, part in newest(metadata) if name in own]

    def _informed(self) -> Mapping[str, SpoutCoordinator]:
        """Returns the coordinators, each with the `run_so_far` of its source."""
        so_far = self.run_so_far
        if so_far.notes is not self._noted:  # split only once: earlier runs may have left many
            self._noted = so_far.notes
            self._notes = {name: _own_notes(so_far, name) for name in self._coordinators}
        for name, coordinator in self._coordinators.items():
            number, part = (so_far.last or {}).get(name, (0, None))
            committed = min(number, so_far.committed_txid)
            coordinator.run_so_far = RunSoFar(number, part, committed, notes=self._notes[name])
        return self._coordinators

    def _due(self) -> Mapping[str, SpoutCoordinator]:
        """Returns the coordinators that may cut now: only those of first sources, until these have ended."""
        informed = self._informed()
        leading = {name: informed[name] for name in self._leading}
        self._leading = {name for name, each in leading.items() if each.is_ready() or not each.is_exhausted()}
        return {name: each for name, each in informed.items() if name in self._leading} or informed


def _own_notes(so_far: RunSoFar, name: str) -> dict[str, Any]:
    """Returns the notes of one source, under the source's own names for them."""
    start = f"{name}:"
    return {note.removeprefix(start): value for note, value in so_far.notes.items() if note.startswith(start)}


def fingerprints_in(fingerprint: str) -> dict[str, str] | None:
    """Returns source -> its fingerprint; None if this is not the fingerprint of several inputs."""
    with suppress(ValueError):
        found = json.loads(fingerprint)
        if isinstance(found, dict):
            return found
    return None


def _joined(changes: Sequence[InputChange]) -> InputChange:
    """Returns the changes of all sources as one."""
    joined: dict[str, Any] = {}
    for each in fields(InputChange):
        found = [getattr(change, each.name) for change in changes]
        joined[each.name] = _merged(found) if isinstance(found[0], Mapping) else tuple(chain.from_iterable(found))
    return InputChange(**joined)


def _named(name: str, change: InputChange) -> InputChange:
    """Returns the changes of one source, with its name in front of sentences and notes."""

    def named(found: Any) -> Any:
        if isinstance(found, Mapping):
            return {f"{name}:{note}": value for note, value in found.items()}
        return tuple(f"input {name!r}: {sentence}" for sentence in found)

    return InputChange(**{each.name: named(getattr(change, each.name)) for each in fields(InputChange)})


def _merged(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for each in mappings for name, value in each.items()}
