"""Which connections are admitted."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address

from app.http.server.connection_limits import LINGERING_MAX, ConnectionLimits


class Connections:
    """Counts the connections of a process, by address and in total. It is used on the event loop only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._admitted = 0
        self._of_address: Counter[str] = Counter()
        self._lingering = 0

    def admit(self, address: str) -> bool:
        """Counts a connection, unless there are as many as allowed. `release` ends what was admitted."""
        if self._admitted >= self._limits.connections_max:
            return False
        full = self._of_address[address] >= self._limits.address_connections_max
        if full and not self._is_proxy(address):
            return False
        self._admitted += 1
        self._of_address[address] += 1
        return True

    def release(self, address: str) -> None:
        """Ends a connection that was admitted."""
        self._admitted -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]

    def linger(self) -> bool:
        """Counts a refused connection that stays open for a moment, unless there are too many."""
        if self._lingering >= LINGERING_MAX:
            return False
        self._lingering += 1
        return True

    def end_linger(self) -> None:
        """Ends a connection that lingered."""
        self._lingering -= 1

    def _is_proxy(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._limits.proxies)
