"""The process that reads a database: what is left when it is killed or uses up its memory, and how much that is."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from app.features.sources.kinds.sql_rows import SqlRows
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Part, PartRead, Place, RoundLimits, SourceEnvironment
from app.infra.files.storage import LocalStorage
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.outbound.connector import CONNECT_SECONDS_MAX
from tests.support import fake_mysql, fake_postgres
from tests.support.waiting import until

_KIND = SqlRows(row_bytes_max=100_000)
_ENVIRONMENT = SourceEnvironment(allow=("127.0.0.0/8",), plain_http=True)
# The servers are in this process, and have a packet several times.
_GROWTH_KIBIBYTES_MAX = 64 * 1024


def _fetch(url: str, folder: Path, seconds: float = 30.0, kind: SqlRows = _KIND) -> PartRead:
    config = kind.checked({"url": url, "table": "book", "watermark": "seen"}, _ENVIRONMENT)
    place = Place(tenant_id="t", source_id="s", config=config, environment=_ENVIRONMENT)
    with FetchOutput(LocalStorage(folder), "p", None) as output:
        return kind.fetch(place, Part(content={"since": None}), RoundLimits(seconds=seconds), output)


def _children(pid: int) -> list[int]:
    lists = [path.read_text("ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(number) for numbers in lists for number in numbers.split()]


def _readers() -> list[int]:
    """The processes that read databases now."""
    servers = [
        pid
        for pid in _children(os.getpid())
        if b"kinds.sql_serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return [pid for server in servers for pid in _children(server)]


def test_a_process_that_is_killed_makes_the_source_unavailable(tmp_path: Path) -> None:
    def kill() -> None:
        until(lambda: server.statements[2:], "the process to read")
        for pid in _readers():
            os.kill(pid, signal.SIGKILL)

    with fake_postgres.fake_postgres(lambda _: None) as server:
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(SourceUnavailable, match="the process that reads it was killed"):
            _fetch(server.url, tmp_path)
        killer.join()
    until(lambda: not _readers(), "the process to end")


def test_a_process_ends_with_its_round(tmp_path: Path) -> None:
    with (
        fake_postgres.fake_postgres(lambda _: None) as server,
        pytest.raises(SourceUnavailable, match="takes more than"),
    ):
        _fetch(server.url, tmp_path, seconds=0.5)
    until(lambda: not _readers(), "the process to end", seconds_max=5)


def _columns_without_end(_statement: str) -> Iterator[bytes]:
    yield b"\xfd" + (16_000_000).to_bytes(3, "little")
    [_, column, _] = fake_mysql.columns("c" * 100)
    while True:
        yield column


def _row_without_end(_statement: str) -> Iterator[bytes]:
    yield from fake_mysql.columns("id", "seen")
    while True:
        yield b"\xfd" + bytes(0xFFFFFE)


def _message_of_a_gigabyte(_statement: str) -> Iterator[bytes]:
    size = 1_000_000_000
    yield fake_postgres.columns("row", "seen")
    yield b"D" + (size + 4).to_bytes(4) + (2).to_bytes(2) + (size - 100).to_bytes(4)
    while True:
        yield b"x" * 65_536


@pytest.mark.parametrize(
    ("maker", "reply"),
    [
        (fake_mysql.fake_mysql, _columns_without_end),
        (fake_mysql.fake_mysql, _row_without_end),
        (fake_postgres.fake_postgres, _message_of_a_gigabyte),
    ],
)
def test_what_a_server_sends_takes_no_memory_of_this_process(maker: Any, reply: Any, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with maker(reply) as server, pytest.raises(SourceFailed, match="a row of more than 100000 bytes"):
        _fetch(server.url, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH_KIBIBYTES_MAX


def test_rows_of_a_slow_server_are_read_until_the_round_is_full(tmp_path: Path) -> None:
    def slow(_statement: str) -> Iterator[bytes]:
        yield fake_postgres.columns("row", "seen")
        for number in range(1_000):
            time.sleep(0.2)
            yield fake_postgres.row('{"id": 1}', f"{number:04}")

    with fake_postgres.fake_postgres(slow) as server:
        position = _fetch(server.url, tmp_path, seconds=6.0).position
    assert int(position["watermark"]) > 5


def test_a_server_that_does_not_greet_is_left_soon(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        began = time.monotonic()
        for scheme in ("mysql", "postgresql"):
            with pytest.raises(SourceUnavailable, match="out of reach"):
                _fetch(f"{scheme}://reader@127.0.0.1:{listener.getsockname()[1]}/books", tmp_path)
        assert time.monotonic() - began < 4 * CONNECT_SECONDS_MAX


@pytest.mark.parametrize("row_bytes_max", [100_000, 16 * 1024 * 1024])
def test_a_row_within_the_limit_is_read(tmp_path: Path, row_bytes_max: int) -> None:
    kind = replace(_KIND, row_bytes_max=row_bytes_max)
    size = row_bytes_max - 1_000

    def of_postgres(_statement: str) -> list[bytes]:
        texts = ['{"id": "' + "é" * (size // 2) + '"}', "7"]
        return [fake_postgres.columns("row", "seen"), fake_postgres.row(*texts), fake_postgres.done()]

    def of_mysql(_statement: str) -> list[bytes]:
        value = b"\xfd" + size.to_bytes(3, "little") + "é".encode() * (size // 2)
        return [*fake_mysql.columns("id", "seen"), value + fake_mysql.row("7"), fake_mysql.END]

    for maker, reply in (
        (fake_postgres.fake_postgres, of_postgres),
        (fake_mysql.fake_mysql, of_mysql),
    ):
        with maker(reply) as server, TemporaryDirectory(dir=tmp_path) as folder:
            assert _fetch(server.url, Path(folder), kind=kind).position == {"watermark": "7"}
