"""Reading rows of servers that are silent, endless or curious."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.jobs.errors import EngineStopped
from app.features.sources.kinds.sql_rows import SqlRows
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Fetched, Part, Place, RoundLimits, SourceEnvironment
from app.infra.files.storage import LocalStorage
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.kernel.format.errors import InvalidRequest
from tests.support.fake_postgres import FakePostgres, columns, done, fake_postgres, row

_ROW_BYTES_MAX = 100_000
_KIND = SqlRows(row_bytes_max=_ROW_BYTES_MAX)
_ENVIRONMENT = SourceEnvironment(allow=("127.0.0.0/8",), plain_http=True)


class _NoLedger:
    def unread(self, items: Any) -> Any:
        raise AssertionError(items)

    def checksums(self, names: Any) -> Any:
        raise AssertionError(names)


def _place(server: FakePostgres, **config: Any) -> Place:
    given = {"url": server.url, "table": "book", **config}
    return Place(
        tenant_id="t",
        source_id="s",
        config=_KIND.checked(given, _ENVIRONMENT),
        environment=_ENVIRONMENT,
    )


def _fetch(server: FakePostgres, folder: Path, limits: RoundLimits, is_live: Any = None) -> Fetched:
    """What a round by the watermark `seen` reads from the beginning."""
    storage = LocalStorage(folder)
    output = FetchOutput(storage, "p", None) if is_live is None else FetchOutput(storage, "p", None, is_live)
    place = _place(server, watermark="seen")
    with output:
        read = _KIND.fetch(place, Part(content={"since": None}), limits, output)
    return output.fetched(read)


def _plan(server: FakePostgres, seconds: float = 2.0, **config: Any) -> object:
    return _KIND.plan(_place(server, **config), {}, RoundLimits(seconds=seconds), _NoLedger())


def _silent(_statement: str) -> None:
    return None


def _endless(text: str, *, same: bool = False) -> Any:
    def rows(_statement: str) -> Iterator[bytes]:
        yield columns("row", "seen")
        number = 0
        while True:
            number += 1
            yield row(text, "7" if same else str(number))

    return rows


def test_a_silent_server_is_left_at_the_deadline(tmp_path: Path) -> None:
    with fake_postgres(_silent) as server:
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="takes more than 1 s"):
            _fetch(server, tmp_path, RoundLimits(seconds=1.0))
        assert time.monotonic() - began < 5


def test_a_server_that_trickles_is_left_at_the_deadline() -> None:
    def trickle(_statement: str) -> Iterator[bytes]:
        yield columns("count")
        while True:
            time.sleep(0.05)
            yield b"S\0\0\0\x08a\0b\0"

    with fake_postgres(trickle) as server:
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="takes more than"):
            _plan(server, 0.5)
        assert time.monotonic() - began < 5


def test_a_fetch_ends_once_its_round_is_cancelled(tmp_path: Path) -> None:
    with fake_postgres(_silent) as server:
        began = time.monotonic()
        with pytest.raises(EngineStopped):
            _fetch(server, tmp_path, RoundLimits(), lambda: False)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("limits", [RoundLimits(rows=10), RoundLimits(bytes=130)])
def test_a_round_ends_at_its_limits_whatever_the_server_sends(tmp_path: Path, limits: RoundLimits) -> None:
    with fake_postgres(_endless('{"id": "x"}')) as server:
        found = _fetch(server, tmp_path, limits)
    assert found.position == {"watermark": "10"}
    assert [body.raw.size_bytes for body in found.bodies] == [120]


def test_equal_watermarks_beyond_the_limits_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.features.sources.kinds.sql_rows._EQUAL_ROWS_MAX", 100)
    with (
        fake_postgres(_endless('{"id": "x"}', same=True)) as server,
        pytest.raises(SourceFailed, match="too many rows have the watermark '7'"),
    ):
        _fetch(server, tmp_path, RoundLimits(rows=10))


def test_a_snapshot_beyond_the_limits_fails(tmp_path: Path) -> None:
    def rows(statement: str) -> Iterable[bytes]:
        texts = ["digest"] if "hashtext" in statement else ['{"id": 1}'] * 11
        return [columns("row"), *(row(text) for text in texts), done()]

    with fake_postgres(rows) as server:
        for limits in (RoundLimits(rows=10), RoundLimits(bytes=100)):
            with (
                FetchOutput(LocalStorage(tmp_path), "p", None) as output,
                pytest.raises(SourceFailed, match="more than"),
            ):
                _KIND.fetch(_place(server), Part(content={}), limits, output)


def test_a_row_of_more_bytes_than_a_row_may_have_is_not_read(tmp_path: Path) -> None:
    size, sent = 1_000_000_000, 0

    def large(_statement: str) -> Iterator[bytes]:
        nonlocal sent
        yield columns("row", "seen")
        yield b"D" + (size + 4).to_bytes(4) + (2).to_bytes(2) + (size - 100).to_bytes(4)
        while sent < size:
            yield b"x" * 65_536
            sent += 65_536

    with (
        fake_postgres(large) as server,
        pytest.raises(SourceFailed, match="a row of more than 100000 bytes"),
    ):
        _fetch(server, tmp_path, RoundLimits())
    assert sent < size / 2


def test_small_rows_that_arrive_fast_are_no_large_row(tmp_path: Path) -> None:
    count = 40_000
    texts = [row('{"id": 1, "note": "of a usual length"}', str(number)) for number in range(count)]

    def rows(_statement: str) -> Iterator[bytes]:
        yield columns("row", "seen") + b"".join(texts) + done()

    with fake_postgres(rows) as server:
        assert _fetch(server, tmp_path, RoundLimits()).position == {"watermark": str(count - 1)}


def test_nothing_of_this_process_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text("*:*:*:*:secret-of-a-file\n")
    passwords.chmod(0o600)
    for name, value in {
        "PGPASSWORD": "secret-of-the-worker",
        "PGPASSFILE": str(passwords),
        "PGUSER": "worker",
        "PGDATABASE": "own",
        "PGOPTIONS": "-c search_path=own",
        "PGAPPNAME": "own",
        "PGCLIENTENCODING": "LATIN1",
        "PGREQUIREAUTH": "none",
        "PGCHANNELBINDING": "require",
    }.items():
        monkeypatch.setenv(name, value)
    with (
        fake_postgres(_silent, asks_password=True) as server,
        pytest.raises(SourceUnavailable, match="no password supplied"),
    ):
        _plan(server)
    assert server.passwords == []
    (parameters,) = server.parameters
    assert parameters == {
        "user": "reader",
        "database": "books",
        "application_name": "headwater source",
        "client_encoding": "UTF8",
        "options": "-c statement_timeout=2000 -c timezone=UTC",
    }


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1/books", "postgresql://a%00b@127.0.0.1/books"])
def test_the_user_must_be_stated(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"user"):
        _KIND.checked({"url": url, "table": "book"}, _ENVIRONMENT)


def test_a_source_without_a_user_that_was_registered_before_fails() -> None:
    place = Place(
        tenant_id="t",
        source_id="s",
        config={"url": "postgresql://127.0.0.1/books", "table": "book"},
        environment=_ENVIRONMENT,
    )
    with pytest.raises(SourceFailed, match="the URL of the source is not valid"):
        _KIND.plan(place, {}, RoundLimits(), _NoLedger())


def test_each_statement_is_sent_by_itself_in_a_transaction_that_reads(tmp_path: Path) -> None:
    def rows(_statement: str) -> Iterable[bytes]:
        return [columns("row"), row("0"), done()]

    with fake_postgres(rows) as server:
        _plan(server, table=None, query="SELECT 1) AS source; COMMIT; DELETE FROM book; --", watermark="seen")
        _plan(server, table=None, query="SELECT 1) AS source; COMMIT; DELETE FROM book; --")
        _fetch_snapshot(server, tmp_path)
    simple = {statement for kind, statement in server.statements if kind == b"Q"}
    assert simple == {"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
    assert sum("DELETE" in statement for _, statement in server.statements) == 3


def _fetch_snapshot(server: FakePostgres, folder: Path) -> None:
    with FetchOutput(LocalStorage(folder), "p", None) as output:
        _KIND.fetch(_place(server), Part(content={}), RoundLimits(), output)


def test_replies_that_are_not_as_expected_fail(tmp_path: Path) -> None:
    replies: list[list[bytes]] = [
        [columns("count"), row("many"), done()],
        [columns("count"), done()],
        [columns("count"), row("1"), row("2"), done()],
        [columns("a", "b", "c"), row("1", "2", "3"), done()],
    ]
    for reply in replies:
        with fake_postgres(lambda _, found=reply: found) as server, pytest.raises(SourceFailed):
            _plan(server, watermark="seen")
    with (
        fake_postgres(lambda _: [columns("row"), row("{}"), done()]) as server,
        pytest.raises(SourceFailed, match="2 texts"),
    ):
        _fetch(server, tmp_path, RoundLimits())
