"""A TCP proxy that can swallow what it should pass on: a replica behind it lags, and nobody sees a connection end.

SIGSTOP on a replica does not do it: the kernels on both sides keep taking what is sent.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class BlackHole:
    """Passes connections on to a port of this machine, until it is told to swallow.

    Args:
        port: where to.

    Attributes:
        port: where it listens itself.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing gets through, in either direction; connections stay open."""
        self._passes.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._passes.is_set():
                    sink.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
