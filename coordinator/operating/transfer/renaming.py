"""Renames a state of a topology: its keys, all its parts and its record change in one step (driver)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace

from coordinator.operating.transfer.exporting import described_states, export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from state.errors import StateRefusedError, TopologyError
from state.keys import RESERVED_NAME, check_name
from state.records.declared_states import shard_count_of, with_renamed
from state.records.stored_records import OWN_KINDS
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.importing import AsOf, StateImport


def rename_state(records: RedisRecords, target: StateImport, old: str, new: str, *, generation: str) -> int:
    """Renames a state by exporting and importing the whole topology; returns the committed txid.

    No run may own the topology meanwhile: if a run has written to it, or taken it over, nothing is changed.

    Raises:
        TopologyError: there is no such state, or the new name is taken or invalid.
        StateRefusedError: the state cannot be renamed as it is stored, or was written meanwhile.
    """
    control = records.records().control
    _check(records, control, old, check_name("state name", new))
    with tempfile.TemporaryFile() as spool:
        committed, _ = export_state(records, spool)
        spool.seek(0)
        export = checked_export(spool)
        spool.seek(0)
        described = with_renamed(export.control["topology"], old, new)

        def renamed(name: str) -> str:
            state, colon, part = name.partition(":")
            return f"{new}{colon}{part}" if state == old and name not in OWN_KINDS else name

        import_state(
            target,
            replace(export, control={**export.control, "topology": described}),
            spool,
            generation=generation,
            replaces=True,
            renamed=renamed,
            as_of=AsOf.of(control),
        )
    return committed


def _check(records: RedisRecords, control: Mapping[str, str], old: str, new: str) -> None:
    topology_id, states = records.keys.topology_id, described_states(records, control)
    if old not in states:
        known = ", ".join(sorted(states)) or "none"
        raise TopologyError(f"topology {topology_id!r} declares no state {old!r}; declared: {known}")
    if new == RESERVED_NAME:
        raise TopologyError(f"{new!r} is the name of txbatch's own records; choose another name")
    if new in states:
        raise TopologyError(f"topology {topology_id!r} has a state {new!r}; choose another name")
    refuse_in_parts(topology_id, control["topology"])


def refuse_in_parts(topology_id: str, description: str) -> None:
    """Refuses a topology whose export and import cannot be one step that loses nothing."""
    if shard_count_of(description) > 1:
        raise StateRefusedError(
            f"topology {topology_id!r} is spread over many slots, which cannot change in one step; export it, and "
            "import it with --shards 1 before"
        )
    if former := sorted(json.loads(description).get("former", {})):
        raise StateRefusedError(
            f"topology {topology_id!r} has keys of states that it no longer declares, which this would lose: "
            f"{', '.join(former)}; declare them again, or delete their keys"
        )
