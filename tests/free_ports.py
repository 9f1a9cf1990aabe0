"""Ports for servers that tests start, where a port must be known before its server."""

import random
import socket
from contextlib import ExitStack

LOWEST, HIGHEST = 10_000, 32_000
"""Below the ports that systems give to outgoing connections, of which busy tests have thousands."""


def free_ports(count=1):
    """Return consecutive ports that nothing listens on."""
    while True:
        first = random.SystemRandom().randint(LOWEST, HIGHEST - count)
        ports = [*range(first, first + count)]
        with ExitStack() as opened:
            try:
                for port in ports:
                    opened.enter_context(socket.create_server(("", port)))
            except OSError:
                continue
            return ports
