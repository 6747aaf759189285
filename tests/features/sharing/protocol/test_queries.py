"""Queries of Delta Sharing: files, links, hints, versions, and what they show to whom."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.values import DeletedRows, NewRecipient, RecipientGrant
from tests.features.sharing.protocol.conftest import DELTA, ITEMS, TABLE, World, content_of, table_of

ROWS = [{"id": at, "region": "EU" if at % 3 else "US", "price": f"{at}.50"} for at in range(30)]


@pytest.fixture
def items(world: World) -> World:
    world.dataset({**ITEMS, "table_type": "merge_on_read"})
    world.write("items", *ROWS)
    return world


def test_recipient_reads_all_rows_without_columns_of_the_format(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        lines = reader.query()
        assert lines[0] == {"protocol": {"minReaderVersion": 1}}
        [file] = [line["file"] for line in lines[2:]]
        assert b"_hw_" not in content_of(file["url"])
        assert table_of(file).column_names == ["id", "region", "price"]
        assert [row["id"] for row in reader.rows()] == list(range(30))
        assert reader.rows()[3] == {"id": 3, "region": "US", "price": Decimal("3.50")}
        headers = {"delta-sharing-capabilities": DELTA}
        metadata = reader.get(f"{TABLE.format('ITEMS')}/metadata", headers=headers)
        assert metadata.headers["delta-sharing-capabilities"] == "responseformat=delta"
        assert metadata.headers["delta-table-version"] == "1"


def test_filter_and_mask_hold_for_files_statistics_and_links(items: World) -> None:
    share = items.share("items")
    grant = {"where": "region = 'EU'", "mask": ("price",)}
    with items.reader(share, {"items": grant}) as reader, items.reader(share, name="other") as other:
        rows = reader.rows()
        assert rows == [{"id": at, "region": "EU", "price": None} for at in range(30) if at % 3]
        [line] = reader.query()[2:]
        assert json.loads(line["file"]["stats"]) == {
            "numRecords": 20,
            "minValues": {"id": 1, "region": "EU"},
            "maxValues": {"id": 29, "region": "EU"},
            "nullCount": {"id": 0, "region": 0},
        }
        schema = json.loads(reader.query()[1]["metaData"]["schemaString"])
        assert [field["name"] for field in schema["fields"]] == ["id", "region", "price"]
        # A hint on a column without values prunes nothing, whatever it says.
        assert len(reader.rows(predicateHints=["price > 1000"])) == 20
        assert reader.rows(predicateHints=["region = 'US'"]) == []
        assert len(other.rows()) == 30


def test_deleted_rows_are_in_no_file(items: World) -> None:
    items.write("items", {"id": 7}, operation="delete")
    share = items.share("items")
    with items.reader(share) as reader:
        assert [row["id"] for row in reader.rows()] == [at for at in range(30) if at != 7]
        # The first version is kept.
        assert len(reader.rows(version=1)) == 30
        [line] = reader.query(version=2)[2:]
        assert line["file"]["version"] == 2
        assert line["file"]["timestamp"] > 0


def test_deleted_rows_are_in_vectors_if_the_share_says_so(items: World) -> None:
    items.write("items", {"id": 7}, operation="delete")
    share = items.share("items", deleted_rows=DeletedRows.VECTOR)
    with items.reader(share) as reader:
        refused = reader.client.post(f"/delta-sharing{TABLE.format('items')}/query", json={})
        assert (refused.status_code, refused.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
        assert "responseformat=delta" in refused.json()["message"]
        [line] = reader.query(capabilities=DELTA)[2:]
        add = line["file"]["deltaSingleAction"]["add"]
        assert add["deletionVector"]["cardinality"] == 1
        assert add["stats"] == '{"numRecords":30}'
        assert len(table_of({"url": add["path"], "size": add["size"]})) == 30
    with items.reader(share, {"items": {"where": "id < 10"}}, name="part") as part:
        assert [row["id"] for row in part.rows()] == [0, 1, 2, 3, 4, 5, 6, 8, 9]


def test_hints_prune_files_and_limits_end_them(world: World) -> None:
    world.dataset({**ITEMS, "record_key": []})
    for start in (0, 10, 20):
        world.write("items", *({"id": start + at, "region": "EU"} for at in range(10)), operation="insert")
    share = world.share("items")
    with world.reader(share) as reader:

        def count(**body: Any) -> int:
            return len(reader.query(**body)) - 2

        assert count() == 3
        assert count(limitHint=0) == 0
        assert count(limitHint=5) == 1
        assert count(limitHint=15) == 2
        assert count(predicateHints=["id = 25"]) == 1
        assert count(predicateHints=["id >= 15", "no condition"]) == 2
        # What matches may be in any of them.
        assert count(predicateHints=["id >= 15"], limitHint=1) == 2
        tree = {
            "op": "lessThan",
            "children": [
                {"op": "column", "name": "id", "valueType": "long"},
                {"op": "literal", "value": "10", "valueType": "long"},
            ],
        }
        assert count(jsonPredicateHints=json.dumps(tree)) == 1


def test_renamed_columns_are_found_by_id(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        items.change("items", kind="rename", name="price", to="cost")
        items.write("items", {"id": 100, "region": "EU", "cost": "1.00"})
        refused = reader.client.post(f"/delta-sharing{TABLE.format('items')}/query", json={})
        assert refused.status_code == 400
        lines = reader.query(capabilities="responseformat=delta,parquet")
        delta = lines[1]["metaData"]["deltaMetadata"]
        assert delta["configuration"]["delta.columnMapping.mode"] == "id"
        names = {
            field["metadata"]["delta.columnMapping.physicalName"]: field["name"]
            for field in json.loads(delta["schemaString"])["fields"]
        }
        assert names == {"col-1": "id", "col-2": "region", "col-3": "cost"}
        old = reader.query(capabilities=DELTA, version=1)
        assert '"price"' in old[1]["metaData"]["deltaMetadata"]["schemaString"]
    with items.reader(share, {"items": {"where": "cost < 3"}}, name="part") as part:
        # Rendered files have the names of the version.
        assert [row["cost"] for row in part.rows()] == [
            Decimal("0.50"),
            Decimal("1.50"),
            Decimal("2.50"),
            Decimal("1.00"),
        ]


def test_file_whose_lists_were_widened_has_the_type_of_the_version(world: World) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "marks", "type": "list<int32>"}]
    world.dataset({"name": "items", "schema": {"fields": fields}, "record_key": ["id"]})
    world.write("items", {"id": 1, "marks": [5]})
    world.change("items", kind="widen", name="marks", type="list<int64>")
    with world.reader(world.share("items")) as reader:
        [line] = reader.query(capabilities=DELTA)[2:]
        add = line["file"]["deltaSingleAction"]["add"]
        table = table_of({"url": add["path"], "size": add["size"]})
        assert str(table.schema.field("marks").type.value_type) == "int64"
        assert table.to_pylist() == [{"id": 1, "marks": [5]}]
        [before] = reader.query(capabilities=DELTA, version=1)[2:]
        add = before["file"]["deltaSingleAction"]["add"]
        table = table_of({"url": add["path"], "size": add["size"]})
        assert str(table.schema.field("marks").type.value_type) == "int32"


def test_table_whose_writes_wait_says_so(world: World) -> None:
    world.dataset({**ITEMS, "table_type": "merge_on_read", "changelog": {"producer": "deferred"}})
    world.write("items", *ROWS)
    share = world.share("items")
    with world.reader(share) as reader:

        def properties(capabilities: str = "", **at: Any) -> dict[str, str]:
            metadata = reader.query(capabilities=capabilities, **at)[1]["metaData"]
            found: dict[str, str] = metadata.get("deltaMetadata", metadata)["configuration"]
            return {name: value for name, value in found.items() if name.startswith("headwater")}

        waiting = {"headwater.read": "read_optimized", "headwater.compacted-version": "0"}
        assert properties() == properties(DELTA) == properties(version=1) == waiting
        answer = world.client.post("/datasets/items/compactions", json={})
        assert answer.status_code == 202, answer.text
        world.service.work()
        assert properties() == properties(DELTA) == {}
        assert properties(version=1) == waiting
        assert len(reader.rows()) == 30


def test_versions_and_times(items: World) -> None:
    items.write("items", {"id": 100, "region": "EU"})
    share = items.share("items")
    with items.reader(share) as reader:
        assert len(reader.rows(version=1)) == 30
        assert len(reader.rows(timestamp="2999-01-01T00:00:00Z")) == 31
        assert len(reader.query(version=0)) == 2
        version = f"{TABLE.format('items')}/version"
        assert reader.get(version).headers["delta-table-version"] == "2"
        since = {"startingTimestamp": "2020-01-01T00:00:00Z"}
        assert reader.get(version, params=since).headers["delta-table-version"] == "1"
        path = f"/delta-sharing{TABLE.format('items')}/query"
        for body in (
            {"version": 3},
            {"version": -1},
            {"version": 1, "timestamp": "2026-01-01T00:00:00Z"},
            {"timestamp": "2020-01-01T00:00:00Z"},
            {"timestamp": "yesterday"},
            {"startingVersion": 1},
            {"limitHint": -1},
            {"limitHint": "many"},
        ):
            refused = reader.client.post(path, json=body)
            assert (refused.status_code, refused.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE"), (
                body
            )


def test_change_of_a_grant_holds_for_links_that_were_given_before(items: World) -> None:
    share = items.share("items")
    recipients = ShareRecipientStore(items.service.database)
    with items.reader(share, {"items": {"where": "region = 'EU'"}}) as reader:
        [line] = reader.query()[2:]
        assert content_of(line["file"]["url"])
        recipient = recipients.get(items.tenant_id, share.id, reader.id)
        grants = (RecipientGrant(dataset_id=items.dataset_id("items"), where="region = 'US'"),)
        new = NewRecipient(name="acme", grants=grants, expires_at=None, requests_per_second=None)
        recipients.change(items.tenant_id, share.id, reader.id, new, revision=recipient.revision)
        assert wait_for_refusal(line["file"]["url"])
        assert [row["region"] for row in reader.rows()] == ["US"] * 10


def test_revoked_recipient_reads_nothing_more(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        [line] = reader.query()[2:]
        ShareRecipientStore(items.service.database).delete(
            items.tenant_id, share.id, reader.id, revision=None
        )
        assert wait_for_refusal(line["file"]["url"])
        assert reader.get("/shares").json()["errorCode"] == "UNAUTHENTICATED"


def wait_for_refusal(url: str) -> bool:
    """Whether a link is refused within the time for which principals are cached."""
    for _ in range(100):
        with httpx2.Client(trust_env=False, timeout=30) as client:
            answer = client.get(url)
        if answer.status_code == 403:
            return b"PAR1" not in answer.content
        time.sleep(0.05)
    return False
