"""``txbatch dead-letters`` on a real server."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from coordinator.operating.cli.commands.dead_letters import _chosen
from coordinator.operating.cli.letter_json import json_value
from state.codec import pack, unpack
from state.commits.dead_letters import add_letters, pack_letter
from state.commits.write_set import WriteSet
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.cli.in_process import txbatch
from tests.support.stores.builders import acquire, attempt, commit_of

pytestmark = pytest.mark.redis
CHECKED = "tests.support.topologies.checked_orders:topology"


def letter(value: Any, reason: str = "not a number") -> bytes:
    return pack_letter(
        "check", 1, source_component="lines", stream_id="default", fields=["line"], values=[value], reason=reason
    )


@pytest.fixture
def url(redis_backend: Backend) -> str:
    """Of a server with topology "wc": two letters of txid 1, none of 2, one of 3."""
    assert redis_backend.url is not None
    store = RedisStore(redis_backend.url, "wc")
    store.check_server()
    acquire(store)
    write_set = WriteSet()
    refused = {1: [letter("a\x1b[31m"), letter(b"\xff", "not text")], 3: [letter(Decimal("1.50"))]}
    add_letters(write_set, [(txid, [(4, letters)]) for txid, letters in refused.items()], 10)
    assert store.commit(commit_of(write_set, attempt(1), attempt(2), attempt(3))).status == "OK"
    store.close()
    return redis_backend.url


ended = partial(txbatch, "dead-letters")


def test_a_list_shows_reason_and_values_without_control_characters_and_continues_after_its_last(url, output) -> None:
    commands = ("list wc --limit 2", "list wc --after 1.0 --limit 1 --json", "list wc --after 1.1 --json")
    shown = [f"$ txbatch dead-letters {each}\n{output(f'dead-letters {each} --redis {url}')}" for each in commands]
    approved("".join(shown), "dead-letters-list", URL=url)


def test_an_export_is_complete_up_to_a_transaction_and_says_how_to_delete_it(url: str, capsys) -> None:
    assert ended("export", "wc", "--redis", url, "--until", "2") == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["id"] for line in shown.out.splitlines()] == ["1.0", "1.1"]
    assert shown.err == (
        "exported 2 dead letters of topology 'wc', complete up to txid 2; to delete them: "
        "`txbatch dead-letters drop wc --until 2`\n"
    )


def test_a_drop_deletes_what_was_exported_and_nothing_else(url: str, output) -> None:
    said = output(f"dead-letters drop wc --redis {url} --until 2 --yes")
    assert said == f"topology 'wc': 2 dead letters up to txid 2 deleted on {url}\n"
    printed = json.loads(output(f"dead-letters drop wc --redis {url} --until 2 --yes --json"))
    assert printed == {"topology": "wc", "until": 2, "dropped": 0}
    assert "3.0  check[1]" in output(f"dead-letters list wc --redis {url}")


def test_single_letters_are_dropped_and_the_others_stay(url: str, output) -> None:
    letters = ("--letter", "3.0", "--letter", "1.0")
    said = output(f"dead-letters drop wc --redis {url}", *letters, "--yes")
    assert said == f"topology 'wc': 2 dead letters 1.0, 3.0 deleted on {url}\n"
    assert [
        line.split(" ")[0] for line in output(f"dead-letters list wc --redis {url}").splitlines() if "<-" in line
    ] == ["1.1"]
    printed = json.loads(output(f"dead-letters drop wc --redis {url} --letter 1.1 --yes --json"))
    assert printed == {"topology": "wc", "letters": ["1.1"], "dropped": 1}


MISTAKEN = [
    *("drop wc --yes", "drop wc --until 1 --letter 1.0", "drop wc --letter 1.0 --letter 2.0 --yes"),
    *("drop wc --letter 1 --yes", "republish m:f --letter 1.0 --component check", "list others", "export others"),
    *("drop others --until 1 --yes", f"republish {CHECKED} -p input=README.md", "list wc --after 3"),
    "drop wc --until 3",
]
EARLY = "drop wc --until 4 --yes"


def test_a_mistake_changes_nothing_and_is_explained(url: str, output, complaint) -> None:
    said = [f"$ txbatch dead-letters {each}\n{complaint(f'dead-letters {each} --redis {url}')}" for each in MISTAKEN]
    early = complaint(f"dead-letters drop wc --until 4 --yes --redis {url}", code=4)
    approved(
        "".join([*said, f"$ txbatch dead-letters drop wc --until 4 --yes\n{early}"]), "dead-letters-mistakes", URL=url
    )
    assert json.loads(output(f"dead-letters list wc --redis {url} --json"))["stored"] == 3


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, 2.5, None, True, "ä"], [1, 2.5, None, True, "ä"]),
        (float("nan"), {"$float": "nan"}),
        (b"text", {"$text": "text"}),
        (b"\xff", {"$bytes": "/w=="}),
        ((1, (2,)), {"$tuple": [1, {"$tuple": [2]}]}),
        ({3, 1}, {"$set": [1, 3]}),
        (frozenset("b"), {"$frozenset": ["b"]}),
        ({"a": b"x"}, {"a": {"$text": "x"}}),
        ({1: "x"}, {"$map": [[1, "x"]]}),
        ({"$date": "2026-11-21"}, {"$map": [["$date", "2026-11-21"]]}),
        (dt.date(2026, 11, 21), {"$date": "2026-11-21"}),
        (dt.datetime(2026, 11, 21, 1, 2, 3, tzinfo=dt.UTC), {"$datetime": "2026-11-21T01:02:03+00:00"}),
        (2**70, 2**70),
    ],
)
def test_every_value_that_can_be_stored_has_a_form_of_its_own_in_json(value: Any, shown: Any) -> None:
    found = json_value(unpack(pack(value)))
    assert found == shown
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("components", "letters", "chosen"),
    [([], ["17.0", "18.2"], [(17, 0), (18, 2)]), (["check"], [], ["check"]), ([], [], "all")],
)
def test_letters_or_components_or_all_are_republished(components: Any, letters: Any, chosen: Any) -> None:
    assert _chosen(components, letters) == chosen
