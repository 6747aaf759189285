"""Ports on the loopback interface."""

import secrets
import socket

LOOPBACK = "127.0.0.1"
# Below the range of ports for outgoing connections, so that no such connection takes a server's port while it restarts.
FIRST, LAST = 15_000, 32_000


class NoPortError(Exception):
    """No free port was found in a hundred tries."""


def free_port() -> int:
    """A port without a listener at this moment."""
    for _ in range(100):
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if is_free(port):
            return port
    raise NoPortError(f"found no free port on {LOOPBACK} from {FIRST} to {LAST}")


def is_free(port: int) -> bool:
    """Whether a server can listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this option too: a closing connection of the last run does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
