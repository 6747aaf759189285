"""Reading rows of MariaDB, and of servers that are silent, endless or curious."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.jobs.errors import EngineStopped
from app.features.sources.kinds.sql_rows import PROCESSES, SqlRows
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Fetched, Part, Place, RoundLimits, SourceEnvironment
from app.infra.files.storage import LocalStorage
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from tests.support.fake_mysql import END, columns, fake_mysql, packet, row
from tests.support.mariadb.server import Mariadb

_ROW_BYTES_MAX = 100_000
_KIND = SqlRows(row_bytes_max=_ROW_BYTES_MAX)
_PLAIN = SourceEnvironment(allow=("127.0.0.0/8",), plain_http=True)


class _NoLedger:
    def unread(self, items: Any) -> Any:
        raise AssertionError(items)

    def checksums(self, names: Any) -> Any:
        raise AssertionError(names)


def _place(url: str, environment: SourceEnvironment = _PLAIN, **config: Any) -> Place:
    given = {name: value for name, value in {"url": url, "table": "book", **config}.items() if value}
    return Place(
        tenant_id="t", source_id="s", config=_KIND.checked(given, environment), environment=environment
    )


class _Rows:
    """A source, and what its rounds have read."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place = place
        self._storage = LocalStorage(folder)
        self._number = 0
        self.position: dict[str, Any] = {}
        self.fetched: Fetched | None = None

    def fetch(self, limits: RoundLimits = RoundLimits(), is_live: Any = lambda: True) -> list[Any]:  # noqa: B008
        """The rows of the next part, which a round reads without planning it; with fractions as texts."""
        self._number += 1
        content = {"since": self.position.get("watermark")} if "watermark" in self._place.config else {}
        with FetchOutput(self._storage, f"p{self._number}", None, is_live) as output:
            read = _KIND.fetch(self._place, Part(content=content), limits, output)
        self.position |= read.position
        self.fetched = output.fetched(read)
        texts = [self._storage.open(body.raw.path).read() for body in self.fetched.bodies]
        decoder = msgspec.json.Decoder(float_hook=str)
        return [decoder.decode(line) for text in texts for line in text.splitlines()]

    def next(self, limits: RoundLimits = RoundLimits()) -> list[Any] | None:  # noqa: B008
        """The rows of the next round; None if there is nothing to read."""
        plan = _KIND.plan(self._place, self.position, limits, _NoLedger())
        return None if plan is None else self.fetch(limits)

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns that were read last."""
        assert self.fetched is not None
        [body] = self.fetched.bodies
        assert body.raw.shapes is not None
        return {name: shape.type_ for name, shape in body.raw.shapes.items() if hasattr(shape, "type_")}


@pytest.fixture
def rows_of(mariadb: Mariadb, mariadb_database: str, tmp_path: Path) -> Any:
    """Makes a table of books by these statements, and a source of it."""

    def make(*statements: str, **config: Any) -> _Rows:
        mariadb.run(*statements, database=mariadb_database)
        url = mariadb.url(mariadb_database)
        return _Rows(_place(url, password=mariadb.password, **config), tmp_path)

    return make


def test_values_keep_their_types_and_digits(rows_of: Any) -> None:
    source = rows_of(
        """CREATE TABLE book (
            i1 tinyint, u1 tinyint unsigned, i4 int, u4 int(6) unsigned zerofill, i8 bigint, u8 bigint unsigned,
            price decimal(30, 10), small decimal(5, 2) unsigned, d double, f float,
            day date, local datetime(6), at timestamp(3) null, span time, made year,
            note varchar(40) character set latin1, wide text character set utf8mb4, kind enum('a', 'ż'),
            raw varbinary(10), flag bit(1), flags bit(64), doc json, nothing int)""",
        "SET time_zone = '+02:00'",
        """INSERT INTO book VALUES (-128, 255, -2147483648, 42, -9223372036854775808, 18446744073709551615,
            12345678901234567890.0123456789, 999.99, 0.1, 0.5,
            '2026-11-21', '2026-11-21 10:00:00.123456', '2026-11-21 12:00:00.250', '-01:02:03', 2026,
            'é "\\\\\n', 'Łódź 🚲 \t', 'ż', x'00ff27', b'1', 0xffffffffffffffff, '{"a": 1}', NULL)""",
    )
    assert source.fetch() == [
        {
            "i1": -128,
            "u1": 255,
            "i4": -2147483648,
            "u4": 42,
            "i8": -9223372036854775808,
            "u8": 18446744073709551615,
            "price": "12345678901234567890.0123456789",
            "small": "999.99",
            "d": "0.1",
            "f": "0.5",
            "day": "2026-11-21",
            "local": "2026-11-21 10:00:00.123456",
            "at": "2026-11-21 10:00:00.250Z",
            "span": "-01:02:03",
            "made": 2026,
            "note": 'é "\\\n',
            "wide": "Łódź 🚲 \t",
            "kind": "ż",
            "raw": "AP8n",
            "flag": True,
            "flags": 18446744073709551615,
            "doc": '{"a": 1}',
            "nothing": None,
        }
    ]
    assert source.types == {
        "i1": "int8",
        "u1": "uint8",
        "i4": "int32",
        "u4": "uint32",
        "i8": "int64",
        "u8": "decimal(20, 0)",
        "price": "decimal(30, 10)",
        "small": "decimal(5, 2)",
        "d": "double",
        "f": "float",
        "day": "date",
        "local": "timestamp_ntz",
        "at": "timestamp",
        "span": "string",
        "made": "int16",
        "note": "string",
        "wide": "string",
        "kind": "string",
        "raw": "binary",
        "flag": "boolean",
        "flags": "decimal(20, 0)",
        "doc": "string",
        "nothing": "int32",
    }


def test_large_floats_are_approximations_and_nulls_alone_have_no_type(rows_of: Any) -> None:
    source = rows_of(
        "CREATE TABLE book (f float)",
        "INSERT INTO book VALUES (1234567890)",
        query="SELECT f, NULL AS nothing FROM book",
        table=None,
    )
    assert source.fetch() == [{"f": "1234570000e0", "nothing": None}]
    assert source.types == {"f": "float"}


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("bigint unsigned", ["9007199254740992", "9007199254740993", "18446744073709551615"]),
        ("decimal(38, 10)", ["-0.0000000001", "0.0000000000", "1234567890123456789012345678.0000000001"]),
        ("double", ["-1.5e300", "0.1", "0.30000000000000004"]),
        ("datetime(6)", ["2026-11-21 10:00:00.000001", "2026-11-21 10:00:00.000002"]),
        ("timestamp(6) null", ["2026-10-25 00:30:00.000000", "2026-10-25 01:30:00.000000"]),
        ("date", ["1000-01-01", "2026-11-21"]),
        # Equal under the collation, but different texts.
        ("varchar(20)", ["A", "A ", "B''\\\\\\\\", "a", "á", "ż"]),
        ("varchar(20) character set latin1", ["A", "a", "é"]),
    ],
)
def test_each_row_is_read_once_by_a_watermark_of_each_type(
    rows_of: Any, type_: str, values: list[str]
) -> None:
    quoted = ", ".join(f"({number}, '{value}')" for number, value in enumerate(values))
    source = rows_of(
        "SET time_zone = '+00:00'",
        f"CREATE TABLE book (id int, seen {type_})",
        f"INSERT INTO book VALUES {quoted}",
        watermark="seen",
    )
    found = []
    while (rows := source.next(RoundLimits(rows=1))) is not None:
        assert len(rows) == 1
        found += [each["id"] for each in rows]
    assert found == list(range(len(values)))


def test_rows_with_equal_watermarks_are_read_together(rows_of: Any) -> None:
    source = rows_of(
        "CREATE TABLE book (id int, `se``en` bigint)",
        "INSERT INTO book VALUES (1, 1), (2, 2), (3, 2), (4, 2), (5, 3)",
        watermark="se`en",
    )
    assert [each["id"] for each in source.next(RoundLimits(rows=2))] == [1, 2, 3, 4]
    assert source.position == {"watermark": "2"}
    assert [each["id"] for each in source.next(RoundLimits(bytes=1))] == [5]
    assert source.next() is None


def test_a_snapshot_is_read_when_a_row_has_changed(
    rows_of: Any, mariadb: Mariadb, mariadb_database: str
) -> None:
    source = rows_of(
        "CREATE TABLE book (id int, note varchar(20), raw blob)",
        "INSERT INTO book VALUES (1, 'a', NULL), (2, NULL, x'ff'), (3, '', x'')",
        query="SELECT * FROM book WHERE note <> '%' OR note IS NULL -- all",
        table=None,
    )
    assert len(source.next()) == 3
    assert source.next() is None
    for change in (
        "UPDATE book SET note = '' WHERE id = 2",
        "UPDATE book SET raw = x'fe' WHERE id = 2",
        "UPDATE book SET note = NULL WHERE id = 3",
        "DELETE FROM book WHERE id = 1",
        "INSERT INTO book SELECT * FROM book WHERE id = 2",
    ):
        mariadb.run(change, database=mariadb_database)
        assert source.next() is not None, change
        assert source.next() is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"table": "absent"}, "doesn't exist"),
        ({"watermark": "absent"}, "there is no column 'absent'"),
        ({"watermark": "raw"}, "cannot be the watermark"),
        ({"query": "DELETE FROM book", "table": None}, "SQL syntax"),
        ({"query": "SELECT 1) AS source; DELETE FROM book; -- ", "table": None}, "SQL syntax"),
        ({"query": "SELECT eraser() AS n", "table": None}, "READ ONLY"),
    ],
)
def test_statements_that_are_refused_fail_the_source(
    rows_of: Any, mariadb: Mariadb, mariadb_database: str, config: dict[str, Any], reason: str
) -> None:
    source = rows_of(
        "CREATE TABLE book (id int, raw blob)",
        "INSERT INTO book VALUES (1, 'a')",
        "CREATE FUNCTION eraser() RETURNS int BEGIN DELETE FROM book; RETURN 1; END",
        **config,
    )
    with pytest.raises(SourceFailed, match=reason):
        source.next()
    assert mariadb.run("SELECT count(*) FROM book", database=mariadb_database) == [(1,)]


def test_a_server_that_is_away_is_waited_for(rows_of: Any, mariadb: Mariadb) -> None:
    source = rows_of("CREATE TABLE book (id int)", "INSERT INTO book VALUES (1)")
    mariadb.stop()
    try:
        with pytest.raises(SourceUnavailable, match="is out of reach"):
            source.next()
    finally:
        mariadb.start()
    assert source.next() == [{"id": 1}]


def test_a_wrong_password_is_refused(mariadb: Mariadb, mariadb_database: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="Access denied"):
        _Rows(_place(mariadb.url(mariadb_database), password="other"), tmp_path).next()


def test_a_large_row_is_not_read(rows_of: Any) -> None:
    source = rows_of("CREATE TABLE book (note longtext)", "INSERT INTO book VALUES (repeat('x', 8000000))")
    with pytest.raises(SourceFailed, match="a row of more than 100000 bytes"):
        source.fetch()


_CIPHER = "SELECT variable_value AS cipher FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'"


def test_connections_are_encrypted_where_the_server_offers_it(rows_of: Any) -> None:
    [found] = rows_of("SELECT 1", query=_CIPHER, table=None).fetch()
    assert found["cipher"]


def test_certificates_are_checked(
    mariadb: Mariadb, mariadb_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = SourceEnvironment(allow=("127.0.0.0/8",))
    config = {"password": mariadb.password, "query": _CIPHER, "table": None}
    place = _place(mariadb.url(mariadb_database), environment, **config)
    with pytest.raises(SourceUnavailable, match="certificate verify failed"):
        _Rows(place, tmp_path).fetch()
    monkeypatch.setenv("SSL_CERT_FILE", str(mariadb.certificate))
    PROCESSES.close()
    assert len(_Rows(place, tmp_path).fetch()) == 1
    monkeypatch.undo()
    PROCESSES.close()


def test_a_server_without_encryption_is_refused_where_it_is_required(tmp_path: Path) -> None:
    environment = SourceEnvironment(allow=("127.0.0.0/8",))
    with (
        fake_mysql(_silent) as server,
        pytest.raises(SourceUnavailable, match="SSL is required"),
    ):
        _Rows(_place(server.url, environment, password="secret"), tmp_path).fetch()
    assert server.logins == []


def test_addresses_that_are_not_allowed_are_refused(tmp_path: Path) -> None:
    with fake_mysql(_silent) as server, pytest.raises(SourceFailed, match="is a private address"):
        _Rows(_place(server.url, SourceEnvironment(plain_http=True)), tmp_path).fetch()
    assert server.logins == []


def _silent(_statement: str) -> None:
    return None


def test_a_silent_server_is_left_at_the_deadline(tmp_path: Path) -> None:
    with fake_mysql(_silent) as server:
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="takes more than 1 s"):
            _Rows(_place(server.url, watermark="seen"), tmp_path).fetch(RoundLimits(seconds=1.0))
        assert time.monotonic() - began < 5


def test_a_server_that_trickles_is_left_at_the_deadline(tmp_path: Path) -> None:
    def trickle(_statement: str) -> Iterator[bytes]:
        yield from columns("id", "seen")
        while True:
            time.sleep(0.05)
            yield row("1", "same")

    with fake_mysql(trickle) as server:
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="takes more than"):
            _Rows(_place(server.url, watermark="seen"), tmp_path).fetch(RoundLimits(seconds=0.5))
        assert time.monotonic() - began < 5


def test_a_fetch_ends_once_its_round_is_cancelled(tmp_path: Path) -> None:
    with fake_mysql(_silent) as server:
        began = time.monotonic()
        with pytest.raises(EngineStopped):
            _Rows(_place(server.url), tmp_path).fetch(is_live=lambda: False)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("limits", [RoundLimits(rows=10), RoundLimits(bytes=240)])
def test_a_round_ends_at_its_limits_whatever_the_server_sends(tmp_path: Path, limits: RoundLimits) -> None:
    def endless(statement: str) -> Iterator[bytes]:
        yield from columns("id", "seen")
        for number in range(1, 10_000_000):
            yield row("x", f"{number:02d}")

    with fake_mysql(endless) as server:
        source = _Rows(_place(server.url, watermark="seen"), tmp_path)
        assert len(source.fetch(limits)) == 10
        assert source.position == {"watermark": "10"}


def test_a_row_of_more_bytes_than_a_row_may_have_is_not_read(tmp_path: Path) -> None:
    sent = 0

    def large(_statement: str) -> Iterator[bytes]:
        nonlocal sent
        for number in range(100):
            sent += 1
            # A packet of this length is continued by the next one.
            yield b"\xfd" + bytes(0xFFFFFE) if number else b"\2" + bytes(0xFFFFFE)

    with fake_mysql(large) as server, pytest.raises(SourceFailed, match="a row of more than 100000 bytes"):
        _Rows(_place(server.url, watermark="seen"), tmp_path).fetch()
    assert sent < 10


@pytest.mark.parametrize(
    "reply",
    [
        # A request to send a file.
        [b"\xfb/etc/passwd"],
        [b"\xff\x10\x04#08004Too many connections"],
        [b"\x01"],
        [b"\x01", b"junk", END],
        [*columns("id", "seen"), b"\xfd\xff\xff\xff", END],
        [*columns("id", "seen", "more"), row("1"), END],
        [*columns("id"), row("1"), END],
    ],
)
def test_replies_that_are_not_as_expected_are_errors(tmp_path: Path, reply: list[bytes]) -> None:
    with fake_mysql(lambda _: reply) as server, pytest.raises((SourceUnavailable, SourceFailed)):
        _Rows(_place(server.url, watermark="seen"), tmp_path).fetch(RoundLimits(seconds=2.0))


def test_more_columns_than_a_table_has_are_not_read(tmp_path: Path) -> None:
    announced = b"\xfd" + (600_000).to_bytes(3, "little")

    def described(_statement: str) -> Iterator[bytes]:
        yield announced
        yield from columns(*["c"] * 200)[1:]

    with fake_mysql(described) as server, pytest.raises(SourceUnavailable):
        _Rows(_place(server.url, watermark="seen"), tmp_path).fetch(RoundLimits(seconds=5.0))


@pytest.mark.parametrize("greeting", [b"", b"\x0a", b"HTTP/1.1 200 OK\r\n\r\n", packet(0, b"x" * 300)])
def test_servers_of_another_kind_are_out_of_reach(tmp_path: Path, greeting: bytes) -> None:
    with (
        fake_mysql(_silent, greeting=greeting) as server,
        pytest.raises(SourceUnavailable),
    ):
        _Rows(_place(server.url), tmp_path).fetch(RoundLimits(seconds=2.0))


def test_nothing_of_this_process_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"USER": "worker", "LOGNAME": "worker", "MYSQL_PWD": "secret", "HOME": "/own"}.items():
        monkeypatch.setenv(name, value)
    with fake_mysql(_silent) as server, pytest.raises(SourceUnavailable):
        _Rows(_place(server.url), tmp_path).fetch(RoundLimits(seconds=0.5))
    (login,) = server.logins
    assert login[32:].startswith(b"reader\0")
    after = login[32:].partition(b"mysql_native_password\0")[2]
    assert after == b"\x1e\x0cprogram_name\x10headwater source"
    assert server.statements == [
        "SET NAMES utf8mb4",
        "SET SESSION time_zone = '+00:00', max_execution_time = 500",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        "SELECT source.* FROM `book` AS source LIMIT 0",
        server.statements[-1],
    ]


@pytest.mark.parametrize("method", [b"mysql_clear_password", b"dialog"])
def test_a_password_is_not_sent_as_it_is(tmp_path: Path, method: bytes) -> None:
    switch = b"\xfe" + method + b"\0" + bytes(20)
    with (
        fake_mysql(_silent, login=switch) as server,
        pytest.raises(SourceUnavailable, match="method of login"),
    ):
        _Rows(_place(server.url, password="secret"), tmp_path).fetch(RoundLimits(seconds=2.0))
    assert not any(b"secret" in login for login in server.logins)
