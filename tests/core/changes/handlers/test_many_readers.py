"""Many connections at once to the real API: each gets everything, and they share the work."""

import asyncio
from itertools import cycle, islice, product
from urllib.parse import urlsplit

from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.http import upsert
from tests.support.streams import Counting, blocks, waiting, when

READERS = 200


async def stream_body(url, request, opened):
    """The text of a stream, from a socket of its own; `opened` is set at its first bytes."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    opened.release()
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    writer.close()
    return body.decode()


def test_many_readers_get_each_change_once_and_in_order(client, feed, orders, service, monkeypatch):
    commits = 5
    until = 4 + 2 * commits
    ways = [
        {"since": since, "until": until, "form": form.value} for since, form in product(range(5), ChangeForm)
    ]
    reads = Counting(service.api.dependencies["pages"]._read)
    monkeypatch.setattr(service.api.dependencies["pages"], "_read", reads)
    credential = client.headers["authorization"]

    async def follow():
        opened = asyncio.Semaphore(0)
        running = []
        for way in islice(cycle(ways), READERS):
            query = "&".join(f"{name}={value}" for name, value in way.items())
            request = (
                f"GET {feed}/events?{query} HTTP/1.1\r\nhost: test\r\nauthorization: {credential}\r\n"
                "connection: close\r\n\r\n"
            )
            running.append(asyncio.create_task(stream_body(service.url, request.encode(), opened)))
        for _ in range(READERS):
            await opened.acquire()
        for number in range(commits):
            write = upsert({"id": 1, "note": f"n{number}"})
            await asyncio.to_thread(
                client.post, f"{orders}/writes", json=write, headers={"Prefer": "wait=20"}
            )
        async with asyncio.timeout(60):
            return await asyncio.gather(*running)

    with service.working():
        received = asyncio.run(follow())
    shared = reads.calls
    expected = [client.get(feed, params=way).json()["changes"] for way in ways]
    assert all(len(changes) >= commits for changes in expected)
    for way, text in zip(cycle(range(len(ways))), received, strict=False):
        assert [change for _, change in blocks(text) if change] == expected[way]
    # Each of them would have read a page for each commit, and the first.
    assert shared < READERS


def test_waits_for_jobs_of_a_dataset_share_polls(client, orders, service, monkeypatch):
    jobs = [
        client.post(f"{orders}/writes", json=upsert({"id": number})).headers["location"]
        for number in range(3)
    ]
    fetches = Counting(service.api.dependencies["job_waits"].polls._fetch)
    monkeypatch.setattr(service.api.dependencies["job_waits"].polls, "_fetch", fetches)
    address = urlsplit(service.url)

    async def wait(job):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(
            f"GET {job}?wait=20 HTTP/1.1\r\nhost: test\r\nauthorization: {client.headers['authorization']}\r\n"
            "connection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        return answer

    async def wait_for_all():
        running = [asyncio.create_task(wait(job)) for job in islice(cycle(jobs), READERS)]
        await when(lambda: waiting(service.api.dependencies["job_waits"].polls) == READERS)
        with service.working():
            return await asyncio.gather(*running)

    for job, answer in zip(cycle(jobs), asyncio.run(wait_for_all()), strict=False):
        assert b'"state":"succeeded"' in answer
        assert job.rpartition("/")[2].encode() in answer
    assert fetches.calls < READERS / 2
