"""A TCP proxy on loopback that can fall silent: what arrives is swallowed or held, and nobody's connection ends.

A peer that is killed resets its connections, and a stopped one still has its kernel acknowledge; a network that
drops everything does neither, and only a proxy shows that.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading

CHUNK = 1 << 16
WAKE_S = 0.02


class _Pair:
    """A connection and its continuation; bytes that are held wait in `held` until the proxy speaks again."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.ends = {near: far, far: near}
        self.held: list[tuple[socket.socket, bytes]] = []

    def close(self) -> None:
        for end in self.ends:
            end.close()


class BlackHoleProxy:
    """Forwards connections to a port until it is told otherwise; one thread.

    Args:
        target_port: on loopback, where new connections lead.

    Attributes:
        port: where it listens.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._is_silent = self._is_closed = False
        self._pairs: dict[socket.socket, _Pair] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="black-hole-proxy", daemon=True)
        self._thread.start()

    def fall_silent(self) -> None:
        """From now on bytes go nowhere, in either direction; connections stay open, and new ones get no answer."""
        with self._lock:
            self._is_silent = True

    def speak(self) -> None:
        """Delivers what was held, and forwards again."""
        with self._lock:
            self._is_silent = False
            for pair in {id(pair): pair for pair in self._pairs.values()}.values():
                held, pair.held = pair.held, []
                for end, data in held:
                    self._send(pair, end, data)

    def point_to(self, target_port: int) -> None:
        """Leads new connections to another port, ends the old ones with all that was held, and speaks."""
        with self._lock:
            self._target_port, self._is_silent = target_port, False
            for pair in list(self._pairs.values()):
                self._drop(pair)

    def close(self) -> None:
        """Ends all connections and the thread."""
        with self._lock:
            self._is_closed = True
        self._thread.join()
        for pair in list(self._pairs.values()):
            self._drop(pair)
        self._listener.close()
        self._selector.close()

    def _run(self) -> None:
        while True:
            ready = self._selector.select(WAKE_S)
            with self._lock:
                if self._is_closed:
                    return
                for key, _ in ready:
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._pairs:
                        self._forward(self._pairs[key.fileobj], key.fileobj)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self._target_port), 1.0)
            except OSError:
                near.close()
                return
            pair = _Pair(near, far)
            for end in pair.ends:
                end.settimeout(5.0)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._pairs[end] = pair
                self._selector.register(end, selectors.EVENT_READ)

    def _forward(self, pair: _Pair, end: socket.socket) -> None:
        try:
            data = end.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._drop(pair)
        elif self._is_silent:
            pair.held.append((pair.ends[end], data))
        else:
            self._send(pair, pair.ends[end], data)

    def _send(self, pair: _Pair, end: socket.socket, data: bytes) -> None:
        try:
            end.sendall(data)
        except OSError:
            self._drop(pair)

    def _drop(self, pair: _Pair) -> None:
        for end in pair.ends:
            if self._pairs.pop(end, None) is not None:
                self._selector.unregister(end)
        pair.close()
