"""Addresses that the service may connect to for a client: the public internet, and the operator's additions.

A client's URL gives access to the service's network, unless every address that it resolves to is checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS: Final = (80, 443, 8080, 8443)
URL_CHARACTERS_MAX: Final = 2_000
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}

# From IANA's registries of special-purpose addresses. Listed here, because Python's own flags differ by release.
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # A public address that is the metadata service inside every machine of one cloud.
        "168.63.129.16/32",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
)
_PUBLIC_V6: Final = ipaddress.IPv6Network("2000::/3")
# Addresses that embed an IPv4 address in their last four bytes.
_EMBEDDING: Final = (ipaddress.IPv6Network("::ffff:0:0/96"), ipaddress.IPv6Network("64:ff9b::/96"))


class AddressRefused(Exception):
    """An address that must not be connected to. The message has the reason."""


def not_reachable(host: str, setting: str) -> AddressRefused:
    """The error for a host that has no address, or one that is not admitted.

    It is one and the same, and names no address: otherwise it would disclose which names the internal network has.
    `setting`: that of the operator which admits addresses.
    """
    return AddressRefused(
        f"{host} could not be looked up, or is a private address; the operator can add it to {setting}_ALLOW"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The parts of a URL before name resolution. `host` is without the brackets of an IPv6 address."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The allowed targets. `networks` and `hosts` are the operator's additions, and trusted.

    `ports`: those that are allowed elsewhere; None if the caller checks them. `setting`: what the operator's settings
    begin with.
    """

    setting: str = "HEADWATER_WEBHOOK"
    http: bool = False
    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    ports: tuple[int, ...] | None = PORTS

    @classmethod
    def of(cls, allow: Sequence[str], *, http: bool, setting: str = "HEADWATER_WEBHOOK") -> Rules:
        """The rules with these networks (in CIDR form) and hosts."""
        networks, hosts = [], []
        for entry in allow:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                hosts.append(_normal(entry))
        return cls(setting=setting, http=http, networks=tuple(networks), hosts=frozenset(hosts))

    def target(self, url: str) -> Target:
        """The target of a URL. Raises AddressRefused for an invalid or forbidden URL; does not resolve its host."""
        if len(url) > URL_CHARACTERS_MAX:
            raise AddressRefused(f"it has more than {URL_CHARACTERS_MAX} characters")
        # Parsers ignore some of these characters, but not the same ones.
        if not url.isascii() or any(character <= " " or character in '\\"<>^`{|}\x7f' for character in url):
            raise AddressRefused("it has characters that a URL cannot contain; encode them (a host as xn--…)")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise AddressRefused(f"it is not a URL: {error}") from None
        schemes = ("https", "http") if self.http else ("https",)
        if parts.scheme not in schemes:
            others = "" if self.http else f"; http:// is off, and {self.setting}_HTTP=true turns it on"
            raise AddressRefused(f"expected {' or '.join(f'{scheme}://' for scheme in schemes)}{others}")
        if "@" in parts.netloc:
            raise AddressRefused("it has a user name; a receiver identifies the service by the signature")
        if "#" in url:
            raise AddressRefused("it has a fragment, which is never sent")
        host = _normal(parts.hostname or "")
        if not (_HOST.fullmatch(host) or _is_v6(host)):
            raise AddressRefused(f"{host!r} is not a host name or an address")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(
            scheme=parts.scheme,
            host=host,
            port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
            path=path,
        )

    def check(self, target: Target, addresses: Sequence[str]) -> list[str]:
        """The addresses of a host. Raises AddressRefused if there is no address, or if one of them is forbidden."""
        if not addresses:
            raise not_reachable(target.host, self.setting)
        others = [] if target.host in self.hosts else [*self._not_admitted(addresses)]
        if not all(map(is_public, others)):
            raise not_reachable(target.host, self.setting)
        if others and self.ports is not None and target.port not in self.ports:
            raise AddressRefused(
                f"port {target.port} is not allowed; expected one of {', '.join(map(str, self.ports))}, or a host "
                "that the operator has admitted"
            )
        return list(addresses)

    def _not_admitted(self, addresses: Sequence[str]) -> Iterator[Address]:
        """Those that are not in a network of the operator's."""
        for address in map(ipaddress.ip_address, addresses):
            if not any(address in network for network in self.networks):
                yield address


def is_public(address: Address) -> bool:
    """Whether an address is a unicast address of the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _EMBEDDING):
            return is_public(ipaddress.IPv4Address(address.packed[-4:]))
        if address not in _PUBLIC_V6:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


def _normal(host: str) -> str:
    return host.lower().removesuffix(".")


def _is_v6(host: str) -> bool:
    try:
        return ipaddress.IPv6Address(host).scope_id is None
    except ValueError:
        return False
