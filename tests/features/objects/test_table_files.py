"""Data files of tables, read with Arrow's client from a real service."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from app.core.catalog.values import Dataset
from app.features.objects.ports import ObjectTree, ServedTable
from app.features.objects.repository.table_files import TableFileStore
from app.features.objects.service.published_files import FilePublication
from app.features.objects.service.renderings import Renderings
from app.features.objects.values import BUCKET, SHARE
from app.features.retention.repository.history import HistoryStore
from app.kernel.sql.conditions.row_access import EVERYTHING
from tests.features.objects.conftest import World
from tests.support.http import ORDERS, upsert
from tests.support.tables_in_s3 import TableClient, error_code, file_system, table_client
from tests.support.waiting import until

PARTED = {
    "name": "parted",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "place", "type": "string"},
            {"name": "secret", "type": "string"},
        ]
    },
    "partition_by": ["place"],
}


def rows_of(world: World, dataset: str) -> list[dict[str, object]]:
    """All rows of the data files, and that each listed size is the one that is sent."""
    table = world.table(dataset=dataset)
    files = file_system(table)
    base = f"{BUCKET}/{table.base}data"
    rows: list[dict[str, object]] = []
    for info in files.get_file_info(pafs.FileSelector(base, recursive=True)):
        if info.is_file:
            with files.open_input_file(info.path) as file:
                content = file.read()
            assert len(content) == info.size
            rows += pq.read_table(files.open_input_file(info.path), partitioning=None).to_pylist()
    return rows


def test_files_have_the_rows_of_the_table(world: World) -> None:
    assert world.client.post("/datasets", json=PARTED).status_code == 201
    places = ["DE", "a/b", "ü x", "50%=1", ""]
    rows = [{"id": number, "place": place, "secret": f"s{number}"} for number, place in enumerate(places)]
    body = {"operation": "insert", "source": {"kind": "rows", "rows": rows}}
    assert world.client.post("/datasets/parted/writes", json=body).status_code == 202
    world.service.work()
    read = rows_of(world, "parted")
    assert sorted((row["id"], row["place"], row["secret"]) for row in read) == [
        (number, place, f"s{number}") for number, place in enumerate(places)
    ]


def seen_whole(dataset: Dataset) -> ServedTable:
    return ServedTable(dataset=dataset, variant="v3", access=EVERYTHING)


def eventually_missing(table: TableClient, path: str) -> None:
    """The object is not found once what the process found before has expired, a second later."""
    until(lambda: table.get(path).status_code != 200, "the end of an object")
    assert error_code(table.get(path)) == "NoSuchKey"


def data_tree(world: World) -> ObjectTree:
    """The data files of the process."""
    trees: Any = world.service.api.dependencies["object_trees"]
    tree: ObjectTree = trees["data"]
    return tree


def test_dropped_column_is_in_no_byte_once_no_kept_version_has_it(world: World) -> None:
    assert world.client.post("/datasets", json=PARTED).status_code == 201
    rows = [{"id": number, "place": "DE", "secret": f"hidden-value-{number}"} for number in range(100)]
    body = {"operation": "insert", "source": {"kind": "rows", "rows": rows}}
    world.client.post("/datasets/parted/writes", json=body)
    world.service.work()
    table = world.table(dataset="parted")
    trees = data_tree(world)
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "parted")
    (before,) = trees.listing(seen_whole(dataset), "", "", 10)
    assert b"hidden-value" in table.get(f"data/{before.path}").content

    change = {"changes": [{"kind": "drop", "name": "secret"}]}
    tag = world.client.get("/datasets/parted").headers["etag"]
    answer = world.client.patch("/datasets/parted", json=change, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text
    world.client.post(
        "/datasets/parted/writes",
        json={"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 100, "place": "FR"}]}},
    )
    world.service.work()
    # The first version is kept, and has the column.
    assert table.get(f"data/{before.path}").status_code == 200
    clean = world.client.post("/datasets/parted/cleans", json={"versions": 1})
    assert clean.status_code == 202, clean.text
    world.service.work()
    eventually_missing(table, f"data/{before.path}")
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "parted")
    after = trees.listing(seen_whole(dataset), "", "", 10)
    assert len(after) == 2
    for entry in after:
        content = table.get(f"data/{entry.path}").content
        assert len(content) == entry.size_bytes
        assert b"hidden-value" not in content
        assert b"secret" not in content
    assert len(rows_of(world, "parted")) == 101


def test_file_of_an_expired_version_is_served_until_scans_of_before_have_ended(world: World) -> None:
    orders = "/datasets/orders"
    for note in ("a", "b"):
        world.client.post(f"{orders}/writes", json=upsert({"id": 1, "note": note}))
        world.service.work()
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    stored = world.service.platform.stores.timeline.live_files(world.tenant_id, dataset.id, 1, None)
    [file] = stored
    table = world.table()
    path = f"data/0/{file.path.partition('/data/')[2]}"
    before = table.get(path)
    assert before.status_code == 200, before.text

    assert world.client.post(f"{orders}/cleans", json={"versions": 1}).status_code == 202
    world.service.work()
    assert world.client.get(f"{orders}/rows", params={"version": 1}).status_code == 410
    part = table.get(path, headers={"Range": "bytes=4-"})
    assert (part.status_code, part.content) == (206, before.content[4:])
    removal = partial(HistoryStore(world.service.database).remove_files, world.tenant_id, dataset.id, limit=9)
    assert removal(unused_seconds=world.service.settings.unused_file_seconds) == 0
    # As if the time had passed.
    assert removal(unused_seconds=0) == 1
    eventually_missing(table, path)


def test_recipients_get_no_own_column_and_no_file_of_which_rows_are_deleted_at_every_version(
    world: World,
) -> None:
    definition = {**ORDERS, "name": "shared", "table_type": "merge_on_read"}
    assert world.client.post("/datasets", json=definition).status_code == 201
    rows = [{"id": number, "note": f"n{number}"} for number in range(200)]
    world.client.post("/datasets/shared/writes", json=upsert(*rows))
    world.service.work()
    platform = world.service.platform
    dataset = platform.stores.catalog.get(world.tenant_id, "shared")
    [file] = platform.stores.timeline.live_files(world.tenant_id, dataset.id, 1, None)
    publication = FilePublication(
        renderings=Renderings(platform.stores.catalog, TableFileStore(world.service.database))
    )
    path = publication.of(dataset, shows_own=False).files.path(file)
    table = table_client(world.service, world.api_key, "shared", SHARE)
    content = table.get(path).content
    assert b"_hw_" not in content
    assert sorted(row["id"] for row in pq.read_table(BytesIO(content)).to_pylist()) == list(range(200))
    assert error_code(table.get(f"data/0/{path.split('/', 2)[2]}")) == "NoSuchKey"
    assert error_code(world.table(dataset="shared").get(path)) == "NoSuchKey"

    delete = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}
    assert world.client.post("/datasets/shared/writes", json=delete).status_code == 202
    world.service.work()
    # The first version is kept, and has all rows.
    assert table.get(path).content == content
    world.client.post("/datasets/shared/cleans", json={"versions": 1})
    world.service.work()
    HistoryStore(world.service.database).remove_files(world.tenant_id, dataset.id, limit=9, unused_seconds=0)
    [file] = platform.stores.timeline.live_files(world.tenant_id, dataset.id, 2, None)
    assert file.deletion_vector is not None
    eventually_missing(table, path)


def test_files_of_other_folders_and_datasets_are_not_found(world: World) -> None:
    world.client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"}))
    world.service.work()
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    (entry,) = data_tree(world).listing(seen_whole(dataset), "", "", 10)
    table = world.table()
    assert table.get(f"data/{entry.path}").status_code == 200
    rendering, _, name = entry.path.partition("/")
    for path in (f"data/1/{name}", f"data/{name}", f"data/{rendering}/changes/{name}", f"changes/{name}"):
        assert error_code(table.get(path)) == "NoSuchKey"
