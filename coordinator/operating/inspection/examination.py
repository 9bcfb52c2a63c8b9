"""``txbatch doctor``: measures server, machine, Spark and code, and applies the checks (driver).

A failed measurement is a finding too. Nothing is changed on the server or in a data directory; on Spark, one small job
is run.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from coordinator.operating.inspection.finding import Finding, Weight, fail, from_error, ok, warn
from coordinator.operating.inspection.platform_checks import (
    LOCAL_DIR,
    FolderFacts,
    check_folder,
    check_python,
    check_spark,
)
from coordinator.operating.inspection.server_checks import check_server
from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.server_choice import ServerChoice
from coordinator.sources.several.shared_input import places_in, places_of, shared_place
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import make_plan
from coordinator.transactional.start.spout_start import SpoutStart
from state.errors import StateError, TopologyError, TransactionError
from state.keys import Keys
from state.printable import counted
from state.redis_client.address import check_address, is_encrypted, redact, require_encryption
from state.redis_client.connection import RedisConnection, connect
from state.redis_server.embedded import EmbeddedServer
from state.redis_server.measured_facts import measure

ANSWER_TIMEOUT_S = 5.0
STAND_IN_ID = "txbatch-doctor"
"""The topology whose keys stand in if no factory is given; no key is created."""
LOCAL_DIRS_VARIABLE = "SPARK_LOCAL_DIRS"

AnyTopology = Topology | PlainTopology
Load = Callable[[], tuple[AnyTopology, str]]
"""Makes the topology, and returns it with the name of its factory's module."""


def examine(
    server: ServerChoice,
    *,
    conf: Mapping[str, str],
    master: str | None = None,
    target: str = "",
    load: Load | None = None,
) -> list[Finding]:
    """Examines the code, the server, this machine, and Spark, in this order.

    Spark is left out without a `master`, and the code without `load`; `target` is the factory as it was typed.

    Raises:
        TopologyError: the server's address is malformed.
    """
    findings: list[Finding] = []
    topology, module = None, ""
    if load is not None:
        findings, topology, module = _examine_code(target, load)
    if not isinstance(topology, PlainTopology):
        if topology is None:
            findings += examine_server(server, STAND_IN_ID)
        else:
            findings += examine_server(
                server,
                topology.topology_id,
                shard_count=topology.shard_count,
                expires=topology.expires,
                fields_expire=topology.fields_expire,
            )
            findings += examine_other_readers(server, topology)
    findings += _examine_machine(server, master, conf, os.environ)
    if master is not None:
        findings += _examine_spark(master, conf, topology, module)
    return findings


def _examine_code(target: str, load: Load) -> tuple[list[Finding], AnyTopology | None, str]:
    """Checks the steps from the factory to tasks, up to the first one that fails."""
    from coordinator.engines.spark.shipping import pickle_spec  # importing Spark takes as long as everything else

    try:
        topology, module = load()
    except TransactionError as error:
        return [from_error("factory", error, "nothing can run without it")], None, ""
    count = counted(len(topology.components), "component")
    findings = [ok("factory", f"{target} makes topology {topology.topology_id!r} of {count}")]
    pickled = ok("pickling", "every component can be pickled")
    step, why = "pickling", "executors get the components pickled"
    try:
        if isinstance(topology, PlainTopology):
            make_plain_plan(topology, pickle_spec)
            return [*findings, pickled, ok("input", "a plain topology")], topology, module
        plan = make_plan(topology, pickle_spec)
        findings.append(pickled)
        step, why = "input", "a run asks its spout for this before it takes over"
        context = plan.wirings[plan.emitter_tasks[0]].context()
        fingerprint = SpoutStart(topology, context, tries=1, pause=lambda _: None).fingerprint()
    except TransactionError as error:
        return [*findings, from_error(step, error, why)], topology, module
    return [*findings, ok("input", f"the spout finds its input: {fingerprint}")], topology, module


def examine_server(
    choice: ServerChoice,
    topology_id: str,
    *,
    shard_count: int = 1,
    expires: bool | None = None,
    fields_expire: bool = False,
) -> list[Finding]:
    """Examines the server that a choice names, for a topology it should hold; in a cluster, the server of each slot.

    `expires`: whether a state of the topology may expire, None if unknown; `fields_expire`: whether fields may.
    """
    if choice.redis_url is None:
        return _examine_private(choice.data_dir, topology_id)
    encryption = check_encryption(choice.redis_url, allow_plaintext=choice.allow_plaintext)
    if encryption.weight == "fail":
        return [encryption]  # not even the password is sent
    keys, grant = Keys(topology_id), f"txbatch acl {topology_id}"
    grant += f" --shards {shard_count}" if shard_count > 1 else ""
    home, *shards = (
        _examine_slot(choice.redis_url, slot, grant, expires=expires, fields_expire=fields_expire)
        for slot in (keys, *(keys.shard(number) for number in range(shard_count if shard_count > 1 else 0)))
    )
    return [encryption, *home, *_of_shards_only(shards, home)]


