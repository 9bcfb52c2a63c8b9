"""Checks a server: its fitness to hold a topology, durability, rights, memory, clock and latency. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from coordinator.operating.inspection.finding import Finding, fail, ok, warn
from state.printable import counted
from state.records.durability import ALMOST_ALWAYS, ServerDurability, how_to_set
from state.redis_owner.fitness import evicts_only_expiring, policy_of, product_of, unfitness, unknown_facts
from state.redis_owner.measured_durability import appendfsync_of
from state.redis_server.measured_facts import LibraryState, ServerFacts

MEMORY_WARN, MEMORY_FAIL = 0.80, 0.95
"""Shares of maxmemory."""
SYSTEM_MEMORY_WARN = 0.75
"""Share of the machine's memory, for a server without maxmemory."""
LATENCY_WARN_MS = 20.0
CLOCK_WARN_S = 5.0
TIMEOUT_WARN_S = 120
CLIENTS_WARN = 0.90
WHY_UNFIT = {
    "version": "older servers lack commands of the function library, so a run is refused at start",
    "primary": "only a primary takes writes, so a run is refused at start",
    "eviction": "committed state may vanish without an error, so a run is refused at start or stopped later",
}
_UNSAID = "unknown: the server does not say"
_TO_KEEP_ALL = f"leave it if no state has expire_at, else set noeviction ({how_to_set('maxmemory-policy noeviction')})"


def check_server(facts: ServerFacts, *, expires: bool | None = None) -> list[Finding]:
    """Returns one finding for each aspect of a server that answers.

    `expires`: whether a state of the topology may expire; None if unknown.
    """
    return [
        ok("reachable", f"server {facts.server} answers"),
        *_fitness(facts, expires=expires),
        *(check(facts) for check in _CHECKS),
    ]


def _fitness(facts: ServerFacts, *, expires: bool | None) -> list[Finding]:
    info, policy = facts.info, f"maxmemory-policy is {policy_of(facts.info)}"
    product, version = product_of(info)
    unknown = unknown_facts(info)
    replicas = counted(_number(info, "connected_slaves"), "replica")
    sound = {
        "version": f"{product} {version}" if version else f"{product}, {_UNSAID}",
        "primary": _UNSAID if "its role" in unknown else f"a primary with {replicas}",
        "eviction": _UNSAID if "its maxmemory-policy" in unknown else policy,
    }
    found = unfitness(info, expires=bool(expires))
    unfit = {each.about: fail(each.about, each.found, WHY_UNFIT[each.about], each.remedy) for each in found}
    evicted = _number(info, "evicted_keys")
    if "eviction" not in unfit and evicts_only_expiring(info):
        sound["eviction"] = f"{policy}: it evicts only keys that expire, and no state of the topology does"
        if expires is None:
            unfit["eviction"] = warn("eviction", policy, "it evicts states whose parts expire", _TO_KEEP_ALL)
    elif "eviction" not in unfit and evicted:
        found_evicted = f"{policy}, but {counted(evicted, 'key')} were evicted since the server started"
        why = "they may have held state of a topology; nothing records which ones they were"
        unfit["eviction"] = warn("eviction", found_evicted, why, "run `txbatch verify TOPOLOGY --refold FACTORY`")
    return [unfit.get(about) or ok(about, text) for about, text in sound.items()]


def _persistence(facts: ServerFacts) -> Finding:
    info, settings = facts.info, facts.settings
    stops = "the server then refuses writes, or loses them at its end"
    space = "free disk space and look at the server's log"
    if info.get("aof_enabled") == "1" and info.get("aof_last_write_status", "ok") != "ok":
        return fail("persistence", "the last write to the append-only file failed", stops, space)
    if info.get("rdb_last_bgsave_status", "ok") != "ok" and settings.get("save") != "":
        return fail("persistence", "the last snapshot failed", stops, space)
    if info.get("loading") == "1":
        why = "it answers when it has loaded its data; a run waits up to 60 s for that"
        return warn("persistence", "the server is loading its data", why, "wait")
    if info.get("aof_enabled") == "1":
        return _append_only(settings)
    if settings.get("save") == "":
        why = "when it ends, all state is lost and runs begin again"
        return warn("persistence", "the server keeps nothing on disk", why, "set appendonly to yes")
    found = "the server takes snapshots only" if "save" in settings else "the server has no append-only file"
    unsaved = f", {_number(info, 'rdb_changes_since_last_save'):,} changes are in none yet"
    why = "a crash loses every transaction since the last snapshot; the next run repeats them if the input is there"
    return warn("persistence", found + unsaved, why, f"set appendonly to yes ({how_to_set('appendonly yes')})")


def _append_only(settings: Mapping[str, str]) -> Finding:
    gives = ServerDurability(has_append_file=True, appendfsync=appendfsync_of(settings))
    found = f"append-only file: a power cut may take {gives.can_lose()}"
    if gives.appendfsync in ("no", ALMOST_ALWAYS):
        remedy = "set appendfsync to everysec or always, and no-appendfsync-on-rewrite to no"
        return warn("persistence", found, "the next run repeats what was lost, if the input is there", remedy)
    return ok("persistence", found)


