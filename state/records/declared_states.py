"""The states that a topology's stored description declares, and the keys below its hash tag that it therefore owns.

Drop, import, export, verify and list all use this one list: the keys of txbatch's records, and of the states that the
description declares now or records as declared before. Any other key belongs to somebody who wants it in the same
cluster slot, such as the stream that the topology reads. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.keys import Keys, split_member
from state.kinds.state_family import PartType, part_of_text
from state.values.state_kind import FieldType, StateKind, ValueType, field_type_of

HASH = "hash"
_WHOLE = ""
"""Stands in for the type of parts, for a state with one key."""


@dataclass(frozen=True, slots=True)
class DescribedState:
    """A state, as declared in a stored description.

    Attributes:
        keep: the retention, such as "highest 100"; empty if everything is kept.
        part_type: the type of its parts; None if it has one key.
        expires: whether the keys of its parts expire.
        fields_expire: whether its fields may expire.
        began_txid: the first transaction that wrote it under this declaration.
        is_mixed: whether it may hold older data, written under a former declaration or by something else.
    """

    name: str
    kind: StateKind
    value_type: ValueType
    field_type: FieldType
    scale: int = 0
    keep: str = ""
    part_type: PartType | None = None
    expires: bool = False
    fields_expire: bool = False
    began_txid: int = field(default=1, compare=False)
    is_mixed: bool = field(default=False, compare=False)

    @property
    def is_lasting(self) -> bool:
        """Whether its content does not depend on the time of reading."""
        return not self.expires and not self.fields_expire


def declared_states_of(description: str) -> dict[str, DescribedState]:
    """Returns state name -> its declaration in the last run.

    Raises:
        ValueError: the description cannot be read.
    """
    try:
        described = json.loads(description)
        began = described.get("began", {})
        return {
            str(name): DescribedState(
                str(name),
                StateKind(each["kind"]),
                ValueType(each["value"]),
                field_type_of(each["field"]),
                int(each.get("scale", 0)),
                str(each.get("keep", "")),
                PartType(each["parts"]) if "parts" in each else None,
                bool(each.get("expires", False)),
                bool(each.get("fields_expire", False)),
                *began.get(name, ()),
            )
            for name, each in described["states"].items()
        }
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the description has no {error}") from error


def shard_count_of(description: str) -> int:
    """Returns how many shards hold a topology's state; 1 if its description has no number or is unreadable."""
    with suppress(ValueError, TypeError, AttributeError):
        return int(json.loads(description).get("shards", 1))
    return 1


def with_shards(description: str, shard_count: int) -> str:
    """Returns a description of the same topology with another number of shards."""
    described = json.loads(description)
    described.pop("shards", None)
    if shard_count > 1:
        described["shards"] = shard_count
    return json.dumps(described, sort_keys=True, ensure_ascii=False)


def with_renamed(description: str, old: str, new: str) -> str:
    """Returns a description of the same topology whose state `old` is called `new`."""
    described = json.loads(description)
    for part in ("states", "began"):
        if old in described.get(part, {}):
            described[part][new] = described[part].pop(old)
    return json.dumps(described, sort_keys=True, ensure_ascii=False)


def with_whole(description: str, name: str) -> str:
    """Returns a description of the same topology, one of whose states holds what every transaction wrote."""
    described = json.loads(description)
    if described.get("began", {}).pop(name, None) is not None and not described["began"]:
        del described["began"]
    return json.dumps(described, sort_keys=True, ensure_ascii=False)


def with_former(given: str, stored: str) -> str:
    """Returns a description that also lists the kinds of keys that states of the stored one may have left.

    An unreadable stored description adds nothing.
    """
    described, kept = json.loads(given), OwnedKeys.of(stored).forms
    now = OwnedKeys.of(given).forms
    former = {name: sorted(forms - now.get(name, set())) for name, forms in sorted(kept.items())}
    described["former"] = {name: forms for name, forms in former.items() if forms}
    return given if not described["former"] else json.dumps(described, sort_keys=True, ensure_ascii=False)


