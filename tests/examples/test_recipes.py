"""docs/recipes.md: each job leaves what plain Python makes of the same input."""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator import LocalCluster, plan
from tests.support.documents import executed, python_of

PAGE = "docs/recipes.md"
(COUNT, TWO_FIELDS, JOIN, TWICE, TOP, HOURLY, TABLE, ALERTS, KAFKA, PARQUET, SERVICE) = range(11)
LINES_MAX = 15
Order = dict[str, Any]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """Orders in two files of the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    draw, found = Random(7), []
    for part in range(2):
        made = [
            {
                "id": f"o{part}-{number}",
                "customer": draw.choice(["ann", "bob", "cid|x"]),
                "product": draw.choice(["apple", "pear"]),
                "cents": draw.randrange(2_000),
                "placed_at": f"2026-11-{draw.choice([27, 28])}T{draw.randrange(24):02}:15:00+00:00",
            }
            for number in range(60)
        ]
        with (tmp_path / "orders" / f"{part}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, made[0])
            writer.writeheader()
            writer.writerows(made)
        found += made
    return found


@pytest.fixture
def payments(tmp_path: Path, orders: list[Order]) -> list[tuple[str, int]]:
    """Payments of most orders, in another order, some delivered twice."""
    draw = Random(8)
    paid = [(each["id"], each["cents"]) for each in draw.sample(orders, 90)]
    delivered = [*paid, *draw.sample(paid, 20)]
    (tmp_path / "payments").mkdir()
    lines = (json.dumps({"order": order, "paid": cents}) + "\n" for order, cents in delivered)
    (tmp_path / "payments" / "all.jsonl").write_text("".join(lines))
    return paid


def left(recipe: int, *states: str, **parameters: Any) -> Any:
    """What a recipe leaves in its states."""
    topology = executed(PAGE, recipe, {"__name__": "job"})["topology"](**parameters)
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(topology)
        run.run_until_idle()
        found = tuple(run.state(name) for name in states)
    return found[0] if len(states) == 1 else found


def summed(orders: list[Order], *key: str) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for each in orders:
        sums[tuple(each[name] for name in key) if len(key) > 1 else each[key[0]]] += each["cents"]
    return dict(sums)


def day_of(order: Order) -> date:
    return datetime.fromisoformat(order["placed_at"]).date()


def test_each_recipe_is_short_and_run_here() -> None:
    blocks = python_of(PAGE)
    assert len(blocks) == SERVICE + 1
    assert [each for each in blocks if len([line for line in each.splitlines() if line.strip()]) > LINES_MAX] == []


def test_words_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("to be or\nnot to be\n")
    assert left(COUNT, "counts") == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_cents_are_summed_by_two_fields(orders: list[Order]) -> None:
    assert left(TWO_FIELDS, "cents") == summed(orders, "customer", "product")


def test_orders_are_joined_with_their_payments(orders: list[Order], payments: list[tuple[str, int]]) -> None:
    product_of = {each["id"]: each["product"] for each in orders}
    lines = Path("payments/all.jsonl").read_text().splitlines()[: len(payments)]
    Path("payments/all.jsonl").write_text("\n".join(lines) + "\n")  # each once: an order is forgotten with its payment
    expected: Counter[str] = Counter()
    for order, cents in payments:
        expected[product_of[order]] += cents
    paid, unpaid = left(JOIN, "paid", "unpaid")
    assert paid == expected
    assert set(unpaid) == product_of.keys() - {order for order, _ in payments}


def test_what_is_delivered_twice_counts_once(payments: list[tuple[str, int]]) -> None:
    assert left(TWICE, "paid") == dict(payments)


def test_products_are_ranked_by_day(orders: list[Order]) -> None:
    expected: dict[date, Counter[str]] = defaultdict(Counter)
    for each in orders:
        expected[day_of(each)][each["product"]] += each["cents"]
    assert left(TOP, "sales") == expected


def test_orders_are_counted_by_the_hour(orders: list[Order]) -> None:
    expected: dict[str, Counter[str]] = defaultdict(Counter)
    for each in orders:
        expected[each["placed_at"][:13]][each["product"]] += 1
    assert left(HOURLY, "orders") == expected


def test_orders_get_the_city_of_their_customer(tmp_path: Path, orders: list[Order]) -> None:
    (tmp_path / "customers.csv").write_text("customer,city\nann,Rome\nbob,Oslo\ncid|x,Rome\n")
    sums = summed(orders, "customer")
    assert left(TABLE, "sold") == {"Rome": sums["ann"] + sums["cid|x"], "Oslo": sums["bob"]}


def test_large_orders_become_alerts(orders: list[Order]) -> None:
    alerts = left(ALERTS, "alerts")
    assert [each["id"] for each in alerts.values()] == [each["id"] for each in orders if each["cents"] >= 1_000]


def test_a_topic_is_planned_without_a_broker() -> None:
    assert "views" in str(plan(executed(PAGE, KAFKA, {"__name__": "job"})["topology"](servers="localhost:1")))


def test_parquet_is_planned_without_a_network_and_summed(tmp_path: Path, orders: list[Order]) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    assert "customers" in str(plan(executed(PAGE, PARQUET, {"__name__": "job"})["topology"]()))
    columns = {name: [each[name] for each in orders] for name in ("customer", "cents")}
    parquet.write_table(arrow.table(columns), tmp_path / "all.parquet")
    assert left(PARQUET, "cents", input=f"file://{tmp_path}/*.parquet") == summed(orders, "customer")


@pytest.fixture
def service() -> Iterator[str]:
    """A web service on this machine that knows the countries of customers."""

    class Countries(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"country": "no" if self.path.endswith("bob") else "it"}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Countries) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_web_service_is_asked(orders: list[Order], service: str) -> None:
    job = executed(PAGE, SERVICE, {"__name__": "job"})
    job["country_of"].__defaults__ = (service,)
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(job["topology"]())
        run.run_until_idle()
        sums = summed(orders, "customer")
        assert run.state("sold") == {"no": sums["bob"], "it": sums["ann"] + sums["cid|x"]}
