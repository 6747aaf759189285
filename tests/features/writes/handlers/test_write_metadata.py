"""The metadata of writes: bounded, and shown by jobs, the timeline, the feed and incremental reads."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service

RUN = {"run": "nightly-7", "team/owner": "ops: \u00e9"}


@pytest.fixture
def path(client: httpx2.Client) -> str:
    answer = client.post("/datasets", json=ORDERS)
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def accepted(client: httpx2.Client, path: str, body: dict[str, Any]) -> str:
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.headers["location"])


def feed(client: httpx2.Client, path: str, **params: Any) -> Any:
    answer = client.get(f"{path}/changes", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def commits(page: Any) -> list[tuple[int, list[dict[str, str]]]]:
    return [(each["version"], each["metadata"]) for each in page.get("commits", [])]


def test_metadata_is_shown_beside_its_commit(client: httpx2.Client, service: Service, path: str) -> None:
    job = accepted(client, path, upsert({"id": 1}) | {"metadata": RUN})
    assert client.get(job).json()["metadata"] == RUN
    service.work()
    assert client.get(job).json()["metadata"] == RUN
    [entry] = client.get(f"{path}/timeline").json()["items"]
    assert entry["metadata"] == RUN
    assert "metadata" not in entry["parameters"]
    page = feed(client, path)
    assert commits(page) == [(1, [RUN])]
    assert page["commits"][0]["committed_at"] == page["changes"][0]["system_time"]


def test_writes_without_metadata_cost_the_feed_nothing(
    client: httpx2.Client, service: Service, path: str
) -> None:
    for members in ({}, {"metadata": {}}):
        job = accepted(client, path, upsert({"id": 1, "note": str(members)}) | members)
        service.work()
        assert client.get(job).json()["metadata"] == {}
    assert "commits" not in feed(client, path)
    assert [entry["metadata"] for entry in client.get(f"{path}/timeline").json()["items"]] == [{}, {}]


def test_each_write_of_a_group_keeps_its_own(client: httpx2.Client, service: Service, path: str) -> None:
    for number in range(3):
        members = {} if number == 1 else {"metadata": {"run": str(number)}}
        accepted(client, path, upsert({"id": number}) | members)
    service.work()
    assert commits(feed(client, path)) == [(1, [{"run": "0"}, {"run": "2"}])]
    entries = client.get(f"{path}/timeline").json()["items"]
    assert [entry["metadata"] for entry in entries] == [{"run": "2"}, {}, {"run": "0"}]


def test_write_that_changes_nothing_adds_nothing_to_the_feed(
    client: httpx2.Client, service: Service, path: str
) -> None:
    for run in "12":
        accepted(client, path, upsert({"id": 1, "note": "a"}) | {"metadata": {"run": run}})
        service.work()
    assert commits(feed(client, path)) == [(1, [{"run": "1"}])]
    assert client.get(f"{path}/timeline").json()["items"][0]["metadata"] == {"run": "2"}


def test_page_lists_the_commits_of_its_positions(client: httpx2.Client, service: Service, path: str) -> None:
    for run in range(1, 4):
        rows = ({"id": 10 * run + number} for number in range(3))
        accepted(client, path, upsert(*rows) | {"metadata": {"run": str(run)}})
        service.work()

    def versions(**params: Any) -> list[int]:
        return [version for version, _ in commits(feed(client, path, **params))]

    assert versions(limit=2) == [1]
    assert versions(since=2, limit=2) == [1, 2]
    assert versions(since=3, limit=3) == [2]
    assert versions(since=3) == [2, 3]
    assert versions(since=9) == []
    # A filter that leaves the changes out leaves the positions in.
    assert versions(where="id = 11") == [1, 2, 3]
    assert versions(since="snapshot") == []


def test_metadata_is_given_with_rows_that_are_the_body(
    client: httpx2.Client, service: Service, path: str
) -> None:
    answer = client.post(
        f"{path}/writes",
        params={"metadata": [f"{key}:{value}" for key, value in RUN.items()]},
        content=b'{"id": 1}\n',
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    assert commits(feed(client, path)) == [(1, [RUN])]


@pytest.mark.parametrize("metadata", [["run"], [":7"], ["run:7", "run:8"]])
def test_query_parameter_is_a_key_and_a_value(client: httpx2.Client, path: str, metadata: list[str]) -> None:
    answer = client.post(
        f"{path}/writes",
        params={"metadata": metadata},
        content=b'{"id": 1}\n',
        headers={"Content-Type": "application/x-ndjson"},
    )
    [error] = problem(answer, 400, "invalid-request")["errors"]
    assert error["pointer"].startswith("/metadata")


@pytest.mark.parametrize(
    ("metadata", "pointer"),
    [
        ({"a b": "1"}, "/metadata/a b"),
        ({"": "1"}, "/metadata/"),
        ({"k" * 129: "1"}, f"/metadata/{'k' * 129}"),
        ({"x~/y": "1"}, "/metadata/x~0~1y"),
        ({"run": "v" * 1_025}, "/metadata/run"),
        ({str(number): "" for number in range(33)}, "/metadata"),
        ({str(number): "v" * 1_000 for number in range(5)}, "/metadata"),
        ({"run": 7}, "/metadata/run"),
        ({"run": "7", "team.name": 8, "x/y": None}, "/metadata/team.name"),
        ([], "/metadata"),
    ],
)
def test_metadata_is_bounded(client: httpx2.Client, path: str, metadata: Any, pointer: str) -> None:
    answer = client.post(f"{path}/writes", json=upsert({"id": 1}) | {"metadata": metadata})
    assert [error["pointer"] for error in problem(answer, 400, "invalid-request")["errors"]] == [pointer]


def test_writes_of_every_kind_have_metadata(client: httpx2.Client, service: Service, path: str) -> None:
    other = client.post("/datasets", json={**ORDERS, "name": "others"}).headers["location"]
    source = {"kind": "rows", "rows": [{"id": 1}]}
    bodies = [
        {"operation": "insert", "source": source},
        {"operation": "overwrite", "source": {"kind": "rows", "rows": [{"id": 2}]}},
        {"operation": "delete", "where": "id = 2"},
    ]
    for number, body in enumerate(bodies):
        accepted(client, path, body | {"metadata": {"run": str(number)}})
        service.work()
    writes = [
        {"dataset": each.rsplit("/", 1)[1], **upsert({"id": 5}), "metadata": {"to": each}}
        for each in (path, other)
    ]
    answer = client.post("/transactions", json={"writes": writes})
    assert answer.status_code == 202, answer.text
    service.work()
    expected = [(number + 1, [{"run": str(number)}]) for number in range(3)]
    assert commits(feed(client, path)) == [*expected, (4, [{"to": path}])]
    assert commits(feed(client, other)) == [(1, [{"to": other}])]


def test_arrow_has_the_commits_in_the_metadata_of_its_schema(
    client: httpx2.Client, service: Service, path: str
) -> None:
    accepted(client, path, upsert({"id": 1}) | {"metadata": RUN})
    service.work()
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    with pa.ipc.open_stream(io.BytesIO(client.get(f"{path}/changes", headers=headers).content)) as stream:
        listed = json.loads(stream.schema.metadata[b"commits"])
    assert listed == feed(client, path)["commits"]


def test_page_ends_before_its_metadata_is_large(
    client: httpx2.Client, service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.changes.service.read_changes.METADATA_PAGE_BYTES_MAX", 60)
    for run in range(1, 5):
        accepted(client, path, upsert({"id": 1, "note": str(run)}) | {"metadata": {"run": str(run) * 10}})
        service.work()
    since, found = 0, []
    while (page := feed(client, path, since=since))["changes"]:
        found.append([version for version, _ in commits(page)])
        assert [change["version"] for change in page["changes"]] == sorted(found[-1] * 2)[since == 0 :]
        since = page["next_since"]
    assert found == [[1, 2], [3, 4]]


def test_idempotency_key_is_of_the_metadata_too(client: httpx2.Client, path: str) -> None:
    headers = {"Idempotency-Key": "once"}
    for run, status in (("1", 202), ("1", 202), ("2", 422)):
        body = upsert({"id": 1}) | {"metadata": {"run": run}}
        assert client.post(f"{path}/writes", json=body, headers=headers).status_code == status


def test_incremental_read_has_the_commits_of_its_range(
    client: httpx2.Client, service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in range(1, 5):
        accepted(client, path, upsert({"id": run}) | {"metadata": {"run": str(run)}})
        service.work()

    def read(**query: Any) -> Any:
        answer = client.post(f"{path}/reads", json=query)
        assert answer.status_code == 202, answer.text
        service.work()
        job = answer.headers["location"]
        result = client.get(f"{job}/result").json()
        of_job = client.get(job).json()["result"]
        for name in ("commits", "commits_truncated"):
            assert (name in result, result.get(name)) == (name in of_job, of_job.get(name))
        return result

    for more in ({}, {"meta": True}, {"disposition": "files"}):
        result = read(query="incremental", begin=1, end=3, **more)
        assert commits(result) == [(2, [{"run": "2"}]), (3, [{"run": "3"}])]
        assert "commits_truncated" not in result
    assert "commits" not in read(query="incremental", begin=4)
    assert "commits" not in read()
    monkeypatch.setattr("app.features.reads.service.run._METADATA_BYTES_MAX", 30)
    result = read(query="incremental", begin=0)
    assert (commits(result), result["commits_truncated"]) == (
        [(1, [{"run": "1"}]), (2, [{"run": "2"}])],
        True,
    )
