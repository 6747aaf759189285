"""Connections that brokers provoke by naming others: the address of each is checked when it is made."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from app.format.errors import SourceFailed
from app.kafka.connection import Brokers, Cluster
from app.kafka.messages import OffsetRange, RangeReader
from app.kafka.offsets import TopicOffsets
from app.outbound.addresses import Rules
from tests.support.kafka.forged_broker import TOPIC, forged_broker

RULES = Rules.of(["127.0.0.1/32"], http=True)


@pytest.fixture
def internal() -> Iterator[socket.socket]:
    """A service at an address that is not allowed."""
    with socket.create_server(("127.0.0.2", 0)) as listener:
        listener.settimeout(0.2)
        yield listener


def brokers_at(port: int, rules: Rules = RULES) -> Brokers:
    return Brokers.of(Cluster(servers=(f"127.0.0.1:{port}",)), rules)


def was_connected(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return False
    return True


def ask_for_offsets(brokers: Brokers) -> None:
    offsets = TopicOffsets(brokers, TOPIC)
    assert offsets.partitions() == [0]
    offsets.earliest([0])


def read_messages(brokers: Brokers) -> None:
    list(RangeReader(brokers, TOPIC, "g", [OffsetRange(0, 0, 10)]).read(10.0))


def write_messages(brokers: Brokers) -> None:
    with brokers.producer({}) as producer:
        producer.produce(TOPIC, value=b"1")
        producer.flush(3.0)
    brokers.refuse()


@pytest.mark.parametrize(("use", "honest"), [(ask_for_offsets, 1), (read_messages, 0), (write_messages, 0)])
def test_broker_that_is_named_later_is_not_connected_to(
    internal: socket.socket, use: Callable[[Brokers], None], honest: int
) -> None:
    host, port = internal.getsockname()
    with (
        forged_broker((host, port), honest=honest) as broker,
        pytest.raises(SourceFailed, match=r"127\.0\.0\.2 resolves to an address that is not on the public"),
    ):
        use(brokers_at(broker.port))
    assert broker.replies > honest
    assert not was_connected(internal)


def test_broker_that_is_named_later_cannot_have_a_port_of_other_services() -> None:
    with (
        forged_broker(("127.0.0.1", 22), honest=1) as broker,
        pytest.raises(SourceFailed, match=r"port 22 of broker 127\.0\.0\.1 is not allowed"),
    ):
        ask_for_offsets(brokers_at(broker.port))


def test_allowed_broker_is_connected_to() -> None:
    with forged_broker(("127.0.0.1", 22), honest=100) as broker:
        assert TopicOffsets(brokers_at(broker.port), TOPIC).partitions() == [0]


def test_host_that_the_operator_lists_admits_its_own_addresses_only() -> None:
    brokers = brokers_at(9092, Rules.of(["localhost"], http=True))
    assert brokers.admits("localhost:9092", "127.0.0.1", 9092)
    assert not brokers.admits("localhost:9092", "127.0.0.2", 9092)
    with pytest.raises(SourceFailed, match="localhost has another address now"):
        brokers.refuse()
