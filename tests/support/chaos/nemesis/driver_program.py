"""A driver, in this process: the real coordinator, tasks, store and commits, with or without Spark.

With Spark it is the command `txbatch run`, as a user starts it; without, the same run on the engine that tests use.
As a program of its own it is given a `DriverSpec` on the command line.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from coordinator.operating.cli.exits import ExitCode, errors_reported, exit_code_of
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.operating.cli.run_command import TypedRun, execute
from coordinator.run import ProgressCallback, run_as
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology import Topology
from coordinator.transactional.assembly import assembled
from coordinator.transactional.options import RunOptions
from coordinator.transactional.surroundings import RunEnvironment
from coordinator.watching.run_observer import Observers
from coordinator.watching.statistics.run_statistics import RunStatistics
from state import fault_points
from state.errors import TransactionError
from state.redis_client import connection as redis_connection
from state.redis_owner.reader import URL_VARIABLE
from state.redis_owner.store import RedisStore
from tests.support.chaos.nemesis.driver_spec import DriverSpec, Notes, fate_visit
from tests.support.chaos.nemesis.history import record_commits
from tests.support.chaos.nemesis.ledger_job import topology
from tests.support.chaos.nemesis.planted_bugs import plant
from tests.support.runs.in_process_engine import InProcessEngine
from tests.support.stores.admin import admin_of
from tests.support.topologies.components import plan

JOB = "tests.support.chaos.nemesis.ledger_job:topology"
UNREACHABLE_TIMEOUT_S = 30.0


def drive(spec: DriverSpec) -> int:
    """Runs, or drops, the topology of a spec in this process and returns the exit code."""
    notes = Notes(spec.notes_path)
    notes.add("started")
    if spec.bug:
        plant(spec.bug)
    if spec.history_path:
        record_commits(Path(spec.history_path))
    redis_connection.SOCKET_TIMEOUT_S = spec.socket_timeout_s
    os.environ[URL_VARIABLE] = spec.url
    if spec.fate is not None:
        fault_points.install(fate_visit(spec.fate, notes))
    if spec.master:
        return _drive_on_spark(spec, notes)
    try:
        (_drop if spec.drops else _run_in_process)(spec, notes)
    except TransactionError as error:
        notes.add("ended", text=f"{type(error).__name__}: {error}")
        return int(exit_code_of(error))
    notes.add("ended", text="done")
    return int(ExitCode.DONE)


def _options(spec: DriverSpec) -> RunOptions:
    return RunOptions(
        max_spout_pending=spec.max_pending, commit_group_max=spec.commit_group_max, early_commit=spec.early_commit
    )


def _note_first_commit(notes: Notes) -> Callable[[RunStatistics], None]:
    is_noted = False

    def note(statistics: RunStatistics) -> None:
        nonlocal is_noted
        if statistics.committed and not is_noted:
            is_noted = True
            notes.add("committed", txid=statistics.last_txid)

    return note


def _store(spec: DriverSpec) -> RedisStore:
    return RedisStore(spec.url, spec.topology_id, unreachable_timeout_s=UNREACHABLE_TIMEOUT_S)


def _drop(spec: DriverSpec, notes: Notes) -> None:
    store = _store(spec)
    store.check_server()
    admin_of(store).drop()
    store.close()


def _run_in_process(spec: DriverSpec, notes: Notes) -> None:
    job = topology(spec.kind, spec.reads, spec.end_path, spec.topology_id)
    made = plan(job)
    random = Random(spec.seed)
    nonce = secrets.token_hex(16)
    store = _store(spec)
    store.check_server()
    with assembled(
        job,
        made,
        store,
        InProcessEngine(made, random, nonce=nonce),
        _options(spec),
        around=RunEnvironment(
            nonce=nonce,
            new_generation=secrets.token_hex(16),
            clock=time.monotonic,
            new_attempt_id=partial(random.getrandbits, 64),
            pause=time.sleep,
            observers=Observers([ProgressCallback(_note_first_commit(notes))]),
        ),
    ) as coordinator:
        notes.add("owned")
        coordinator.run()


def _drive_on_spark(spec: DriverSpec, notes: Notes) -> int:
    def noting_run(made: Topology, request: RunRequest) -> RunStatistics:
        first_commit = _note_first_commit(notes)
        on_start, on_progress = request.on_start, request.on_progress
        assert on_start is not None
        assert on_progress is not None

        def started(coordinator: Any) -> None:
            notes.add("owned")
            on_start(coordinator)

        def progressed(statistics: RunStatistics) -> None:
            first_commit(statistics)
            on_progress(statistics)

        try:
            done = run_as(made, replace(request, on_start=started, on_progress=progressed))
        except TransactionError as error:
            notes.add("ended", text=f"{type(error).__name__}: {error}")
            raise
        notes.add("ended", text="done")
        return done

    parameters = {"kind": spec.kind, "reads": spec.reads, "end_path": spec.end_path, "topology_id": spec.topology_id}
    request = RunRequest(
        server=ServerChoice(spec.url, Path()),
        master=spec.master,
        conf=parse_pairs("--conf", spec.conf),
        options=_options(spec),
    )
    given = {name: str(value) for name, value in parameters.items()}
    typed = TypedRun(target=JOB, parameters=given, request=request, as_json=True)
    try:
        with errors_reported():
            return execute(typed, runner=noting_run)
    except SystemExit as end:
        return int(end.code or 0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    sys.exit(drive(DriverSpec.from_line(sys.argv[1])))
