"""Tables with files of earlier releases that have `uint32`: they are published without these columns."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import httpx2
import pytest

from tests.features.iceberg.handlers.test_catalogue import TABLES, failure
from tests.support.earlier_layout import earlier_layout
from tests.support.http import ORDERS, upsert
from tests.support.service import Service
from tests.support.tables_in_s3 import table_client

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "size", "type": "uint32"},
    {"name": "sizes", "type": "list<uint32>"},
    {"name": "small", "type": "uint16"},
]
OMITTED = {"size", "sizes"}


class Table:
    """A dataset with a file of an earlier release, at version 1."""

    def __init__(self, service: Service, client: httpx2.Client, **settings: Any) -> None:
        self.service, self.client = service, client
        dataset = ORDERS | {"schema": {"fields": FIELDS}} | settings
        answer = client.post("/datasets", json=dataset)
        assert answer.status_code == 201, answer.text
        self.path: str = answer.headers["location"]
        with earlier_layout():
            self.write(1)

    def write(self, number: int) -> None:
        row = {"id": number, "size": 4_000_000_000, "sizes": [1], "small": 60_000}
        self.client.post(f"{self.path}/writes", json=upsert(row))
        self.service.work()

    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.client.get(f"{TABLES}/orders").json()["metadata"]
        return metadata

    def names(self) -> list[set[str]]:
        """The columns of each schema."""
        return [{field["name"] for field in each["fields"]} for each in self.metadata()["schemas"]]

    def bounds(self) -> set[int]:
        """The ids of the columns that have bounds or counts in a manifest of the head."""
        s3 = table_client(
            self.service, self.client.headers["authorization"].removeprefix("Bearer "), "orders"
        )
        metadata = self.metadata()
        below = len(metadata["location"]) + 1
        numbers = set[int]()
        for entry in avro(s3.get(metadata["snapshots"][-1]["manifest-list"][below:]).content):
            for file in avro(s3.get(entry["manifest_path"][below:]).content):
                for name in ("lower_bounds", "null_value_counts", "value_counts"):
                    numbers |= {each["key"] for each in file["data_file"][name] or ()}
        return numbers

    def plan(self, **request: Any) -> httpx2.Response:
        return self.client.post(f"{TABLES}/orders/plan", json=request)


def avro(content: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(content)))


@pytest.fixture
def table(service: Service, client: httpx2.Client) -> Table:
    return Table(service, client)


def test_unsigned_columns_of_earlier_files_are_left_out_until_no_version_has_such_a_file(
    table: Table,
) -> None:
    every = {field["name"] for field in FIELDS}
    assert table.names() == [every - OMITTED]
    properties = table.metadata()["properties"]
    assert properties["headwater.omitted"] == "size, sizes"
    assert "POST /datasets/{dataset}/clusterings" in properties["headwater.omitted-reason"]
    assert table.bounds() <= {1, 4}
    ids = {"size": 2, "small": 4}
    above = {name: {"type": "gt", "term": name, "value": 1} for name in ids}
    failure(table.plan(filter=above["size"]), 400, "BadRequestException")
    assert len(table.plan(filter=above["small"]).json()["file-scan-tasks"]) == 1
    # The rows themselves have them.
    assert table.client.get(f"{table.path}/rows").json()["rows"][0]["size"] == 4_000_000_000

    table.client.post(f"{table.path}/clusterings", json={"columns": ["id"]})
    table.service.work()
    # The first version is kept still, and its file.
    assert table.names() == [every - OMITTED]
    table.client.post(f"{table.path}/tags", json={"name": "first", "version": 1})
    table.client.post(f"{table.path}/cleans", json={"versions": 1})
    table.service.work()
    assert table.names() == [every - OMITTED]
    table.client.delete(f"{table.path}/tags/first")
    table.client.post(f"{table.path}/cleans", json={"versions": 1})
    table.service.work()
    assert table.names() == [every]
    assert table.metadata()["properties"] == {"headwater.dataset": "orders"}
    assert ids["size"] in table.bounds()
    assert len(table.plan(filter=above["size"]).json()["file-scan-tasks"]) == 1


def test_partition_by_a_column_that_is_left_out_is_not_published(
    service: Service, client: httpx2.Client
) -> None:
    table = Table(service, client, partition_by=["truncate(10, size)"], record_key=["id", "size"])
    metadata = table.metadata()
    assert [each["fields"] for each in metadata["partition-specs"]] == [[]]
    assert metadata["default-spec-id"] == 0
    [task] = table.plan().json()["file-scan-tasks"]
    assert (task["data-file"]["spec-id"], task["data-file"]["partition"]) == (0, [])
    assert table.bounds() <= {1, 4}


def test_widened_column_that_is_left_out_does_not_stop_the_table(
    service: Service, client: httpx2.Client
) -> None:
    table = Table(service, client)
    tag = client.get(table.path).headers["etag"]
    change = {"changes": [{"kind": "widen", "name": "size", "type": "double"}]}
    answer = client.patch(table.path, json=change, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text
    assert all("size" not in names for names in table.names())


def test_files_of_this_release_have_all_columns(service: Service, client: httpx2.Client) -> None:
    answer = client.post("/datasets", json=ORDERS | {"schema": {"fields": FIELDS}})
    client.post(f"{answer.headers['location']}/writes", json=upsert({"id": 1, "size": 1}))
    service.work()
    metadata = client.get(f"{TABLES}/orders").json()["metadata"]
    assert {"size", "sizes"} <= {field["name"] for field in metadata["schemas"][0]["fields"]}
    assert metadata["properties"] == {"headwater.dataset": "orders"}