def examine_other_readers(server: ServerChoice, topology: Topology) -> Iterator[Finding]:
    """Yields the topologies on the server whose input this topology destroys after reading it."""
    destruction, places = SpoutKind(topology.spout.spec).destruction, places_of(topology.spout.spec)
    if not destruction or not places:
        return
    try:
        with server.reader() as reader:
            ids = [each.topology_id for each in reader.topologies() if each.topology_id != topology.topology_id]
            others = [seen for each in ids if (seen := reader.overview(each, with_samples=False)) is not None]
    except TransactionError:
        return  # the check of the server reports it, or there is no server yet
    for other in others:
        if place := shared_place(places, places_in(other.source_fingerprint)):
            found = f"topology {other.topology_id!r} on this server has read {place!r}, and here {destruction}"
            why = "what the other has not read by then is gone, and none of its runs can continue"
            yield warn("input", found, why, "give each topology its own folder or stream, or let one keep its input")


def _of_shards_only(shards: Iterable[list[Finding]], home: list[Finding]) -> Iterator[Finding]:
    """Yields the faults of the shards' slots, except those that the home's slot has, too."""
    known = {finding.subject for finding in home if finding.weight is not Weight.OK}
    for number, findings in enumerate(shards):
        for each in findings:
            if each.weight is not Weight.OK and each.subject not in known:
                yield replace(each, subject=f"{each.subject} of shard {number}")


def check_encryption(url: str, *, allow_plaintext: bool) -> Finding:
    """Checks whether an address protects password and state from others.

    Raises:
        TopologyError: the address is malformed.
    """
    check_address(url)
    try:
        require_encryption(url, environment={})
    except TopologyError:
        try:
            require_encryption(url, allow_plaintext=allow_plaintext)
        except TopologyError as error:
            why = "others could read password and state on the way, so a run is refused at start"
            return from_error("encryption", error, why)
        found = "the connection to another machine is in plain text, as you have allowed"
        return warn("encryption", found, "others on the way can read password and state", "use rediss://")
    how = "TLS" if is_encrypted(url) else "a Unix socket" if url.startswith("unix://") else "loopback only"
    return ok("encryption", f"the connection uses {how}")


def _examine_slot(
    url: str, keys: Keys, grant: str, *, expires: bool | None = None, fields_expire: bool = False
) -> list[Finding]:
    connection = RedisConnection(connect(url, key=keys.control), redact(url), timeout_s=ANSWER_TIMEOUT_S)
    try:
        facts = measure(
            connection,
            keys,
            clock=time.monotonic,
            wall_clock=time.time,
            timeout_s=ANSWER_TIMEOUT_S,
            grant=grant,
            fields_expire=fields_expire,
        )
    except StateError as error:
        return [from_error("reachable", error, "every transaction is committed there")]
    finally:
        connection.close()
    return check_server(facts, expires=expires)


def _examine_private(data_dir: Path, topology_id: str) -> list[Finding]:
    """Examines the private server of a directory, or a temporary one if the directory has none yet."""
    try:
        with ExitStack() as opened:
            served_dir, where = data_dir, f"in {str(data_dir)!r}"
            if not (data_dir / "lock").is_file():
                folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="txbatch-doctor-"))
                served_dir, where = Path(folder) / "data", f"would be new {where}; one was tried elsewhere"
            url = opened.enter_context(EmbeddedServer(served_dir)).url
            return [ok("private server", where), *_examine_slot(url, Keys(topology_id), f"txbatch acl {topology_id}")]
    except StateError as error:
        return [from_error("private server", error, "without --redis it holds the state")]
    except OSError as error:
        found = f"data directory {str(data_dir)!r} cannot be read: {error.strerror}"
        return [fail("private server", found, "without --redis it holds the state", "choose another --data-dir")]


def _examine_machine(
    server: ServerChoice, master: str | None, conf: Mapping[str, str], environment: Mapping[str, str]
) -> list[Finding]:
    folders = []
    if server.redis_url is None:
        folders.append(measure_folder("data directory", server.data_dir, "--data-dir"))
    if master is not None and master.startswith("local"):
        given = environment.get(LOCAL_DIRS_VARIABLE, "")
        setting = LOCAL_DIRS_VARIABLE if given else f"--conf {LOCAL_DIR}=DIR"
        named = given or conf.get(LOCAL_DIR) or tempfile.gettempdir()
        paths = [Path(part.strip()) for part in named.split(",") if part.strip()]
        folders += [measure_folder("Spark's scratch folder", path, setting, is_shared=not given) for path in paths]
    return [check_python(tuple(sys.version_info[:3])), *map(check_folder, folders)]


def measure_folder(purpose: str, path: Path, setting: str, *, is_shared: bool = True) -> FolderFacts:
    """Measures a folder, or the nearest one above it that exists.

    In a shared folder a run makes a private one, so a shared folder may be readable for others.
    """
    nearest = path.absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    is_open = not is_shared and path.is_dir() and bool(path.stat().st_mode & 0o077)
    is_writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return FolderFacts(purpose, str(path), setting, is_writable, shutil.disk_usage(nearest).free, is_open)


def _examine_spark(master: str, conf: Mapping[str, str], topology: AnyTopology | None, module: str) -> list[Finding]:
    from coordinator.engines.spark.cluster.probe import probe_spark

    try:
        return check_spark(probe_spark(master, conf, topology, module or None))
    except TransactionError as error:
        return [from_error("spark", error, "every wave is a Spark job")]