def with_beginnings(given: str, stored: str, next_txid: int, existing: Iterable[str]) -> str:
    """Returns a description that also records since when each state has its declaration, unless it always had it.

    Args:
        given: the description of a run that begins.
        stored: the description of the last run, "" if there was none; states declared differently there begin now.
        next_txid: the first transaction that the run may commit.
        existing: states that exist although the stored description does not declare them.
    """
    before: Mapping[str, DescribedState] = OwnedKeys.of(stored).states
    began: dict[str, tuple[int, bool]] = {}
    for name, state in declared_states_of(given).items():
        former = before.get(name)
        is_mixed = name in existing or (former is not None and next_txid > 1)
        if former == state:
            began[name] = (former.began_txid, former.is_mixed)
        elif next_txid > 1 or is_mixed:
            began[name] = (next_txid, is_mixed)
    noted = {name: list(each) for name, each in began.items() if each != (1, False)}
    return json.dumps({**json.loads(given), "began": noted}, sort_keys=True, ensure_ascii=False) if noted else given


def without_former(description: str) -> str:
    """Inverse of `with_former`: the description for a server that does not have the former keys."""
    described = json.loads(description)
    if described.pop("former", None) is None:
        return description
    return json.dumps(described, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class OwnedKeys:
    """The keys that belong to a topology.

    Attributes:
        states: the declared states.
        forms: name of each state declared now or before -> the types of its parts; "" if it has, or had, one key.
    """

    states: Mapping[str, DescribedState]
    forms: Mapping[str, set[str]]

    @classmethod
    def of(cls, description: str, also: Iterable[str] = ()) -> Self:
        """Returns the keys that follow from a description; only txbatch's records if it is unreadable.

        States named by `also` count as the topology's too, with any parts.
        """
        forms: dict[str, set[str]] = {name: {_WHOLE, *PartType} for name in also}
        states: dict[str, DescribedState] = {}
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            described = json.loads(description)
            declared = {name: [each.get("parts", _WHOLE)] for name, each in described["states"].items()}
            for name, found in chain(declared.items(), described.get("former", {}).items()):
                forms.setdefault(name, set()).update(found)
            states = declared_states_of(description)
        return cls(states, forms)

    def state_of(self, keys: Keys, key: str) -> DescribedState | None:
        """Returns the declared state to which a key belongs, whole or as a part; None if it belongs to none."""
        name, part = split_member(keys.state_name(key))
        state = self.states.get(name)
        return state if state and _is_of_form(part, state.part_type or _WHOLE) else None

    def has(self, keys: Keys, key: str) -> bool:
        name, part = split_member(keys.state_name(key))
        return keys.is_record(key) or any(_is_of_form(part, form) for form in self.forms.get(name, ()))

    def whole(self) -> list[str]:
        """Returns the names of the states with one key."""
        return [name for name, forms in self.forms.items() if _WHOLE in forms]


def record_types(keys: Keys) -> dict[str, str]:
    """Returns key -> Redis type, of txbatch's records.

    A new kind of record is added here; its content needs its own check, called by `txbatch verify`.
    """
    if keys.is_shard:
        lists = dict.fromkeys((keys.decisions, keys.copies), StateKind.LIST.value)
        return {keys.control: HASH, keys.staged: HASH, **lists, keys.pause: StateKind.VALUE.value}
    hashes = (keys.control, keys.metadata, keys.receipts, keys.history, keys.offsets, keys.quarantine, keys.pulse)
    return dict.fromkeys((*hashes, keys.stories), HASH) | {keys.state(DEAD_LETTERS_STATE): StateKind.SORTED_SET.value}


def _is_of_form(part: str | None, form: str) -> bool:
    if part is None or form == _WHOLE:
        return part is None and form == _WHOLE
    try:
        part_of_text(part, PartType(form))
    except ValueError:
        return False
    return True
