"""Computes a state, or one part of it, again from the input, and puts it in place of what is stored (driver).

For a part that went wrong, and for a state that was declared after the first transactions: the input is read again on a
scratch server, up to the transaction that is committed. Everything else stays as it is. Readers see the old state until
the one call that replaces it.
"""

from __future__ import annotations

import json
import tempfile
from typing import IO, NamedTuple

from coordinator.operating.inspection.verify.refold import (
    Runner,
    ScratchServer,
    moved_input,
    recomputed,
    refuse_another_state,
)
from coordinator.operating.transfer.exporting import LineWriter, export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from coordinator.operating.transfer.looking import ChosenState, chosen_state
from coordinator.operating.transfer.renaming import refuse_in_parts
from coordinator.topology.building.topology import Topology
from state.errors import StateRefusedError, TopologyError
from state.keys import split_member
from state.records.declared_states import with_whole
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.importing import AsOf, StateImport


class Redone(NamedTuple):
    """The result of `redo_state`.

    Attributes:
        committed: the last committed txid, up to which the state was computed.
        unkept: how many more dead letters the computation has made than are kept; they are in no list.
    """

    committed: int
    unkept: int


def redo_state(
    records: RedisRecords,
    target: StateImport,
    topology: Topology,
    text: str,
    *,
    generation: str,
    run_to: Runner,
    server: ScratchServer,
) -> Redone:
    """Replaces a state, or the part that `text` names, by what the input gives.

    A whole state is computed from the first transaction on, a part from the one at which its state began. No run may
    own the topology meanwhile: if one has written, or taken it over, nothing is changed.

    Args:
        records: what is stored.
        target: puts the topology back.
        topology: as its factory makes it, of a kind that `refuse_unrepeatable` lets pass.
        text: a state's name, or that of a part, as in its key.
        generation: see `StateImport.restore`.
        run_to: runs the topology on the scratch server.
        server: opens the scratch server.

    Raises:
        TopologyError: there is no such state, or it cannot be computed again.
        StateRefusedError: the input is another one now, or the topology was written meanwhile.
        TransactionError: the run failed.
    """
    chosen, stored = chosen_state(records, text), records.records()
    is_part = chosen.state.part_type is not None and chosen.has_part
    subject = f"state {chosen.name!r} of topology {topology.topology_id!r}"
    refuse_in_parts(topology.topology_id, stored.control["topology"])
    refuse_another_state(records, stored, topology, subject)
    if is_part and chosen.state.is_mixed:
        raise TopologyError(
            f"{subject} cannot be computed again: its state held something before txid {chosen.state.began_txid}, when "
            f"the declaration changed; redo the whole state {chosen.state.name!r}"
        )
    committed = int(stored.control["committed"])
    since = [chosen.state] if is_part else []
    with tempfile.TemporaryFile() as before, tempfile.TemporaryFile() as merged:
        with recomputed(topology, committed, since, run_to=run_to, server=server) as found:
            again = found.records()
            if moved_input(topology, stored.metadata, again.records().metadata, committed):
                raise StateRefusedError(
                    f"{subject} was not computed again: its input is another one now, or is cut into other "
                    "transactions; restore the input; nothing was changed"
                )
            with tempfile.TemporaryFile() as after:
                unkept = sum(1 for _ in again.letters()) - sum(1 for _ in records.letters())
                export_state(records, before)
                export_state(again, after)
                _merge(before, after, merged, chosen, is_part=is_part)
        merged.seek(0)
        export = checked_export(merged)
        merged.seek(0)
        import_state(target, export, merged, generation=generation, replaces=True, as_of=AsOf.of(stored.control))
    return Redone(committed, max(0, unkept))


def _merge(before: IO[bytes], after: IO[bytes], merged: IO[bytes], chosen: ChosenState, *, is_part: bool) -> None:
    """Writes an export that has the chosen state, or part, from `after`, and everything else from `before`."""
    part = split_member(chosen.name)[1] if is_part else None

    def is_chosen(line: dict[str, object]) -> bool:
        return line.get("state") == chosen.state.name and (part is None or str(line.get("part")) == part)

    writer = LineWriter(merged)
    for source, wants_chosen in ((before, False), (after, True)):
        source.seek(0)
        for number, line in enumerate(map(json.loads, source)):
            if number == 0 and not wants_chosen and not is_part:
                line["control"]["topology"] = with_whole(line["control"]["topology"], chosen.state.name)
            if "end" not in line and is_chosen(line) == wants_chosen:
                writer.write(line)
    writer.end()
