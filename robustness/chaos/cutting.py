"""A relay between clients and the service that cuts answers off in the middle."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit

__all__ = ["Relay", "cutting"]

FIRST, LAST = 50, 2_000_000
"""After so many bytes of answers a connection is cut, the least and the most; its logarithm is drawn."""


class Relay:
    """Listens on a port of its own; every connection through it is cut after some bytes."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.cut = 0
        """How many connections were cut."""

    def run(self) -> None:
        """Take connections until the socket is closed."""
        chance = random.Random(10)
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                limit = int(FIRST * (LAST / FIRST) ** chance.random())
                Thread(target=self._pass_on, args=(client, limit), daemon=True).start()

    def _pass_on(self, client: socket.socket, limit: int) -> None:
        with client, socket.create_connection(self.target) as server:
            Thread(target=_copy, args=(client, server), daemon=True).start()
            with suppress(OSError):
                while limit > 0 and (data := server.recv(65536)):
                    client.sendall(data[:limit])
                    limit -= len(data)
            self.cut += limit <= 0
            for end in (client, server):  # closing alone waits for the thread that reads from it
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@contextmanager
def cutting(target: str) -> Iterator[Relay]:
    """Run a relay in front of a service."""
    relay = Relay(target)
    Thread(target=relay.run, daemon=True).start()
    try:
        yield relay
    finally:
        relay.listening.close()
