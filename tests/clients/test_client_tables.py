"""Tables and feeds as values of other libraries, and following a feed."""

from __future__ import annotations

import asyncio
from itertools import islice

import duckdb
import httpx2
import pytest

from headwater_client import AsyncHeadwater, Headwater, Problem
from headwater_client import tables as client_tables


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


@pytest.fixture
def versions(headwater, orders):
    """Two versions: notes a and b, then b becomes c."""
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
    headwater.write_rows(orders, [{"id": 2, "note": "c"}], wait=30)


def test_a_table_is_read_into_each_library(headwater, versions):
    orders = headwater.table("orders", order_by=["id"])
    assert orders.to_arrow().to_pydict() == {"id": [1, 2], "note": ["a", "c"]}
    assert orders.read().to_arrow().equals(orders.to_arrow())
    assert orders.to_pandas()["note"].tolist() == ["a", "c"]
    assert orders.to_polars()["note"].to_list() == ["a", "c"]
    with duckdb.connect() as connection:
        assert orders.to_duckdb(connection).aggregate("max(note)").fetchall() == [("c",)]
    earlier = headwater.table("orders", version=1, where="id = 2", columns=["note"])
    assert earlier.to_arrow().to_pylist() == [{"note": "b"}]
    changed = headwater.table("orders", query="incremental", begin=1)
    assert changed.to_polars().rows() == [(2, "c")]


def test_changes_are_read_into_each_library(headwater, versions):
    changes = headwater.table("orders").changes()
    assert changes.to_arrow().column("op").to_pylist() == [0, 0, 2, 3]
    assert changes.read().to_arrow().equals(changes.to_arrow())
    assert changes.to_pandas()["offset"].tolist() == [0, 1, 2, 3]
    assert changes.to_polars()["op"].to_list() == [0, 0, 2, 3]
    with duckdb.connect() as connection:
        assert changes.to_duckdb(connection).filter("op = 3").project("note").fetchall() == [("c",)]
    orders = headwater.table("orders")
    assert orders.changes(since=1, until=2).to_arrow().column("offset").to_pylist() == [1]
    # Position 3 is between a -C and its +C, so the page ends before both.
    assert orders.changes(since=1, until=3).to_arrow().column("offset").to_pylist() == [1]
    assert orders.changes(since=2, until=3).to_arrow().num_rows == 0
    assert orders.changes(since_version=2, where="id = 2", columns=["note"]).to_arrow().num_rows == 2


def test_following_resumes_and_waits_out_an_outage(
    headwater, orders, versions, service, api_key, monkeypatch
):
    monkeypatch.setattr(client_tables, "_PAUSE_SECONDS", 0.01)
    failures = iter([False, True, True, False, True])
    requests = []

    class Unreliable(httpx2.HTTPTransport):
        """Loses some requests, each for good: 500 is not retried by itself."""

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            requests.append(str(request.url))
            if next(failures, False):
                raise httpx2.ReadError("lost")
            return super().handle_request(request)

    monkeypatch.setattr("headwater_client.transport.retry.ATTEMPTS", 1)
    with Headwater(service.url, api_key, transport=Unreliable()) as client:
        pages = client.table(orders).changes(since=1).follow(poll_seconds=5)
        offsets = pages_offsets(islice(pages, 1))
        headwater.write_rows(orders, [{"id": 3, "note": "d"}], wait=30)
        offsets += pages_offsets(islice(pages, 1))
        pages.close()
    assert offsets == [1, 2, 3, 4]
    assert len(requests) == 4


def pages_offsets(pages):
    return [offset for page in pages for offset in page.to_arrow().column("offset").to_pylist()]


def test_following_ends_with_lasting_problems(headwater, orders, versions, monkeypatch):
    monkeypatch.setattr(client_tables, "_PAUSE_SECONDS", 0.01)
    with pytest.raises(Problem, match="offset-ahead"):
        next(headwater.table(orders).changes(since=99).follow())
    with pytest.raises(ValueError, match="leave `until` out"):
        next(headwater.table(orders).changes(until=2).follow())
    monkeypatch.setattr("headwater_client.transport.retry.ATTEMPTS", 1)
    with Headwater("http://127.0.0.1:9", "hw_x", transport=httpx2.HTTPTransport()) as nowhere:
        pages = nowhere.table("orders").changes().follow(outage_seconds=0.05)
        with pytest.raises(httpx2.ConnectError):
            next(pages)


def test_the_async_client_has_the_same_tables(service, api_key, orders, versions):
    async def use() -> None:
        async with AsyncHeadwater(service.url, api_key, transport=httpx2.AsyncHTTPTransport()) as client:
            table = client.table(orders, order_by=["id"])
            assert (await table.to_arrow()).column("note").to_pylist() == ["a", "c"]
            assert (await table.to_polars()).height == 2
            assert (await table.changes(since=1).to_pandas())["offset"].tolist() == [1, 2, 3]
            async for page in table.changes(since=2).follow():
                assert page.to_arrow().num_rows == 2
                break

    asyncio.run(use())
