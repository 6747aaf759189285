"""Changes of Delta Sharing: they are those of the feed, for everyone who reads it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from app.core.catalog.tables import heads
from tests.features.sharing.protocol.conftest import DELTA, ITEMS, TABLE, Reader, World, content_of, table_of


@pytest.fixture
def items(world: World) -> World:
    world.dataset(ITEMS)
    world.write(
        "items", {"id": 1, "region": "EU", "price": "1.00"}, {"id": 2, "region": "US", "price": "2.00"}
    )
    world.write(
        "items", {"id": 1, "region": "US", "price": "1.00"}, {"id": 2, "region": "US", "price": "3.00"}
    )
    world.write("items", {"id": 2}, operation="delete")
    return world


def changes_of(reader: Reader, **parameters: Any) -> list[tuple[Any, ...]]:
    """The version, type, id and region of each change, sorted."""
    files = [line["cdf"] for line in reader.changes(**parameters)[2:]]
    return sorted(
        (file["version"], row["_change_type"], row["id"], row["region"])
        for file in files
        for row in table_of(file).to_pylist()
    )


ALL = [
    (1, "insert", 1, "EU"),
    (1, "insert", 2, "US"),
    (2, "update_postimage", 1, "US"),
    (2, "update_postimage", 2, "US"),
    (2, "update_preimage", 1, "EU"),
    (2, "update_preimage", 2, "US"),
    (3, "delete", 2, "US"),
]


def test_changes_are_those_of_the_feed(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        assert changes_of(reader, startingVersion=0) == ALL
        assert changes_of(reader, startingVersion=2) == ALL[2:]
        assert changes_of(reader, startingVersion=1, endingVersion=1) == ALL[:2]
        assert changes_of(reader, startingTimestamp="2020-01-01T00:00:00Z") == ALL
        file = reader.changes(startingVersion=3)[2]["cdf"]
        table = table_of(file)
        assert table.column_names == ["id", "region", "price", "_change_type"]
        assert table.column("price").to_pylist() == [Decimal("3.00")]


def test_change_that_crosses_the_filter_is_an_insert_or_a_delete(items: World) -> None:
    share = items.share("items")
    with items.reader(share, {"items": {"where": "region = 'EU'", "mask": ("price",)}}) as reader:
        assert changes_of(reader, startingVersion=0) == [(1, "insert", 1, "EU"), (2, "delete", 1, "EU")]
        tables = [table_of(line["cdf"]) for line in reader.changes(startingVersion=0)[2:]]
        assert all(table.column("price").null_count == len(table) for table in tables)
    with items.reader(share, {"items": {"where": "region = 'US'"}}, name="us") as reader:
        assert changes_of(reader, startingVersion=2) == [
            (2, "insert", 1, "US"),
            (2, "update_postimage", 2, "US"),
            (2, "update_preimage", 2, "US"),
            (3, "delete", 2, "US"),
        ]


def test_rows_are_under_the_schema_of_the_last_version(items: World) -> None:
    items.change("items", kind="rename", name="region", to="zone")
    share = items.share("items")
    with items.reader(share) as reader:
        lines = reader.changes(capabilities=DELTA, startingVersion=1)
        assert '"zone"' in lines[1]["metaData"]["deltaMetadata"]["schemaString"]
        assert lines[1]["metaData"]["version"] == 1
        assert "delta.columnMapping" not in str(lines[1])
        action = lines[2]["file"]["deltaSingleAction"]["cdc"]
        assert "zone" in table_of({"url": action["path"], "size": action["size"]}).column_names
        before = reader.changes(startingVersion=1, endingVersion=2)
        assert '"region"' in before[1]["metaData"]["schemaString"].replace("\\", "")


def test_changes_of_versions_that_the_condition_does_not_fit_are_refused_as_queries_are(items: World) -> None:
    items.change("items", kind="add", field={"name": "tier", "type": "string"})
    items.write("items", {"id": 5, "region": "EU", "tier": "gold"})
    share = items.share("items")
    with items.reader(share, {"items": {"where": "tier = 'gold'"}}) as reader:
        path = TABLE.format("items")
        query = reader.client.post(f"/delta-sharing{path}/query", json={"version": 1})
        for first in (0, 1, 3):
            changes = reader.get(f"{path}/changes", params={"startingVersion": first})
            assert (changes.status_code, changes.json()) == (query.status_code, query.json()), first
        assert query.json()["errorCode"] == "PERMISSION_DENIED"
        assert changes_of(reader, startingVersion=4) == [(5, "insert", 5, "EU")]


def test_ranges_are_checked(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        for parameters in (
            {},
            {"startingVersion": 9},
            {"startingVersion": -1},
            {"startingVersion": 2, "endingVersion": 1},
            {"startingVersion": 1, "startingTimestamp": "2026-01-01T00:00:00Z"},
            {"startingVersion": 1, "endingVersion": 2, "endingTimestamp": "2999-01-01T00:00:00Z"},
            {"startingTimestamp": "soon"},
        ):
            refused = reader.get(f"{TABLE.format('items')}/changes", params=parameters)
            assert (refused.status_code, refused.json()["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")


def test_changes_that_are_not_kept_any_more_are_an_error(items: World) -> None:
    share = items.share("items")
    with items.reader(share) as reader:
        heads_of = heads.update().where(heads.c.dataset_id == items.dataset_id("items"))
        with items.service.database.tenant(items.tenant_id) as connection:
            connection.execute(heads_of.values(earliest_offset=2))
        assert changes_of(reader, startingVersion=2) == ALL[2:]
        gone = reader.get(f"{TABLE.format('items')}/changes", params={"startingVersion": 1})
        assert (gone.status_code, gone.json()["errorCode"]) == (410, "RESOURCE_DOES_NOT_EXIST")


def test_link_to_changes_is_for_who_sees_them(items: World) -> None:
    share = items.share("items")
    with (
        items.reader(share) as whole,
        items.reader(share, {"items": {"where": "region = 'EU'"}}, name="eu") as eu,
    ):
        [file] = [line["cdf"] for line in whole.changes(startingVersion=1, endingVersion=1)[2:]]
        [other] = [line["cdf"] for line in eu.changes(startingVersion=1, endingVersion=1)[2:]]
        assert file["id"] != other["id"]
        assert table_of(other).num_rows == 1
        # The signature covers the path.
        with pytest.raises(AssertionError, match="SignatureDoesNotMatch"):
            content_of(other["url"].replace(other["id"], file["id"]))


def test_feed_of_rows_as_they_were_sent_has_no_part(world: World) -> None:
    world.dataset({**ITEMS, "table_type": "merge_on_read", "changelog": {"producer": "input"}})
    world.write("items", {"id": 1, "region": "EU"})
    share = world.share("items")
    with world.reader(share, {"items": {"where": "region = 'EU'"}}) as reader:
        refused = reader.get(f"{TABLE.format('items')}/changes", params={"startingVersion": 1})
        assert (refused.status_code, refused.json()["errorCode"]) == (403, "PERMISSION_DENIED")
