"""Parts, keys that expire, Decimals, JSON and HyperLogLogs: sound ones are called sound, each damage is named."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from coordinator.operating.inspection.finding import Finding, Weight
from coordinator.operating.inspection.verify.refold import refold
from coordinator.operating.inspection.verify.verifier import Verification, Verifier
from coordinator.testing.cluster.cluster import LocalCluster
from state.redis_admin.topology import RedisTopology
from tests.conftest import Backend
from tests.support.topologies.typed_states import TOPOLOGY_ID, typed_topology

pytestmark = pytest.mark.redis
VIEWS = "{typed}:views:2026-11-21"


class Typed:
    """The topology of `typed_states` on a real server, run to its end."""

    def __init__(self, backend: Backend) -> None:
        assert backend.url is not None
        self.url, self.client = backend.url, backend.client()
        self.topology = RedisTopology(self.url, TOPOLOGY_ID, client=self.client)
        self.locally(typed_topology(), self.url, None)

    @staticmethod
    def locally(topology: Any, url: str, options: Any, observers: Any = ()) -> None:
        with LocalCluster(seed=1, redis_url=url) as cluster:
            cluster.submit(topology, options=options).run_until_idle()

    def verify(self, *given: Any) -> Verification:
        return Verifier(self.topology.records()).verify(*given)

    def refolded(self) -> Verification:
        again = partial(refold, topology=typed_topology(), run_to=self.locally, server=lambda: nullcontext(self.url))
        return self.verify(typed_topology(), again)


@pytest.fixture
def typed(redis_backend: Backend) -> Typed:
    return Typed(redis_backend)


def faults(verdict: Verification) -> list[Finding]:
    return [finding for finding in verdict.findings if finding.weight is not Weight.OK]


def test_what_a_run_leaves_is_sound(typed):
    verdict = typed.verify()
    assert not faults(verdict)
    (keys,) = [finding.found for finding in verdict.findings if finding.subject == "keys"]
    assert keys.endswith("34 of them declared states; types match, none expires but those declared to")
    assert "hash '{typed}:views': 7 entries, each as declared" in [finding.found for finding in verdict.findings]


@pytest.mark.parametrize(
    ("damage", "weight", "part"),
    [
        (lambda c: c.persist(VIEWS), Weight.WARN, f"were declared to expire and do not: '{VIEWS}'"),
        (lambda c: c.pexpire("{typed}:last:3", 9**9), Weight.FAIL, "keys expire: '{typed}:last:3' in"),
        (lambda c: c.hset("{typed}:views:monday", "a", "1"), Weight.WARN, "not declared: '{typed}:views:monday'"),
        (lambda c: c.hset("{typed}:views", "a", "1"), Weight.WARN, "not declared: '{typed}:views', a hash"),
        (lambda c: [c.delete(VIEWS), c.set(VIEWS, 1, ex=99)], Weight.FAIL, "is a string, expected a hash"),
        (lambda c: c.hset(VIEWS, "a", "x"), Weight.FAIL, "field 'a' holds 'x', not an integer"),
        (lambda c: c.hset("{typed}:money", "1", "0.5"), Weight.FAIL, "field '1' holds '0.5', not an integer"),
        (lambda c: c.hset("{typed}:notes", "a", "{"), Weight.FAIL, "field 'a' holds '{', not JSON"),
        (lambda c: c.set("{typed}:visitors:x", "x"), Weight.FAIL, "it holds 'x', not a HyperLogLog"),
    ],
    ids=["lasting", "expiring", "odd part", "no part", "type of a part", "value", "Decimal", "JSON", "HyperLogLog"],
)
def test_each_damage_is_found_and_named(typed: Typed, damage: Callable[[Any], Any], weight: Weight, part: str) -> None:
    damage(typed.client)
    (fault,) = faults(typed.verify())
    assert fault.weight is weight
    assert part in fault.found


def test_a_refold_compares_parts_and_leaves_out_what_expires(typed):
    (warning,) = faults(typed.refolded())
    assert (warning.weight, warning.found) == (Weight.WARN, "'views' not compared")
    typed.client.set("{typed}:last:3", "another")
    typed.client.hset(VIEWS, "a", "1")
    typed.client.pfadd("{typed}:visitors:new", "a")
    differing = [finding.found for finding in faults(typed.refolded()) if finding.weight is Weight.FAIL]
    assert len(differing) == 2
    assert differing[0].startswith("state '{typed}:last:3' differs from its refold in 1 place")
    assert differing[1].startswith("state '{typed}:visitors:new' differs from its refold in 1 place")
