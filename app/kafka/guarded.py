"""Clients of Kafka that connect to admitted addresses only.

A broker names the others at any time, and librdkafka connects to them by itself. It calls a function for each
connection, with the address that it has looked up. The Python binding has no setting for this callback, so it is set
through the public functions of librdkafka, before the client knows a server.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from confluent_kafka import Consumer, Producer, cimpl
from confluent_kafka.admin import AdminClient

_log = logging.getLogger(__name__)

Admits = Callable[[str, str, int], bool]
"""Whether a connection may be made: the broker as `host:port`, the address, and its port."""

CLIENT_ID: Final = "headwater"
_OWN_SETTINGS: Final = {
    "client.id": CLIENT_ID,
    # The servers are added by `_guard`: those of the settings would be connected to at once.
    "metadata.recovery.strategy": "none",
}
_ConnectCallback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)
_guards: Final[dict[int, Admits]] = {}
_lock: Final = threading.Lock()


@contextmanager
def guarded_consumer(
    settings: dict[str, Any], servers: tuple[str, ...], admits: Admits
) -> Iterator[Consumer]:
    """A consumer, which is closed at the end. Raises KafkaException."""
    consumer = Consumer(settings | _OWN_SETTINGS)
    number = None
    try:
        number = _guard(consumer, servers, admits)
        yield consumer
    finally:
        consumer.close()
        if number is not None:
            _release(number)


@contextmanager
def guarded_producer(
    settings: dict[str, Any], servers: tuple[str, ...], admits: Admits
) -> Iterator[Producer]:
    """A producer, whose waiting messages are dropped at the end. Raises KafkaException."""
    producer = Producer(settings | _OWN_SETTINGS)
    number = _guard(producer, servers, admits)
    try:
        yield producer
    finally:
        producer.purge()
        _release(number)


def guarded_admin(settings: dict[str, Any], servers: tuple[str, ...], admits: Admits) -> AdminClient:
    """A client for requests about topics and groups. Raises KafkaException."""
    admin = AdminClient(settings | _OWN_SETTINGS)
    weakref.finalize(admin, _release, _guard(admin, servers, admits))
    return admin


def _guard(client: Consumer | Producer | AdminClient, servers: tuple[str, ...], admits: Admits) -> int:
    """Sets the callback, then the servers. Returns the number of the client in callbacks."""
    library = _library()
    # The binding's objects begin with the pointer to the client of librdkafka.
    handle = ctypes.c_void_p.from_address(id(client) + object.__basicsize__).value
    name = library.rd_kafka_name(handle)
    number = library.rd_kafka_opaque(handle)
    if not name.startswith(CLIENT_ID.encode() + b"#") or not number:
        raise RuntimeError("confluent-kafka has another layout than expected: connections cannot be checked")
    with _lock:
        _guards[number] = admits
    library.rd_kafka_conf_set_connect_cb(library.rd_kafka_conf(handle), _CONNECT)
    library.rd_kafka_brokers_add(handle, ",".join(servers).encode())
    return int(number)


def _release(number: int) -> None:
    """From here on the client makes no connection."""
    with _lock:
        _guards.pop(number, None)


@lru_cache(maxsize=1)
def _library() -> Any:
    """The librdkafka that the binding uses."""
    library = ctypes.CDLL(cimpl.__file__)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("rd_kafka_name", text, [pointer]),
        ("rd_kafka_opaque", pointer, [pointer]),
        ("rd_kafka_conf", pointer, [pointer]),
        ("rd_kafka_conf_set_connect_cb", None, [pointer, _ConnectCallback]),
        ("rd_kafka_brokers_add", ctypes.c_int, [pointer, text]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_libc: Final = ctypes.CDLL(None, use_errno=True)


def _connect(stream: int, place: int, size: int, broker: bytes, number: int) -> int:
    """Connects a socket if the address is admitted. Returns 0, or the number of the error."""
    try:
        # The address that is checked is the one that is connected to.
        content = ctypes.string_at(place, size)
        with _lock:
            admits = _guards.get(number)
        if admits is None or not admits(broker.decode(errors="replace"), *_address(content)):
            return errno.EACCES
        if _libc.connect(stream, content, size) == 0:
            return 0
        code = ctypes.get_errno()
        return 0 if code == errno.EINPROGRESS else code
    except Exception:
        _log.exception("a connection to a Kafka broker could not be checked, and was not made")
        return errno.EACCES


_CONNECT: Final = _ConnectCallback(_connect)


def _address(content: bytes) -> tuple[str, int]:
    """The address and the port in a `sockaddr`. Raises ValueError for one that is not of the internet."""
    # On macOS the first byte is the length.
    family = content[1] if os.uname().sysname == "Darwin" else int.from_bytes(content[:2], sys.byteorder)
    port = int.from_bytes(content[2:4], "big")
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, content[4:8]), port
    if family == socket.AF_INET6:
        return socket.inet_ntop(socket.AF_INET6, content[8:24]), port
    raise ValueError(f"the address is of family {family}")
