"""Rows over HTTP from tables of every kind: every version, pages of any size, filters, partitions, meta columns."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx2
import msgspec
import pyarrow.ipc as ipc
import pytest

from tests.support.http import problem
from tests.support.service import Service
from tests.support.shares import share
from tests.support.versioned_tables import DAYS, KINDS, comparable, registration_of

Row = dict[str, Any]
ARROW = "application/vnd.apache.arrow.stream"
META = ["_hw_commit_time", "_hw_commit_seqno", "_hw_record_key", "_hw_partition_path", "_hw_file_name"]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


class Http:
    """A dataset of one kind, and a plain model of its rows at every version."""

    def __init__(self, client: httpx2.Client, service: Service, kind: str) -> None:
        new = registration_of(kind)
        answer = client.post(
            "/datasets", content=msgspec.json.encode(new), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 201, answer.text
        self.client, self.service, self.path = client, service, answer.headers["location"]
        self.key = new.record_key
        self.versions: list[list[Row]] = [[]]

    def write(self, path: str, body: Row | None, rows: list[Row]) -> None:
        """Runs a write, after which the rows must be these."""
        answer = self.client.post(f"{self.path}/{path}", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job = self.client.get(answer.headers["location"]).json()
        assert job["state"] == "succeeded", job
        assert job["committed_version"] == len(self.versions), job
        self.versions.append(rows)

    def put(self, *rows: Row) -> None:
        """Upserts, or inserts where there is no key."""
        every = [*self.versions[-1], *rows]
        if self.key:
            every = list({tuple(row[name] for name in self.key): row for row in every}.values())
        operation = "upsert" if self.key else "insert"
        self.write("writes", {"operation": operation, "source": {"kind": "rows", "rows": rows}}, every)

    def rows(self, **query: Any) -> list[Row]:
        """All rows of a walk."""
        found: list[Row] = []
        while True:
            answer = self.client.get(f"{self.path}/rows", params=query)
            assert answer.status_code == 200, answer.text
            page = answer.json()
            assert len(page["rows"]) <= query.get("limit", 1_000)
            found += page["rows"]
            if page["next_page_token"] is None:
                return found
            query["page_token"] = page["next_page_token"]


def row(number: int, day: str, n: int, note: str | None = None) -> Row:
    return {"id": number, "day": day, "n": n, "note": note}


@pytest.fixture
def table(client: httpx2.Client, service: Service, kind: str) -> Http:
    """A table of three versions or four."""
    table = Http(client, service, kind)
    table.put(*(row(number, DAYS[number % 3], number) for number in range(9)))
    if kind == "postpone":
        # Rows without a bucket are not seen; compaction gives them theirs.
        table.versions[1], waiting = [], table.versions[1]
        table.write("compactions", None, waiting)
    table.put(*(row(number, DAYS[number % 3], 50 + number, "again") for number in (0, 4, 8, 12)))
    if kind == "postpone":
        table.versions[-1], waiting = table.versions[-2], table.versions[-1]
        table.write("compactions", None, waiting)
    body = {"operation": "delete", "where": "n < 3"}
    table.write("writes", body, [each for each in table.versions[-1] if each["n"] >= 3])
    return table


@share(3)
@EVERY_KIND
def test_every_version_of_every_kind_is_read_over_http(table: Http, kind: str) -> None:
    for version, expected in enumerate(table.versions):
        whole = table.rows(version=version)
        assert comparable(whole) == comparable(expected), version
        assert table.rows(version=version, limit=2) == whole


@share(3)
@EVERY_KIND
def test_pages_keep_their_version_during_later_commits(table: Http, kind: str) -> None:
    first = table.client.get(f"{table.path}/rows", params={"limit": 2}).json()
    expected = table.rows()
    if kind != "postpone":
        table.put(row(3, DAYS[0], 99), row(77, DAYS[1], 99))
    table.client.post(f"{table.path}/compactions")
    table.service.work()
    rest = table.rows(limit=3, page_token=first["next_page_token"])
    assert first["rows"] + rest == expected


@EVERY_KIND
def test_filters_and_partitions_select_rows_of_every_kind(table: Http, kind: str) -> None:
    rows = table.versions[-1]
    found = table.rows(where="n >= 50 AND day != '2026-11-21'", limit=2)
    assert comparable(found) == comparable(
        [each for each in rows if each["n"] >= 50 and each["day"] != "2026-11-21"]
    )
    assert comparable(table.rows(partitions="day=2026-11-2[02]")) == comparable(
        [each for each in rows if each["day"] != "2026-11-21"]
    )
    both = table.rows(where="note IS NULL", partitions=[f"day={DAYS[0]}", f"day={DAYS[1]}"], columns="n")
    assert comparable(both) == comparable(
        [{"n": each["n"]} for each in rows if each["note"] is None and each["day"] in DAYS[:2]]
    )


@share(3)
@EVERY_KIND
def test_meta_columns_are_returned_in_every_format(table: Http, kind: str) -> None:
    times = {
        item["version"]: item["completed_at"]
        for item in table.client.get(f"{table.path}/timeline").json()["items"]
    }
    found = table.rows(meta="true", columns="note,n")
    assert len(found) == len(table.versions[-1])
    for each in found:
        assert list(each) == ["note", "n", *META]
        version = int(each["_hw_commit_seqno"].split("-")[0])
        assert each["_hw_commit_time"][:23] == times[version][:23]
        assert each["_hw_partition_path"] in {f"day={day}" for day in DAYS}
        if table.key:
            assert each["_hw_record_key"].startswith(f"{table.key[0]}:")
        else:
            assert each["_hw_record_key"] is None
    lines = table.client.get(f"{table.path}/rows?meta=true", headers={"Accept": "application/x-ndjson"}).text
    assert [json.loads(line) for line in lines.splitlines()] == table.rows(meta="true")
    arrow = table.client.get(f"{table.path}/rows?meta=true&columns=note,n", headers={"Accept": ARROW}).content
    as_arrow = ipc.open_stream(io.BytesIO(arrow)).read_all()
    assert as_arrow.column("_hw_file_name").to_pylist() == [each["_hw_file_name"] for each in found]
    assert as_arrow.column_names == ["note", "n", *META]


@pytest.mark.parametrize("kind", ["copy_on_write"])
@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"where": "nope = 1"}, "invalid-filter", None),
        ({"where": "n ="}, "invalid-filter", None),
        ({"partitions": "country=DE"}, "invalid-request", "/partitions"),
        ({"meta": "perhaps"}, "invalid-request", "/meta"),
        ({"page_token": "gqd2ZXJzaW9uAaNyb3cB"}, "invalid-request", "/page_token"),
    ],
    ids=str,
)
def test_invalid_query_is_refused_with_its_pointer(
    table: Http, kind: str, query: Row, code: str, pointer: str | None
) -> None:
    members = problem(table.client.get(f"{table.path}/rows", params=query), 400, code)
    if pointer is not None:
        assert members["errors"][0]["pointer"] == pointer


def test_partitions_of_an_unpartitioned_dataset_are_refused(client: httpx2.Client, orders: str) -> None:
    members = problem(client.get(f"{orders}/rows", params={"partitions": "*"}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/partitions"
