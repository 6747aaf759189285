"""Nothing that is served of a table has a value of a column that was dropped."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Final

import pyarrow.parquet as pq
import pytest

from app.infra.files.storage import open_storage
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.facade import VendedTable, path_of, records
from tests.support.service import Service
from tests.support.waiting import until

_MARK: Final = "SECRET-"
_ROWS: Final = 40


@pytest.fixture(scope="module")
def dataset(service: Service) -> Iterator[OpenDataset]:
    """A dataset whose first file has values of a column that the last version has not."""
    tenant, dice = Tenant.new(service), random.Random(1)
    kinds = {"id": "int64", "secret": "string", "kept": "string", "inner": "struct<secret: string>"}
    found = tenant.dataset(
        "dropped", schema={"fields": [{"name": n, "type": k} for n, k in kinds.items()]}, record_key=["id"]
    )
    found.upsert(*(_row(dice, number) for number in range(_ROWS)))
    found.change({"kind": "drop", "name": "secret"}, {"kind": "drop", "name": "inner"})
    found.upsert({"id": 1, "kept": "new"})
    found.succeed("cleans", versions=1)
    yield found
    tenant.client.close()


def _row(dice: random.Random, number: int) -> dict[str, object]:
    secret = f"{_MARK}{dice.randbytes(8).hex()}"
    return {"id": number, "secret": secret, "kept": f"kept {number}", "inner": {"secret": secret}}


@pytest.mark.parametrize("warehouse", ["v3", "v2"])
def test_no_object_has_a_value_of_a_dropped_column(
    service: Service, dataset: OpenDataset, warehouse: str
) -> None:
    table = VendedTable.loaded(dataset.client, dataset.address, warehouse)
    assert _MARK not in str(table.document)
    listing = table.objects() | set(table.listing())
    kinds = {place.rpartition(".")[2] for place in listing}
    assert {"parquet", "avro", "json"} <= kinds
    for place in listing:
        content = table.content(place)
        assert _MARK.encode() not in content, place
        if place.endswith(".avro"):
            assert _MARK not in str(records(content)), place
        if "/data/" in place:
            _check_data_file(service, table, place, content)


def _check_data_file(service: Service, table: VendedTable, place: str, content: bytes) -> None:
    rows = pq.read_table(io.BytesIO(content))
    assert _MARK not in str(rows.to_pydict())
    assert not {"secret", "inner"} & set(rows.column_names)
    stored = _stored(service, place.removeprefix(f"{table.location}/data/").partition("/")[2])
    metadata = pq.read_metadata(io.BytesIO(stored))
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            if "secret" in chunk.path_in_schema:
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                end = start + chunk.total_compressed_size
                assert any(stored[start:end])
                assert not any(content[start:end]), (place, chunk.path_in_schema)


def _stored(service: Service, path: str) -> bytes:
    """The stored bytes of a data file, by its path below the data of its dataset."""
    storage = open_storage(service.settings.storage_uri)
    [stored] = [each for each, _ in storage.list("") if each.endswith(f"/data/{path}")]
    with storage.open(stored) as file:
        return bytes(file.read())


def test_no_plan_has_a_bound_of_a_dropped_column(dataset: OpenDataset) -> None:
    plan = dataset.client.post(f"{path_of(dataset.name)}/plan", json={"snapshot-id": dataset.version})
    assert _MARK not in answered(plan).text


def test_no_document_of_before_has_the_name_of_a_dropped_column(service: Service) -> None:
    tenant = Tenant.new(service)
    fields = [{"name": "id", "type": "int64"}, {"name": "secret", "type": "string"}]
    dataset = tenant.dataset("named", schema={"fields": fields}, record_key=["id"])
    dataset.upsert({"id": 1, "secret": "a"})
    before = VendedTable.loaded(tenant.client, dataset.address)
    dataset.change({"kind": "drop", "name": "secret"})
    dataset.upsert({"id": 2})
    dropped = VendedTable.loaded(tenant.client, dataset.address)
    assert b"secret" in dropped.content(dropped.document["metadata-location"])
    dataset.succeed("cleans", versions=1)
    after = VendedTable.loaded(tenant.client, dataset.address)
    for table in (before, dropped):
        location = table.document["metadata-location"]
        # What a request of the last second has read is there for the rest of it.
        until(lambda at=location: after.object(at).status_code == 404, "the end of a document")
    assert b"secret" not in after.content(after.document["metadata-location"])
    tenant.client.close()
