"""A dataset with UUIDs in its key, its partitions and its values, from the write to rows, feed, lookups and views."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.row_formats import ARROW, CSV, PARQUET, arrow_stream, parquet
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

_numbers = count(1)
ONE = "0190163d-8694-739b-aea5-966c26f8ad91"
TWO = "ffffffff-ffff-4fff-8fff-ffffffffffff"
THREE = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
FIELDS = [
    {"name": "id", "type": "uuid"},
    {"name": "region", "type": "uuid"},
    {"name": "friends", "type": "list<uuid>"},
    {"name": "seen", "type": "map<uuid, int32>"},
]


@pytest.fixture
def people(new_table: Callable[..., Table]) -> Table:
    return new_table(
        name=f"people_{next(_numbers)}",
        schema={"fields": FIELDS},
        record_key=["id", "region"],
        partition_by=["region"],
    )


def row(id_: str, friends: list[str] | None = None, seen: dict[str, int] | None = None) -> dict[str, Any]:
    return {"id": id_, "region": THREE, "friends": friends, "seen": seen}


def sent(table: Table, content: bytes, media_type: str) -> None:
    answer = table.client.post(
        f"{table.path}/writes",
        params={"operation": "upsert"},
        content=content,
        headers={"Content-Type": media_type},
    )
    table.succeeded(answer.json()["id"])


def queried(table: Table, **query: Any) -> list[dict[str, Any]]:
    answer = table.client.get(f"{table.path}/rows", params=query)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows


def test_uuids_are_keys_partitions_and_values_in_every_form(people: Table) -> None:
    people.write("upsert", [row(ONE.upper(), [TWO, TWO.upper()], {ONE: 1}), row(TWO)])
    sent(people, f"id,region,friends\n{THREE.upper()},{THREE},\n".encode(), CSV)
    annotated = pa.array([uuid.UUID(ONE)], pa.uuid())
    region = pa.array([uuid.UUID(THREE).bytes], pa.binary(16))
    sent(people, arrow_stream(pa.table({"id": annotated, "region": region})), ARROW)
    assert people.changes()[-1]["row"] == row(ONE)
    sent(people, parquet(pa.table({"id": [TWO], "region": annotated.take(pa.array([0]))})), PARQUET)
    everyone = [row(ONE), row(TWO), row(THREE)]
    moved = {**row(TWO), "region": ONE}
    assert sorted(people.sound(), key=str) == sorted([*everyone, moved], key=str)

    assert queried(people, where=f"id = '{ONE.upper()}'") == [row(ONE)]
    assert len(queried(people, where=f"id > '{ONE}' and id != '{TWO}'")) == 1
    assert queried(people, partitions=f"region={ONE}") == [moved]
    answer = people.client.get(f"{people.path}/rows", params={"where": "id = '1'"})
    assert answer.status_code == 400
    assert "8-4-4-4-12" in answer.text
    found = people.client.get(f"{people.path}/rows/{TWO.upper()},{ONE}")
    assert found.json()["row"] == moved, found.text
    changes = people.client.get(f"{people.path}/rows/{ONE},{THREE}", params={"history": True}).json()[
        "changes"
    ]
    assert [change["op"] for change in changes] == ["+A", "-C", "+C"]


def test_uuids_leave_as_arrow_and_parquet_with_their_type(people: Table) -> None:
    people.write("upsert", [row(ONE, [TWO, None], {ONE: 1}), row(TWO)])
    read = people.client.get(f"{people.path}/rows", headers={"Accept": ARROW}).content
    rows = pa.ipc.open_stream(read).read_all()
    assert rows.schema.field("id").type == pa.uuid()
    assert rows.schema.field("friends").type.value_type == pa.uuid()
    assert sorted(map(str, rows.column("id").to_pylist())) == [ONE, TWO]
    for form in ("arrow", "parquet", "csv", "ndjson"):
        job = people.client.post(f"{people.path}/reads", json={"format": form}).json()
        people.succeeded(job["id"])
        content = people.client.get(f"/jobs/{job['id']}/result").content
        if form in ("csv", "ndjson"):
            assert ONE in content.decode()
            continue
        table = (
            pa.ipc.open_stream(content).read_all() if form == "arrow" else pq.read_table(io.BytesIO(content))
        )
        assert table.schema.field("id").type == pa.uuid()
        if form == "parquet":
            # Spark refuses files whose columns have the annotation of Parquet.
            assert pq.ParquetFile(io.BytesIO(content)).schema.column(0).logical_type.type == "NONE"
        sent(people, arrow_stream(table), ARROW)
    assert len(people.sound()) == 2


@share(3)
def test_uuids_are_texts_in_views(people: Table) -> None:
    people.write("upsert", [row(ONE, [TWO]), row(TWO)])
    name = people.client.get(people.path).json()["name"]
    body = {
        "name": f"friends_of_{name}",
        "sql": f"SELECT id, region, friends FROM {name} WHERE id = '{ONE}'",
    }
    view = people.client.post("/views", json=body)
    assert view.status_code == 201, view.text
    seen = Table(
        deployment=people.deployment, client=people.client, id=view.json()["id"], key=("id", "region")
    )
    people.write("upsert", [row(ONE, [THREE])])

    def is_current() -> bool:
        state = people.client.get(f"/views/{seen.id}").json()
        assert state["freshness"] != "failed", state["error"]
        return bool(state["freshness"] == "current")

    until(is_current, "the view to take in the last write", seconds_max=120)
    assert seen.sound() == [{"id": ONE, "region": THREE, "friends": [THREE]}]
    types = [field["type"] for field in seen.client.get(seen.path).json()["schema"]["fields"]]
    assert types == ["string", "string", "list<string>"]
    changes = seen.client.get(f"{seen.path}/changes", params={"since": 0}).json()["changes"]
    assert changes[-1]["row"]["friends"] == [THREE]
