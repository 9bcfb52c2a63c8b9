"""What the nemesis is made of: its proxy, its fates and its figures."""

from __future__ import annotations

import signal
import socket
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from state.fault_points import POINTS
from tests.support.chaos.nemesis.driver_spec import Fate, Notes, fate_visit
from tests.support.chaos.nemesis.fates import (
    ELSEWHERE_ROOMS,
    draw_fate,
    drop_points,
    end_points,
    room_of,
    running_points,
)
from tests.support.chaos.nemesis.proxy import BlackHoleProxy
from tests.support.chaos.nemesis.record import Record

ANSWER_TIMEOUT_S = 10.0


class Echo:
    """Listens, and accepts connections when asked to."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(ANSWER_TIMEOUT_S)
        self.port: int = self.listener.getsockname()[1]

    def accept(self) -> socket.socket:
        accepted, _ = self.listener.accept()
        accepted.settimeout(ANSWER_TIMEOUT_S)
        return accepted


def has_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(16) == b""
    except ConnectionResetError:  # what it had sent was not read yet
        return True


@pytest.fixture
def servers() -> Iterator[tuple[Echo, Echo]]:
    pair = Echo(), Echo()
    yield pair
    for server in pair:
        server.listener.close()


@pytest.fixture
def proxy(servers) -> Iterator[BlackHoleProxy]:
    made = BlackHoleProxy(servers[0].port)
    yield made
    made.close()


def test_a_silent_proxy_holds_bytes_and_delivers_them_when_it_speaks(servers, proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), ANSWER_TIMEOUT_S) as near, servers[0].accept() as far:
        near.sendall(b"one")
        assert far.recv(16) == b"one"
        proxy.fall_silent()
        near.sendall(b"two")
        far.settimeout(0.1)
        with pytest.raises(TimeoutError):
            far.recv(16)
        proxy.speak()
        far.settimeout(ANSWER_TIMEOUT_S)
        assert far.recv(16) == b"two"
        far.sendall(b"three")
        assert near.recv(16) == b"three"


def test_a_proxy_that_points_elsewhere_ends_old_connections_and_forgets_what_it_held(servers, proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), ANSWER_TIMEOUT_S) as near, servers[0].accept() as far:
        near.sendall(b"one")
        assert far.recv(16) == b"one"
        proxy.fall_silent()
        near.sendall(b"lost")
        proxy.point_to(servers[1].port)
        assert has_ended(near)
        assert has_ended(far)
    with socket.create_connection(("127.0.0.1", proxy.port), ANSWER_TIMEOUT_S) as near, servers[1].accept() as far:
        near.sendall(b"two")
        assert far.recv(16) == b"two"


def test_every_fault_point_is_aimed_at_but_those_of_plain_topologies_and_folders():
    aimed_at = {*running_points(on_spark=False), *end_points(), *drop_points()}
    assert set(POINTS) - aimed_at == {point for point in POINTS if room_of(point) in ELSEWHERE_ROOMS}


def test_points_at_which_few_drivers_were_killed_are_drawn_first():
    killed: Counter[str] = Counter()
    draw = Random(1)
    points = running_points(on_spark=False)
    for _ in range(10 * len(points)):
        killed[draw_fate(draw, points, killed).point] += 1
    assert min(killed[point] for point in points) >= 5


def test_a_driver_is_signalled_at_the_visit_that_it_is_fated_for(tmp_path, monkeypatch):
    sent: list[int] = []
    monkeypatch.setattr("os.kill", lambda _pid, number: sent.append(number))
    notes = Notes(str(tmp_path / "notes"))
    visit = fate_visit(Fate("commit.sending", 2), notes)
    for point in ("commit.sending", "commit.answered", "commit.sending", "commit.sending"):
        visit(point)
    assert sent == [signal.SIGKILL]
    assert notes.all()["fate"]["point"] == "commit.sending"


def test_a_fate_that_repeats_does_so_while_it_is_stirred(tmp_path, monkeypatch):
    sent: list[int] = []
    monkeypatch.setattr("os.kill", lambda _pid, number: sent.append(number))
    notes = Notes(str(tmp_path / "notes"))
    visit = fate_visit(Fate("group.submitting", 2, signal.SIGSTOP, repeats=True), notes)
    for change, expected in ((notes.calm, 0), (notes.stir, 3), (notes.calm, 3)):
        change()
        for _ in range(6):
            visit("group.submitting")
        assert sent == [signal.SIGSTOP] * expected


def test_figures_of_two_calls_add_up_in_a_file(tmp_path):
    path = tmp_path / "figures.json"
    for seconds in (1.0, 3.0):
        record = Record()
        record.strikes["kill -9 of a driver"] += 2
        record.strikes["FUNCTION FLUSH"] += 1
        record.recovered("the process", seconds)
        summed = Record.from_file(path)
        summed.add(record)
        path.write_text(summed.to_json(), encoding="utf-8")
    found = Record.from_file(path)
    assert found.kills == 4
    assert found.recoveries == {"the process": [1.0, 3.0]}
    assert "| the process | 2 | 2.00 s | 3.00 s |" in found.to_table()
