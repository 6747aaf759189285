"""A feed whose files are merged beside writers and readers, over HTTP: every form of it stays the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.retention.repository.feed import RetentionStore
from tests.support.exports import reap
from tests.support.http import problem, upsert
from tests.support.service import Service
from tests.support.shares import share
from workers.wiring import reconcilers

WRITERS, WRITES = 3, 6
ARROW = "application/vnd.apache.arrow.stream"
FORMS = (
    "application/json",
    "application/x-ndjson",
    ARROW,
)


class Merging:
    """The service of a dataset, with a policy that merges whatever there is."""

    def __init__(self, service: Service, client: httpx2.Client, path: str) -> None:
        self.id: str = client.get(path).json()["id"]
        patch(client, path, services={"changelog": {"small_files": 2, "seconds": 0}})
        tables = maintenance_store(service.platform)
        self.tenant_id = next(tenant for tenant, dataset in tables.due(10_000) if dataset == self.id)
        self._run = RunMaintenance(
            tables=tables,
            reconcilers={"changelog": reconcilers(service.worker)["changelog"]},
            owner="tests",
        )

    def run(self) -> None:
        self._run.run(self.tenant_id, self.id)


@pytest.fixture
def merging(service: Service, client: httpx2.Client, orders: str) -> Merging:
    return Merging(service, client, orders)


def followed(client: httpx2.Client, path: str, limit: int, done: threading.Event) -> list[dict[str, Any]]:
    """What a reader sees that reads page after page until nothing is written any more."""
    seen: list[dict[str, Any]] = []
    ended = False
    while not ended:
        ended = done.is_set()
        while True:
            page = client.get(f"{path}/changes", params={"since": len(seen), "limit": limit})
            assert page.status_code == 200, page.text
            changes = page.json()["changes"]
            if not changes:
                break
            seen += changes
    return seen


def contents(client: httpx2.Client, path: str, sinces: Sequence[int]) -> Iterator[bytes | pa.Table]:
    """Pages of every form and size. Whether an Arrow column without nulls has a bitmap depends on its files."""
    for since in sinces:
        for form in FORMS:
            for query in (
                {"limit": 7},
                {"limit": 1_000, "where": "id < 5"},
                {"limit": 3, "form": "debezium"},
            ):
                answer = client.get(
                    f"{path}/changes", params={"since": since} | query, headers={"Accept": form}
                )
                assert answer.status_code == 200, answer.text
                yield ipc.open_stream(answer.content).read_all() if form == ARROW else answer.content


def patch(client: httpx2.Client, path: str, **members: Any) -> None:
    match = {"If-Match": client.get(path).headers["ETag"]}
    answer = client.patch(path, json=members, headers=match)
    assert answer.status_code == 200, answer.text


def files(client: httpx2.Client, path: str) -> int:
    return int(client.get(f"{path}/statistics").json()["changelog"]["files"])


@share(2)
def test_feed_is_the_same_while_and_after_its_files_are_merged(
    service: Service, client: httpx2.Client, orders: str, merging: Merging
) -> None:
    done = threading.Event()

    def write(writer: int) -> None:
        for number in range(WRITES):
            rows = [{"id": key, "note": f"{writer}-{number}"} for key in (number, 100 + writer)]
            answer = client.post(f"{orders}/writes", json=upsert(*rows), headers={"Prefer": "wait=20"})
            assert answer.json()["state"] == "succeeded", answer.text

    def merge() -> None:
        while not done.wait(0.05):
            merging.run()

    with service.working(), ThreadPoolExecutor(WRITERS + 3) as pool:
        readers = [pool.submit(followed, client, orders, limit, done) for limit in (3, 1_000)]
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        merges = pool.submit(merge)
        try:
            for each in writers:
                each.result()
        finally:
            done.set()
        merges.result()
        one, other = (each.result() for each in readers)
    assert one == other
    assert [change["offset"] for change in one] == list(range(len(one)))
    sinces = range(0, len(one), 17)
    before = list(contents(client, orders, sinces))
    # Another version, so that the dataset is due.
    patch(client, orders, changelog={"retention": {"changes": 10_000}})
    for _ in range(5):
        merging.run()
    assert files(client, orders) == 1
    assert list(contents(client, orders, sinces)) == before
    # What was replaced goes, and nothing else.
    assert reap(service) > 0
    assert list(contents(client, orders, sinces)) == before
    assert client.get(f"{orders}/changes", params={"limit": 10_000}).json()["changes"] == one


@share(2)
def test_merged_file_is_cut_by_commits(
    service: Service, client: httpx2.Client, orders: str, merging: Merging
) -> None:
    for number in range(4):
        client.post(f"{orders}/writes", json=upsert({"id": number, "note": "a"}))
        service.work()
    whole = client.get(f"{orders}/changes").json()["changes"]
    merging.run()
    assert files(client, orders) == 1
    patch(client, orders, changelog={"retention": {"changes": 2}})
    retention = RetentionStore(service.database)
    assert retention.cut(merging.tenant_id, merging.id, follower_lag_seconds=60) == 2
    for _ in range(2):
        problem(client.get(f"{orders}/changes", params={"since": 1}), 410, "offset-expired")
        assert client.get(f"{orders}/changes", params={"since": "earliest"}).json()["changes"] == whole[2:]
        retention.expire_files(merging.tenant_id, merging.id, 100)
        reap(service)
