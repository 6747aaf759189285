"""The async client: the operations of the blocking one, in an event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from pathlib import Path

import httpx2
import pytest

from headwater_client import AsyncHeadwater, Headwater, Problem
from headwater_client.transport.driver import AsyncDriver
from tests.clients.test_client_retries import job, problem


def operations(client: type) -> dict[str, inspect.Signature]:
    own = {"close", "aclose", "from_environment"}
    members = {name: member for name, member in inspect.getmembers(client) if not name.startswith("_")}
    return {name: inspect.signature(member) for name, member in members.items() if name not in own}


def without_result(found: dict[str, inspect.Signature]) -> dict[str, inspect.Signature]:
    return {name: each.replace(return_annotation=None) for name, each in found.items()}


def test_both_clients_have_the_same_operations_and_parameters() -> None:
    blocking, asynchronous = operations(Headwater), operations(AsyncHeadwater)
    assert len(blocking) > 80
    assert without_result(blocking) == without_result(asynchronous)


def test_results_of_the_blocking_client_are_plain_or_iterators() -> None:
    blocking, asynchronous = operations(Headwater), operations(AsyncHeadwater)
    for name, signature in asynchronous.items():
        result = signature.return_annotation
        result = result.replace("AsyncTable", "Table")
        if result.startswith("AsyncGenerator["):
            result = result.replace("AsyncGenerator[", "Iterator[").replace(", None]", "]")
        assert blocking[name].return_annotation == result
    assert blocking["rows"].return_annotation == "Iterator[dict[str, Any]]"


def test_async_client_writes_waits_follows_and_reads(service, api_key, orders, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,note\n" + "".join(f"{number},{'x' * 100}\n" for number in range(10, 8_000)))

    async def use() -> None:
        transport = httpx2.AsyncHTTPTransport()
        async with AsyncHeadwater(service.url, api_key, transport=transport) as headwater:
            done = await headwater.write_rows(orders, [{"id": 1, "note": "a"}], wait=30)
            assert done.state == "succeeded"
            upload = await headwater.upload(orders, file)
            assert upload.size_bytes == file.stat().st_size
            await headwater.write_upload(orders, upload, "csv", wait=30)
            changes = [change async for change in headwater.changes(orders, limit=5_000)]
            assert [change.offset for change in changes] == list(range(7_991))
            rows = [row async for row in headwater.rows(orders, where="id < 12")]
            assert sorted(row["id"] for row in rows) == [1, 10, 11]
            read = await headwater.read(orders, where="id < 12", order_by=["id"], wait=30)
            assert read.to_arrow().column("id").to_pylist() == [1, 10, 11]
            paths = await headwater.read_to_files(orders, tmp_path / "out", format="csv", wait=30)
            assert sum(len(path.read_text().splitlines()) - 1 for path in paths) == 7_991
            with pytest.raises(Problem) as refused:
                await headwater.write_rows(orders, [{"id": None}], wait=30)
            assert refused.value.code == "schema-mismatch"

    with service.working():
        asyncio.run(use())


def test_a_consumer_commits_each_page_before_the_next(service, api_key, headwater, orders) -> None:
    headwater.write_rows(orders, [{"id": number, "note": "a"} for number in range(5)])
    service.work()

    async def use() -> list[int]:
        async with AsyncHeadwater(service.url, api_key, transport=httpx2.AsyncHTTPTransport()) as client:
            pages = client.consume(orders, "c", member="m", limit=2, follow=False)
            first, second = await anext(pages), await anext(pages)
            await pages.aclose()
            assert [change.offset for change in (*first.changes, *second.changes)] == [0, 1, 2, 3]
            consumer = await client.get_consumer(orders, "c")
            assert (consumer.offset, consumer.lease) == (2, None)
            return [
                change.offset
                async for page in client.consume(orders, "c", follow=False)
                for change in page.changes
            ]

    assert asyncio.run(use()) == [2, 3, 4]


def answering(*answers: httpx2.Response | Exception) -> tuple[AsyncHeadwater, list[httpx2.Request]]:
    sent: list[httpx2.Request] = []
    waiting = iter(answers)

    async def handle(request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        sent.append(request)
        answer = next(waiting)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return AsyncHeadwater("http://service", "hw_key", transport=httpx2.MockTransport(handle)), sent


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []

    async def sleep(_: AsyncDriver, delay: float) -> None:
        seconds.append(delay)

    # Not asyncio's own: the service, in another thread, sleeps as well.
    monkeypatch.setattr(AsyncDriver, "sleep", sleep)
    return seconds


def test_a_file_is_streamed_with_its_length_and_sent_again_from_its_start(pauses, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"id\n1\n" * 100_000)
    client, sent = answering(httpx2.ReadTimeout("slow"), job())
    assert asyncio.run(client.write("orders", file, "csv")).id == "j"
    assert [request.content for request in sent] == [file.read_bytes()] * 2
    assert {request.headers["content-length"] for request in sent} == {"500000"}
    assert all("transfer-encoding" not in request.headers for request in sent)
    assert len({request.headers["idempotency-key"] for request in sent}) == 1


def test_async_client_retries_only_idempotent_requests(pauses) -> None:
    busy = problem(503, "unavailable", {"retry-after": "3"})
    client, sent = answering(busy, httpx2.ReadError("gone"), job())
    assert asyncio.run(client.compact("orders")).id == "j"
    assert len({request.headers["idempotency-key"] for request in sent}) == 1
    assert (len(sent), pauses[0]) == (3, 3)
    client, sent = answering(httpx2.ReadError("gone"))
    with pytest.raises(httpx2.ReadError):
        asyncio.run(client.cancel("j"))
    assert len(sent) == 1


def test_requests_and_the_pauses_before_their_repetition_run_at_the_same_time() -> None:
    refused: list[str] = []

    async def handle(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.1)
        if request.url.path in refused:
            return job()
        refused.append(request.url.path)
        return problem(503, "unavailable", {"retry-after": "1"})

    client = AsyncHeadwater("http://service", "hw_key", transport=httpx2.MockTransport(handle))

    async def use() -> None:
        await asyncio.gather(*(client.get_job(f"j{number}") for number in range(20)))

    began = time.monotonic()
    asyncio.run(use())
    assert len(refused) == 20
    assert 1 <= time.monotonic() - began < 5
