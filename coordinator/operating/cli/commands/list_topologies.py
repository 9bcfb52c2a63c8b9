"""``txbatch list``: the topologies on a server, and which of them run."""

from __future__ import annotations

import time
from typing import Any

from coordinator.operating.cli.command import AsJson, ServerOptions, command
from coordinator.operating.cli.run_lines import moment
from coordinator.operating.cli.terminal import say, say_json
from coordinator.watching.durations import duration
from state.printable import one_line, table_lines
from state.records.run_pulse import RunState, Standing, standing_of
from state.records.topology_overview import ListedTopology

HEADINGS = ("TOPOLOGY", "COMMITTED", "RUN", "SINCE", "LAG", "TRANSACTIONS/S", "WHERE")
RIGHT = {HEADINGS.index(name) for name in ("COMMITTED", "LAG", "TRANSACTIONS/S")}


@command
def list_topologies(*, typed: ServerOptions, as_json: AsJson = False) -> None:
    """List the topologies on a server: what is committed, and which run, where and since when."""
    server = typed.choice()
    found, now = server.topologies(), time.time()
    if as_json:
        say_json([_plain(each, now) for each in found])
    elif found:
        say(*table_lines([HEADINGS, *(cells(each, now) for each in found)], right=RIGHT))
    else:
        say(f"no topology is stored on {server}")


def cells(listed: ListedTopology, now: float) -> tuple[str, ...]:
    name = one_line(listed.topology_id, 64)
    if listed.fault:
        return (name, "?", f"cannot be read: {one_line(listed.fault, 200)}", "", "", "", "")
    committed = f"{int(listed.committed):,}" if listed.committed.isdecimal() else "?"
    pulse, standing = listed.pulse, _standing(listed, now)
    if listed.is_dropping:
        return (name, committed, "being dropped", "", "", "", "")
    if pulse is None:
        return (name, committed, "running" if standing is Standing.RUNNING else "-", "", "", "", "")
    where = f"{one_line(pulse.run.host, 64)}:{pulse.run.pid}"
    if standing is Standing.RUNNING:
        figures = pulse.now
        rate, lag = f"{figures.transactions_per_s:,.1f}", f"{figures.lag_s:.1f} s"
        return (name, committed, figures.state, moment(pulse.run.started_at), lag, rate, where)
    if standing is Standing.SILENT:
        return (name, committed, f"silent for {duration(now - pulse.seen_at)}", moment(pulse.seen_at), "", "", where)
    return (name, committed, pulse.now.state, moment(pulse.now.at), "", "", where)


def _standing(listed: ListedTopology, now: float) -> Standing:
    return standing_of(listed.pulse, now=now, connected=listed.connected)


def _plain(listed: ListedTopology, now: float) -> dict[str, Any]:
    standing, pulse = _standing(listed, now), listed.pulse
    plain: dict[str, Any] = {
        "topology_id": listed.topology_id,
        "committed_txid": int(listed.committed) if listed.committed.isdecimal() else None,
        "standing": standing,
        "is_dropping": listed.is_dropping,
        "fault": listed.fault or None,
    }
    if pulse is not None:
        plain |= {
            "state": pulse.now.state,
            "started_at": pulse.run.started_at,
            "ended_at": pulse.now.at if pulse.now.state.has_ended else None,
            "seen_at": pulse.seen_at,
            "host": pulse.run.host,
            "pid": pulse.run.pid,
            "user": pulse.run.user,
            "lag_s": pulse.now.lag_s,
            "transactions_per_s": pulse.now.transactions_per_s,
            "error": pulse.now.error or None if pulse.now.state is RunState.FAILED else None,
        }
    return plain