def _memory(facts: ServerFacts) -> Finding:
    used, limit = _number(facts.info, "used_memory"), _number(facts.info, "maxmemory")
    system = _number(facts.info, "total_system_memory")
    why = "a commit that does not fit is refused and stops the run; what is committed stays"
    if limit:
        found, share = f"{_mebibytes(used)} of maxmemory {_mebibytes(limit)} are in use", used / limit
        remedy = "raise maxmemory, or remove data"
        if share >= MEMORY_FAIL:
            return fail("memory", found, why, remedy)
        return warn("memory", found, why, remedy) if share >= MEMORY_WARN else ok("memory", found)
    found = f"{_mebibytes(used)} in use, maxmemory is not set"
    if system and used / system >= SYSTEM_MEMORY_WARN:
        found += f", and the machine has {_mebibytes(system)}"
        return warn("memory", found, "the system ends a process that takes it all", "give the machine more memory")
    return ok("memory", found)


def _library(facts: ServerFacts) -> Finding:
    remedy = "run the topology once as a user that may, or grant what `txbatch acl TOPOLOGY` prints"
    if facts.library is LibraryState.LOADED:
        return ok("library", "the function library of this version is loaded")
    if facts.library is LibraryState.UNKNOWN:
        why = "a run that does not find it cannot load it"
        return warn("library", "this user may not list functions", why, remedy)
    if facts.library is LibraryState.MISSING and facts.may_load:
        return ok("library", "the function library is not loaded yet; a run loads it")
    if facts.library is LibraryState.MISSING:
        found = "the function library is not loaded, and this user may not load it"
        return fail("library", found, "every write of a run is a call of that library", remedy)
    found = "the function library of this version has other code, from another build"
    if facts.may_load:
        why = "the next run replaces it, for every topology on this server"
        return warn("library", found, why, "let all runs use one build of txbatch")
    return fail("library", f"{found}, and this user may not replace it", "runs would use the other code", remedy)


def _rights(facts: ServerFacts) -> Finding:
    optional = [name for name in facts.lacking if name.startswith("CLIENT|")]
    needed = [name for name in facts.lacking if name not in optional and not name.startswith("FUNCTION|")]
    remedy = f"grant what `{facts.grant}` prints, and undo any rename-command"
    why, own_keys = "a run checks this at its start and is refused", f"keys {facts.keys!r}"
    if needed or facts.lacking_on_keys:
        lacking = [*needed, *(facts.lacking_on_keys or ())]
        found = f"this user may not run {', '.join(lacking)} on {own_keys}, or the server lacks them"
        return fail("rights", found, why, remedy)
    if facts.lacking_on_keys is None:
        found = "the rights on keys could not be asked for: the function library is not loaded"
        return warn("rights", found, f"{why} if one is missing", "run the topology once, then look again")
    if optional:
        why = "without them a drop cannot tell that the topology was running; nothing else needs them"
        return warn("rights", f"this user may not run {', '.join(optional)}", why, remedy)
    return ok("rights", f"this user may run every command on {own_keys}")


def _clock(facts: ServerFacts) -> Finding:
    """Checks the server's clock, on which only people depend, not the protocol."""
    ahead = facts.clock_ahead_s
    if ahead is None:
        return ok("clock", "not compared: this user may not ask for the time, and a run does not either")
    found = f"the server's clock is {abs(ahead):.1f} s {'ahead of' if ahead >= 0 else 'after'} this machine's"
    if abs(ahead) < CLOCK_WARN_S:
        return ok("clock", found)
    why = "the protocol uses no clock, but logs of both cannot be put in order, and certificates may be refused"
    return warn("clock", found, why, "synchronise both by NTP")


def _connections(facts: ServerFacts) -> Finding:
    settings, info = facts.settings, facts.info
    limit = int(settings.get("maxclients") or info.get("maxclients") or 0)
    clients, timeout_s = _number(info, "connected_clients"), int(settings.get("timeout") or 0)
    if limit and clients >= CLIENTS_WARN * limit:
        why = "beyond that the server refuses connections, and a run repeats its call for 60 s, then stops"
        return warn("connections", f"{clients:,} of at most {limit:,} clients are connected", why, "raise maxclients")
    if 0 < timeout_s < TIMEOUT_WARN_S:
        found = f"the server closes connections that are idle for {timeout_s} s"
        why = "a run that waits for input reconnects each time, and a drop no longer sees that it is running"
        return warn("connections", found, why, f"set timeout to 0 or at least {TIMEOUT_WARN_S}")
    idle = f", idle ones are closed after {timeout_s} s" if timeout_s else ", idle ones stay"
    return ok("connections", f"{counted(clients, 'client')} connected{idle if 'timeout' in settings else ''}")


def _latency(facts: ServerFacts) -> Finding:
    middle, worst = median(facts.round_trips_ms), max(facts.round_trips_ms)
    found = f"a call takes {middle:.2f} ms, {worst:.2f} ms at worst of {len(facts.round_trips_ms)}"
    if middle < LATENCY_WARN_MS:
        return ok("latency", found)
    why = "each commit and each wave waits for such a call, one after the other"
    return warn("latency", found, why, "run nearer to the server, or commit larger groups (--commit-group-max)")


_CHECKS: tuple[Callable[[ServerFacts], Finding], ...] = (
    _persistence,
    _memory,
    _library,
    _rights,
    _clock,
    _connections,
    _latency,
)


def _number(info: Mapping[str, str], name: str) -> int:
    text = info.get(name, "")
    return int(text) if text.isdecimal() else 0


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
