"""``txbatch verify`` as users type it, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.cli.in_process import txbatch
from tests.support.topologies.kept_states import kept_topology

pytestmark = pytest.mark.redis

COUNTS = "{kept}:counts"
FACTORY = "tests.support.topologies.kept_states:kept_topology"


@pytest.fixture
def url(redis_backend: Backend) -> str:
    assert redis_backend.url is not None
    with LocalCluster(seed=1, redis_url=redis_backend.url) as cluster:
        cluster.submit(kept_topology()).run_until_idle()
    return redis_backend.url


def test_a_sound_topology_ends_with_zero_and_damage_with_four_and_a_remedy(url, redis_backend, output):
    sound = output(f"verify kept --redis {url}")
    redis_backend.client().set("{kept}:theirs", "x")
    as_json = output(f"verify kept --redis {url} --json")
    redis_backend.client().hset(COUNTS, "word1", "many")
    damaged = output(f"verify kept --redis {url}", code=4)
    approved(f"{sound}\n{as_json}\n{damaged}", "verify", URL=url)


def test_what_a_key_holds_cannot_write_to_the_terminal(url, redis_backend, output):
    redis_backend.client().hset(COUNTS, "word1", b"\x1b[31mred\nOK  all is well")
    redis_backend.client().set("{kept}:\x1b[2J", "x")
    shown = output(f"verify kept --redis {url}", code=4)
    assert "\x1b" not in shown
    assert "OK  all is well" not in shown.splitlines()


MISTAKEN = [
    *("others", "kept -p lines=1", f"other --refold {FACTORY}", f"kept --refold {FACTORY} -p is_opaque=true"),
    f"kept --refold {FACTORY} --master yarn",
]


def test_mistakes_are_usage_errors(url, complaint):
    said = [f"$ txbatch verify {each}\n{complaint(f'verify {each} --redis {url}')}" for each in MISTAKEN]
    approved("".join(said), "verify-mistakes", URL=url)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_of_files_verifies_against_its_refold_until_a_value_is_altered(folder, redis_backend, capsys, output):
    url = redis_backend.url
    assert url is not None
    folder.write_job()
    folder.write("input.txt", "".join(f"line {number}\n" for number in range(95)))
    job, spark = "job_of_lines:topology", ("--master", "local[2]")
    assert txbatch("run", job, "--redis", url, *spark) == 0
    capsys.readouterr()
    assert "OK    refold: recomputed up to txid 10: its state is equal" in output(
        f"verify lines --redis {url} --refold", job, *spark
    )
    redis_backend.client().hset("{lines}:lines", "all", "96")
    assert txbatch("verify", "lines", "--redis", url) == 0
    assert "field 'all' holds '96', expected '95'" in output(
        f"verify lines --redis {url} --refold", job, *spark, code=4
    )
    assert redis_backend.client().keys("*refold*") == []
    assert not Path(".txbatch").exists()
