"""docs/dashboard-from-kafka.md: the dashboard adds up at every moment, and shows what was written in the end."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from rich.console import Console

from coordinator import LocalCluster
from tests.support.documents import python_of

ORDERS = 900


def shown(table):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(table)
    rows = (line.strip("│┃").split("│") for line in captured.get().splitlines() if "│" in line)
    return {name.strip(): value.strip() for name, value in rows}


@pytest.mark.kafka
def test_the_dashboard_adds_up_at_every_moment(broker, capsys, monkeypatch):
    modules = {}
    for name, text in zip(("orders", "shop", "dashboard"), python_of("docs/dashboard-from-kafka.md"), strict=True):
        modules[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
        exec(compile(text.replace("batch=2_000", "batch=100"), f"{name}.py", "exec"), vars(modules[name]))
    broker.create_topic("orders", 2)
    modules["orders"].main(broker.address, ORDERS)
    revenue = eval(capsys.readouterr().out.rpartition(" ")[0])
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(modules["shop"].topology(broker.address, follow=False))
        totals = []
        while not run.is_done:
            run.tick()
            picture = shown(modules["dashboard"].picture(cluster.client))
            assert picture["adds up"] == "yes"
            totals.append(float(picture["all"].replace(",", "")))
    assert totals == sorted(totals)
    assert len({*totals}) > 3
    assert {product: f"{cents / 100:,.2f}" for product, cents in revenue.items()}.items() <= picture.items()
    assert picture["all"] == f"{sum(revenue.values()) / 100:,.2f}"
