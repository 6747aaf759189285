"""A cluster as a client states it: its address, how to identify oneself, and how connections are encrypted."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException

from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.outbound.addresses import AddressRefused, Rules, Target
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector
from app.infra.outbound.foreign import foreign_text

SERVERS_MAX: Final = 20
SERVERS_CHARACTERS_MAX: Final = 2_000
_DEFAULT_PORT: Final = 9092
# Those below belong to services of other kinds, which a client could reach with a forged cluster.
_PORT_MIN: Final = 1024
_PORT_MAX: Final = 65_535
_HTTPS: Final = 443
_SERVER: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9_]*://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?"
)
# They say that something did not happen, and not why.
_UNEXPLAINED: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._WAIT_COORD}
)
PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors of brokers that start, end, or hand partitions over: the same request succeeds later."""
_PERMANENT: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._INVALID_ARG,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)


class Protocol(str, Enum):
    """How connections are encrypted, and whether a client identifies itself."""

    PLAINTEXT = "plaintext"
    SSL = "ssl"
    SASL_PLAINTEXT = "sasl_plaintext"
    SASL_SSL = "sasl_ssl"

    @property
    def encrypts(self) -> bool:
        """Whether connections are encrypted."""
        return self in {Protocol.SSL, Protocol.SASL_SSL}

    @property
    def identifies(self) -> bool:
        """Whether a client sends a user name and a password."""
        return self in {Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL}


class Mechanism(str, Enum):
    """How a password is sent."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster. `servers`: `host:port` of some brokers. `authority`: the PEM text of the authorities to trust, if they
    are not the public ones.
    """

    servers: tuple[str, ...]
    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Mechanism = Mechanism.PLAIN
    username: str | None = None
    password: str | None = None
    authority: str | None = None


def servers_of(text: str) -> tuple[str, ...]:
    """The servers in a list that is separated by commas, each with its port. Raises ValueError with the reason."""
    if len(text) > SERVERS_CHARACTERS_MAX:
        raise ValueError(f"it has more than {SERVERS_CHARACTERS_MAX} characters")
    servers = []
    for part in text.split(","):
        server = _SERVER.fullmatch(part.strip())
        if server is None:
            raise ValueError(f"{part.strip()!r} is not a server; expected host:port")
        servers.append(f"{server[1].lower()}:{server[2] or _DEFAULT_PORT}")
    if len(servers) > SERVERS_MAX:
        raise ValueError(f"it has more than {SERVERS_MAX} servers")
    return tuple(dict.fromkeys(servers))


@dataclass(frozen=True, kw_only=True, slots=True)
class Brokers:
    """The brokers that may be connected to."""

    cluster: Cluster
    connector: Connector
    """It looks hosts up, and checks them."""
    errors: dict[int, KafkaError] = field(default_factory=dict)
    """The errors of connections that librdkafka has reported: by code, the last one of each."""

    @classmethod
    def of(cls, cluster: Cluster, rules: Rules) -> Brokers:
        """The brokers under these rules. Every port is allowed from 1024 on."""
        return cls(cluster=cluster, connector=_connector(rules))

    def check(self, servers: Iterable[tuple[str, int]] | None = None) -> None:
        """Checks the addresses of the cluster's servers, or of those that a broker has named.

        Raises SourceFailed if one of them may not be connected to, SourceUnavailable if none could be looked up.
        """
        if not self.cluster.protocol.encrypts and not self.connector.rules.http:
            raise SourceFailed(
                f"connections are not encrypted (security_protocol {self.cluster.protocol.value}); this service "
                "requires ssl or sasl_ssl"
            )
        for host, port in servers if servers is not None else map(_host_and_port, self.cluster.servers):
            if not (port == _HTTPS or _PORT_MIN <= port <= _PORT_MAX):
                raise SourceFailed(
                    f"port {port} of broker {host} is not allowed; expected 443, or 1024 to 65535"
                )
            try:
                target = Target(scheme="https", host=host.lower(), port=port, path="/")
                self.connector.addresses(target, CONNECT_SECONDS_MAX)
            except AddressRefused as error:
                raise SourceFailed(f"a broker may not be connected to: {error}") from None
            except OSError as error:
                raise SourceUnavailable(f"a broker cannot be looked up: {error}") from None

    def settings(self, more: dict[str, Any]) -> dict[str, Any]:
        """The settings of librdkafka for a client, with `more`."""
        cluster = self.cluster
        options: dict[str, Any] = {
            "bootstrap.servers": ",".join(cluster.servers),
            "client.id": "headwater",
            "security.protocol": cluster.protocol.value,
            "allow.auto.create.topics": False,
            "socket.timeout.ms": 10_000,
            "socket.connection.setup.timeout.ms": 5_000,
            "reconnect.backoff.max.ms": 1_000,
            # What goes wrong is reported by the calls; librdkafka would print it.
            "log_level": 0,
            "error_cb": self._note,
        }
        if cluster.protocol.identifies:
            options |= {
                "sasl.mechanism": cluster.mechanism.value,
                "sasl.username": cluster.username or "",
                "sasl.password": cluster.password or "",
            }
        if cluster.protocol.encrypts:
            if cluster.authority is None:
                options["ssl.ca.location"] = ssl.get_default_verify_paths().cafile or "probe"
            else:
                options["ssl.ca.pem"] = cluster.authority
        return options | more

    def _note(self, error: KafkaError) -> None:
        self.errors[error.code()] = error

    @property
    def all_down(self) -> bool:
        """Whether librdkafka has found no broker that answers."""
        return KafkaError._ALL_BROKERS_DOWN in self.errors

    @contextmanager
    def reported(self, what: str) -> Iterator[None]:
        """Reports errors of librdkafka, with `what` failed. Raises SourceUnavailable, SourceFailed."""
        try:
            yield
        except (KafkaException, BufferError, ValueError) as error:
            raise self.fault(what, error.args[0] if error.args else error) from None

    def fault(self, what: str, error: Any) -> SourceUnavailable | SourceFailed:
        """The error to raise for one of librdkafka. Why a connection was refused says more than a timeout."""
        errors = list(self.errors.values())
        for each in (*errors, error):
            if isinstance(each, KafkaError) and each.code() in _PERMANENT:
                return SourceFailed(f"{what}: {_text(each)}")
        if isinstance(error, KafkaError) and error.code() in _UNEXPLAINED:
            error = next(iter(errors), error)
        return SourceUnavailable(f"{what}: {_text(error)}")


@lru_cache(maxsize=4)
def _connector(rules: Rules) -> Connector:
    return Connector(rules=replace(rules, ports=None))


def _host_and_port(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _text(error: Any) -> str:
    return foreign_text(error.str() if isinstance(error, KafkaError) else error)
