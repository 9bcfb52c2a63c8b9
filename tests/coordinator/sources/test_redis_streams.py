"""Redis Streams on a real server: each entry once, replays by range, and what was trimmed is named."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import redis

from coordinator import LocalCluster, RunOptions
from coordinator.sources import Inputs, RecordFormat, RedisStreams
from coordinator.sources.redis_streams import stream_reader
from state import ReplayLimitError, SourceError, StateRefusedError, TopologyError, UserCodeError
from state.codec import unpack
from state.redis_owner.store import RedisStore
from tests.conftest import Backend, redis_program, running_server, valkey_program
from tests.coordinator.sources.contract import TOPOLOGY_ID, Keep, SourceContract, SourceWorld, by_content
from tests.support.approved import approved, refusals
from tests.support.cli.processes import killed_and_ended
from tests.support.sources.file_worlds import TextWorld
from tests.support.stores.admin import admin_of
from tests.support.topologies.components import collecting

pytestmark = pytest.mark.redis

STREAM, SECOND = "orders", "returns"


class StreamWorld(SourceWorld):
    """One stream of numbered entries."""

    lost: ClassVar[str] = "stream 'orders' (has 0 of the 4 entries|was trimmed)"

    def __init__(self, backend: Backend, **more: Any) -> None:
        super().__init__()
        assert backend.url is not None
        self.client, self.url, self.more = backend.client(), backend.url, more

    def add(self, count: int) -> None:
        for number in range(len(self.rows), len(self.rows) + count):
            self.client.xadd(STREAM, {"page": f"p{number}", "clicks": number, "more": "unused"})
            self.rows.append([f"p{number}", number])

    def spout(self) -> RedisStreams:
        options = {"fields": {"page": str, "clicks": int}, "take": 4, "url": self.url, **self.more}
        return RedisStreams(STREAM, **options)

    def other_spout(self) -> RedisStreams:
        self.client.xadd(SECOND, {"page": "x", "clicks": 1})
        return RedisStreams(SECOND, fields={"page": str, "clicks": int}, take=4, url=self.url)

    def take_away(self) -> None:
        self.client.xtrim(STREAM, maxlen=5, approximate=False)


class HatesFive(Keep):
    """Raises at the sixth entry."""

    def execute(self, tup):
        if tup.values[-1] == 5:
            raise ValueError("five")
        super().execute(tup)


@pytest.fixture
def world(redis_backend: Backend) -> StreamWorld:
    return StreamWorld(redis_backend)


class TrimmedWorld(StreamWorld):
    """The same, of which what is durable is removed."""

    removes: ClassVar[bool] = True

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend, trim=True)


class AmongInputs(StreamWorld):
    """A stream that is trimmed, and lines of text, in one topology; both grow."""

    is_ordered: ClassVar[bool] = False
    removes: ClassVar[bool] = True
    adopt: ClassVar[bool | str] = TextWorld.adopt

    def __init__(self, backend: Backend, folder: Path) -> None:
        super().__init__(backend, trim=True)
        self.text = TextWorld(folder)

    def add(self, count: int) -> None:
        entries = self.rows[len(self.text.rows) :]
        self.rows = entries
        super().add(count - count // 3)
        self.text.add(max(1, count // 3))
        self.rows = [*self.text.rows, *self.rows]

    def spout(self) -> Inputs:  # type: ignore[override]
        return Inputs(text=self.text.spout(), clicks=super().spout())

    def other_spout(self) -> Inputs:  # type: ignore[override]
        return Inputs(text=self.text.spout(), clicks=super().other_spout())


class TestRedisStreams(SourceContract):
    """The contract of all sources, also while entries that are durable are removed, and for one of several inputs."""

    @pytest.fixture(params=["alone", "trimmed", "among inputs"])
    def world(self, redis_backend: Backend, tmp_path: Path, request: pytest.FixtureRequest) -> StreamWorld:
        if request.param == "among inputs":
            return AmongInputs(redis_backend, tmp_path)
        return TrimmedWorld(redis_backend) if request.param == "trimmed" else StreamWorld(redis_backend)


JOB = """
from coordinator import stream
from coordinator.sources import Inputs, RedisStreams, TextFiles
from state import HashState


def topology(url):
    clicks = RedisStreams("orders", fields={"page": str}, take=50, url=url, trim=True)
    both = stream(Inputs(clicks=clicks, text=TextFiles("in/*.txt", 20)))
    both.output("clicks").count_by("page", into=HashState("pages"))
    both.output("text").count_by("line", into=HashState("lines"))
    return both.topology("both")
