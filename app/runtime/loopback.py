"""Ports on the loopback interface."""

import secrets
import socket

LOOPBACK = "127.0.0.1"
# Below the range that systems hand out to outgoing connections, so that none of those takes the port of a
# server while it restarts.
FIRST, LAST = 15_000, 32_000


class NoPortError(Exception):
    """No port was free in a hundred tries; the machine has an unusual number of listeners."""


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    for _ in range(100):
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if is_free(port):
            return port
    raise NoPortError(f"found no free port on {LOOPBACK} from {FIRST} to {LAST}")


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of the last run that lingers is no listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