"""


@pytest.mark.chaos
@pytest.mark.slow
def test_a_run_over_a_stream_and_files_that_is_killed_is_continued_exactly(redis_backend, tmp_path):
    client = redis_backend.client()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("".join(f"l{number % 30}\n" for number in range(20_000)))
    for start in range(0, 30_000, 1000):
        pipeline = client.pipeline()
        for number in range(start, start + 1000):
            pipeline.xadd("orders", {"page": f"p{number % 70}"})
        pipeline.execute()
    (tmp_path / "jobs.py").write_text(JOB)
    url = str(redis_backend.url)
    more = ("-p", f"url={url}", "--redis", url, "--durability", "memory")
    killed_and_ended(tmp_path, client, "both", "jobs.py:topology", *more)
    found = [client.hgetall(f"{{both}}:{name}") for name in ("pages", "lines")]
    assert [{key.decode(): int(count) for key, count in each.items()} for each in found] == [
        Counter(f"p{number % 70}" for number in range(30_000)),
        Counter(f"l{number % 30}" for number in range(20_000)),
    ]
    assert client.xlen("orders") == 0


@pytest.fixture(autouse=True)
def forget():
    Keep.given, Keep.fail_once, Keep.stop_at = {}, set(), 0


def topology_over(spout, *streams, keep=Keep):
    return collecting(TOPOLOGY_ID, spout, keep(), *streams, tasks=2)


def submit(cluster, spout, *, adopt=False, max_pending=3):
    return cluster.submit(topology_over(spout), options=RunOptions(max_spout_pending=max_pending, adopt=adopt))


def read(cluster, spout, **more):
    run = submit(cluster, spout, **more)
    run.run_until_idle()
    return run


def kept(run):
    return by_content([json.loads(json.dumps(row)) for row in SourceContract().kept(run)])


@pytest.mark.parametrize(("entries", "transactions"), [(0, 0), (23, 6)])
def test_no_transaction_is_empty_if_nothing_was_deleted(cluster, world, entries, transactions):
    world.add(entries)
    run = read(cluster, world.spout(), max_pending=16)
    assert (run.statistics.committed, run.is_done) == (transactions, True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("max_pending", [1, 2, 5])
def test_what_is_durable_is_trimmed_and_nothing_else(world, max_pending, seed):
    world.add(43)
    world.more = {"trim": True}
    with LocalCluster(seed=seed) as cluster:
        run = submit(cluster, world.spout(), max_pending=max_pending)
        while run.tick():
            committed = min(43, 4 * run.statistics.committed)
            assert world.client.xlen(STREAM) >= 43 - committed, "entries are gone that are not committed"
        assert world.client.xlen(STREAM) == 0
        assert kept(run) == by_content(world.rows)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("streams", [(), ("clicks", "text")], ids=["alone", "among inputs"])
def test_a_stream_is_trimmed_when_it_is_durable_and_kept_while_a_batch_of_it_is_quarantined(
    redis_backend, tmp_path, streams, seed
):
    world = AmongInputs(redis_backend, tmp_path) if streams else TrimmedWorld(redis_backend)
    world.add(36)
    topology = topology_over(world.spout(), *streams, keep=HatesFive)
    options = RunOptions(on_poison="quarantine", max_attempts=1)
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(topology, options=options)
        run.run_until_idle()
        assert run.statistics.quarantined == [2]
        assert world.client.xlen(STREAM) >= 20, "the batch can be read again"
        store = RedisStore("redis://memory", TOPOLOGY_ID, client=cluster.client)
        assert admin_of(store).discard(store.quarantined()[0])
        world.add(6)
        cluster.submit(topology, options=options).run_until_idle()
        assert world.client.xlen(STREAM) == 0


def test_nothing_is_trimmed_unless_it_is_asked_for(cluster, world):
    world.add(9)
    read(cluster, world.spout())
    assert world.client.xlen(STREAM) == 9


def test_entries_trimmed_before_they_were_read_are_named_or_counted(cluster, world):
    world.add(6)
    read(cluster, world.spout())
    world.add(10)
    world.client.xtrim(STREAM, maxlen=7, approximate=False)
    with pytest.raises(SourceError, match="3 entries were removed before they were read; keep more of the stream"):
        read(cluster, world.spout())
    world.more = {"on_trimmed": "skip"}
    run = read(cluster, world.spout())
    assert run.statistics.counters["trimmed_entries"] == 3
    assert kept(run) == by_content(world.rows[:6] + world.rows[9:])


def test_a_stream_that_was_deleted_and_goes_on_is_named_unless_trimmed_entries_are_skipped(cluster, world):
    world.add(6)
    read(cluster, world.spout())
    world.add(2)
    world.client.delete(STREAM)
    world.add(3)  # with higher ids, as if nothing had happened
    with pytest.raises(
        SourceError, match=r"had 6 entries up to .* and has had 3 in all: it was deleted and made again"
    ):
        read(cluster, world.spout())

    world.more = {"on_trimmed": "skip"}
    assert kept(read(cluster, world.spout())) == by_content(world.rows[:6] + world.rows[8:])


@pytest.fixture
def any_world(backend: Backend, monkeypatch) -> StreamWorld:
    """A stream on every backend, with ids of its own: a minute apart, so that nothing depends on the clock."""
    if backend.url is None:
        stream_reader._process_client.cache_clear()
        monkeypatch.setattr(stream_reader, "connect", lambda url: backend.client())
        backend.url = "unix:///in-memory"
    return NumberedWorld(backend)


class NumberedWorld(StreamWorld):
    """Entries whose ids are their numbers."""

    def add(self, count: int) -> None:
        for number in range(len(self.rows) + 1, len(self.rows) + count + 1):
            self.client.xadd(STREAM, {"page": f"p{number}", "clicks": number}, id=f"{number}-1")
            self.rows.append([f"p{number}", number])


def make_again(world, count, *, trimmed=0):
    world.client.delete(STREAM)
    world.add(count)
    world.client.xtrim(STREAM, maxlen=count - trimmed, approximate=False)


@pytest.mark.parametrize(("count", "trimmed", "lost"), [(10, 3, 3), (9, 0, 0), (6, 5, 5), (10, 4, 4)])
def test_a_stream_made_again_with_more_entries_than_were_read_is_refused_by_name(
    cluster, any_world, count, trimmed, lost
):
    any_world.add(6)
    read(cluster, any_world.spout())
    make_again(any_world, count, trimmed=trimmed)
    told = f"had 6 entries up to 6-1 and begins at {7 + trimmed}-1 after {trimmed} were removed: it was deleted"
    with pytest.raises(SourceError, match=f"stream 'orders' {told} and made again"):
        read(cluster, any_world.spout())
    any_world.more = {"on_trimmed": "skip"}
    run = read(cluster, any_world.spout())
    assert run.statistics.counters["trimmed_entries"] == lost
    assert kept(run) == by_content(any_world.rows[:6] + any_world.rows[6 + trimmed :])


def test_a_stream_made_again_is_told_by_what_it_held_beyond_what_was_read(cluster, any_world):
    any_world.add(12)
    any_world.more = {"follow": True, "on_trimmed": "skip"}
    run = submit(cluster, any_world.spout(), max_pending=1)
    while run.statistics.committed < 1:
        run.tick()
    make_again(any_world, 12, trimmed=4)  # as many as were read, so that the count of those alone tells nothing
    run.run_until_idle()
    assert kept(run) == by_content(any_world.rows[:4] + any_world.rows[16:])
    assert run.statistics.counters["trimmed_entries"] == 8 + 4


@pytest.mark.parametrize("read_first", [4, 12])
def test_a_stream_that_is_deleted_under_a_run_that_follows_is_named_at_once(cluster, any_world, read_first):
    any_world.add(12)
    any_world.more = {"follow": True}
    run = submit(cluster, any_world.spout(), max_pending=1)
    while 4 * run.statistics.committed < read_first:
        run.tick()
    any_world.client.delete(STREAM)
    with pytest.raises(SourceError, match=r"stream 'orders' ends at 0-0 and was read up to .*: it was deleted"):
        run.run_until_idle()


LAST = 2**64 - 1


@pytest.mark.parametrize("ids", [[f"5-{LAST}", "6-0", "6-1"], ["1-1", f"5-{LAST}"], ["1-1", f"{LAST}-{LAST}"]])
def test_ids_that_no_higher_one_follows_are_read_and_trimmed(cluster, any_world, ids):
    for number, entry_id in enumerate(ids):
        any_world.client.xadd(STREAM, {"page": "p", "clicks": number}, id=entry_id)
    any_world.more = {"trim": True, "take": 1}
    run = read(cluster, any_world.spout())
    assert kept(run) == by_content([["p", number] for number in range(len(ids))])
    assert any_world.client.xlen(STREAM) == 0


@pytest.mark.parametrize("trimmed", [0, 5, 6])
def test_a_stream_that_goes_on_is_never_taken_for_another(cluster, any_world, trimmed):
    any_world.add(6)
    read(cluster, any_world.spout())
    any_world.add(7)
    any_world.client.xdel(STREAM, "9-1")
    any_world.client.xtrim(STREAM, minid=f"{trimmed + 1}-0", approximate=False)
    if trimmed == 6:
        any_world.more = {"on_trimmed": "skip"}  # one was withdrawn, and all that was read is gone: it cannot be told
    expected = [row for row in any_world.rows if row[1] != 9]
    assert kept(read(cluster, any_world.spout())) == by_content(expected)


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        (1, r"was read up to 6-1 and ends at 1-1: it is another one"),
        (6, "stream 'orders' has other entries from 5-1 to 6-1 than were read"),
    ],
)
def test_a_stream_that_was_made_anew_is_refused(cluster, world, entries, told):
    for number in range(1, 7):
        world.client.xadd(STREAM, {"page": "a", "clicks": number}, id=f"{number}-1")
    read(cluster, world.spout())
    world.client.delete(STREAM)
    for number in range(1, entries + 1):
        world.client.xadd(STREAM, {"page": "b", "clicks": number}, id=f"{number}-1")
    with pytest.raises(SourceError, match=told):
        read(cluster, world.spout())


def test_streams_may_be_added_at_the_end_and_not_moved(cluster, world):
    world.add(6)
    world.other_spout()
    read(cluster, world.spout())
    fields = {"page": str, "clicks": int}
    with pytest.raises(StateRefusedError, match="was number 1 of the streams, where 'returns' is now"):
        read(cluster, RedisStreams([SECOND, STREAM], fields=fields, url=world.url), adopt=True)
    run = read(cluster, RedisStreams([STREAM, SECOND], fields=fields, url=world.url), adopt=True)
    assert kept(run) == by_content([*world.rows, ["x", 1]])


@pytest.mark.parametrize(("start", "left_out"), [("beginning", 0), ("end", 43)])
def test_a_run_that_follows_reads_what_is_added_and_does_not_end(cluster, world, start, left_out):
    world.add(43)
    world.more = {"start": start, "follow": True}
    run = read(cluster, world.spout(), max_pending=8)
    assert (run.statistics.committed == 0) == (start == "end")
    world.add(5)
    run.run_until_idle()
    assert not run.is_done
    assert kept(run) == by_content(world.rows[left_out:])


def test_after_a_run_that_began_at_the_end_and_has_cut_nothing_the_next_begins_there_too(cluster, world):
    world.add(43)
    world.more = {"start": "end", "follow": True}
    assert read(cluster, world.spout()).statistics.committed == 0
    world.add(5)
    assert kept(read(cluster, world.spout())) == by_content(world.rows[43:])


def test_entries_added_between_attempts_at_the_first_transaction_are_read_after_a_start_at_the_end(cluster, world):
    world.add(5)
    world.more = {"start": "end", "follow": True}
    run = cluster.submit(topology_over(world.spout()))
    world.add(2)  # after the start, before the first attempt
    run.hold("processing", 1)
    run.run_until_idle()
    world.add(4)
    run.fail(1)
    run.release("processing")
    run.run_until_idle()
    assert kept(run) == by_content(world.rows[5:])


class Upper(RecordFormat):
    """Text in capitals."""

    fields = ("text",)

    def row(self, data):
        return [data.decode().upper()]


def test_a_tuple_can_carry_where_it_is_from_and_a_field_may_hold_a_record_in_any_format(cluster, world):
    ids = [world.client.xadd(STREAM, {"page": page}).decode() for page in "ab"]
    more: dict[str, Any] = {"record_format": Upper(), "value_field": "page"}
    spout = RedisStreams(STREAM, url=world.url, origin_fields=["stream", "entry_id"], **more)
    assert kept(read(cluster, spout)) == by_content([["A", STREAM, ids[0]], ["B", STREAM, ids[1]]])


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"page": "a", "clicks": "many"}, "field 'clicks' is 'many', which is not int"),
        ({"page": "a"}, "field 'clicks' is missing"),
        ({"page": b"\xff", "clicks": 1}, "field 'page' is b'.xff', which is not UTF-8 text"),
    ],
)
def test_a_bad_entry_is_named_by_stream_and_id_or_left_out(cluster, world, entry, told):
    world.add(2)
    bad_id = world.client.xadd(STREAM, entry).decode()
    with pytest.raises(SourceError, match=f"the record at stream 'orders', entry {bad_id} is bad: {told}"):
        read(cluster, world.spout())
    world.more = {"on_bad_record": "skip"}
    run = read(cluster, world.spout())
    assert kept(run) == by_content(world.rows)
    assert run.statistics.counters == Counter(bad_records=1)


@pytest.mark.parametrize("twice", ["clicks", "unused"])
def test_an_entry_with_a_field_twice_is_bad_since_one_of_its_values_would_be_lost(cluster, any_world, twice):
    any_world.add(2)
    any_world.client.execute_command("XADD", STREAM, "*", "page", "a", "clicks", "1", twice, "2", twice, "3")
    formats: list[dict[str, Any]] = [{}, {"fields": None, "record_format": Upper(), "value_field": "page"}]
    for more in formats:
        any_world.more = {**more, "on_bad_record": "dead_letter"}
        run = read(cluster, any_world.spout())
        assert [letter.reason for letter in run.dead_letters()] == [f"it has the field '{twice}' twice in one entry"]
        cluster.client.flushall()


def test_fields_have_the_types_that_texts_of_csv_have_and_may_be_missing(cluster, world):
    world.client.xadd(STREAM, {"n": "-7", "price": "1.50", "day": "2026-11-26", "raw": b"\xff"})
    world.client.xadd(STREAM, {"n": "", "price": "2", "day": "2026-11-27"})
    fields = {"n": int | None, "price": Decimal, "day": dt.date, "raw": bytes | None}
    run = read(cluster, RedisStreams(STREAM, fields=fields, url=world.url))
    assert Counter(run.state("kept")) == by_content(
        [[-7, Decimal("1.50"), dt.date(2026, 11, 26), b"\xff"], [None, Decimal(2), dt.date(2026, 11, 27), None]]
    )


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", " 1", "１２"])  # noqa: RUF001
def test_what_is_a_number_to_python_alone_is_a_bad_record_and_halts_nothing(cluster, world, text):
    world.add(2)
    world.client.xadd(STREAM, {"page": "x", "clicks": text})
    world.more = {"on_bad_record": "dead_letter"}
    run = read(cluster, world.spout())
    assert kept(run) == by_content(world.rows)
    assert [letter.reason for letter in run.dead_letters()] == [f"field 'clicks' is {text!r}, which is not int"]


def test_a_key_that_is_no_stream_is_named(cluster, world):
    world.client.set(STREAM, "text")
    with pytest.raises(SourceError, match=r"stream 'orders' of server .* cannot be read"):
        read(cluster, world.spout())


@pytest.mark.parametrize("program", [redis_program, valkey_program])
def test_a_server_that_bounds_its_answers_is_named_with_take(cluster, program):
    with running_server(program(), "--client-output-buffer-limit", "normal 1mb 0 0") as url:
        with redis.Redis.from_url(url) as client:
            for _ in range(300):
                client.xadd(STREAM, {"page": "x" * 10_000})
        with pytest.raises(ReplayLimitError, match=r"'orders': Connection closed by server.; .* give a smaller take"):
            read(cluster, RedisStreams(STREAM, fields=["page"], url=url))
        assert len(read(cluster, RedisStreams(STREAM, fields=["page"], url=url, take=50)).state("kept")) == 300


def test_a_server_that_refuses_the_password_is_named_with_what_to_do_about_that(cluster, world, monkeypatch):
    monkeypatch.setenv("TXBATCH_STREAMS_URL", world.url.replace("unix://", "unix://nobody:secret@"))
    with pytest.raises(
        SourceError, match=r"stream 'orders' cannot be read: server .* refused the user name or password"
    ):
        read(cluster, RedisStreams(STREAM, fields=["page"]))


WRONG: dict[str, dict[str, Any]] = {
    "no stream": {"streams": []},
    "a stream twice": {"streams": ["a", "a"]},
    "neither fields nor a format": {},
    "a type that is none": {"fields": {"a": list}},
    "take": {"fields": ["a"], "take": 0},
    "follow": {"fields": ["a"], "follow": None},
    "start": {"fields": ["a"], "start": "middle"},
    "on_trimmed": {"fields": ["a"], "on_trimmed": "ignore"},
    "a password": {"fields": ["a"], "url": "redis://:secret@localhost:1"},
    "an origin": {"fields": ["a"], "origin_fields": ["offset"]},
}


def test_the_parameters_are_checked_and_no_password_is_shown():
    cases = {name: partial(RedisStreams, **{"streams": "orders", **given}) for name, given in WRONG.items()}
    said = refusals(cases, TopologyError)
    assert "secret" not in said
    approved(said, "redis-streams-arguments")


def test_the_server_may_be_named_by_the_environment(cluster, world, monkeypatch):
    world.add(3)
    spout = RedisStreams(STREAM, fields=["page"])
    with pytest.raises(TopologyError, match="has no server here: give url=…, or set TXBATCH_STREAMS_URL"):
        submit(cluster, spout)
    monkeypatch.setenv("TXBATCH_STREAMS_URL", f"{world.url}\n")
    assert kept(read(cluster, spout)) == by_content([["p0"], ["p1"], ["p2"]])


SEEDS = 150
STEPS = ("add", "add", "run", "run", "run", "withdraw", "trim", "trim", "delete")


class WithdrawnWorld:
    """One stream of numbers, each the id of its entry, and what became of them.

    Attributes:
        there: entries in the stream.
        read: entries that were committed.
        excused: entries that need not be read: withdrawn, or removed before anything was read.
        lost: entries that were trimmed or deleted unread: they have to be named, or skipped if the user wants that.
        is_another: whether the stream was made again, which may be refused though nothing is lost.
    """

    def __init__(self, client: Any, random: Random) -> None:
        self.client, self.random = client, random
        self.last = 0
        self.there: list[int] = []
        self.read: set[int] = set()
        self.excused: set[int] = set()
        self.lost: set[int] = set()
        self.is_another = False

    def add(self) -> None:
        for _ in range(self.random.randint(1, 8)):
            self.last += 1
            self.client.xadd("s", {"n": self.last}, id=f"{self.last}-0")
            self.there.append(self.last)

    def withdraw(self) -> None:
        count = min(len(self.there), self.random.randint(1, 3))
        gone = self.there[-count:] if self.random.random() < 0.4 else self.random.sample(self.there, count)
        if count:
            self.client.xdel("s", *(f"{number}-0" for number in gone))
        self._remove(gone, self.excused)

    def trim(self) -> None:
        left = self.random.randint(0, len(self.there))
        self.client.xtrim("s", maxlen=left, approximate=False)
        self._remove(self.there[: len(self.there) - left], self.lost)

    def delete(self) -> None:
        self.client.delete("s")
        self._remove(self.there, self.lost)
        self.is_another = bool(self.read)
        self.add()
        self.add()

    def _remove(self, gone: list[int], reason: set[int]) -> None:
        (reason if self.read else self.excused).update({*gone} - self.read)
        self.there = [number for number in self.there if number not in gone]

    def synchronise(self) -> None:
        """Notes what the topology has trimmed itself."""
        self.there = [int(entry_id.partition(b"-")[0]) for entry_id, _ in self.client.xrange("s")]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_entry_is_read_once_or_its_loss_is_named_whatever_becomes_of_the_stream(redis_backend, seed):
    random = Random(seed)
    world, take = WithdrawnWorld(redis_backend.client(), random), random.choice([1, 2, 3, 5])
    is_skipped, follow, trim = random.random() < 0.4, random.random() < 0.5, random.random() < 0.2
    options: dict[str, Any] = {"follow": follow, "trim": trim, "on_trimmed": "skip" if is_skipped else "fail"}
    spout = RedisStreams("s", fields={"n": int}, take=take, url=redis_backend.url, **options)
    with LocalCluster(seed=seed) as cluster:
        for step in random.choices(STEPS, k=12):
            if step != "run":
                getattr(world, step)()
                continue
            try:
                topology = collecting("t", spout, Keep())
                run = cluster.submit(topology, options=RunOptions(max_spout_pending=random.choice([1, 3])))
                for _ in range(20_000):  # bounded: far more than so few entries take
                    if not run.tick():
                        break
                    if follow and random.random() < 0.02 and world.last < 60:
                        world.add()
            except (SourceError, StateRefusedError, UserCodeError):
                assert world.lost - world.read or world.excused or world.is_another, "nothing is wrong with the stream"
                return
            assert not run.tick(), "the run goes on for ever"
            kept = [unpack(packed)[0] for packed in run.state("kept")]
            run.close()
            world.read = {*kept}
            world.synchronise()
            assert len(world.read) == len(kept), "an entry was read twice"
            assert world.read >= {*world.there}, "an entry is there and was not read"
            missing = {*range(1, world.last + 1)} - world.read - world.excused
            assert missing <= (world.lost if is_skipped else set()), "an entry is lost without a word"
