"""What only Spark reads of an open table: names of versions, and which version has changed a row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import SPARK
from tests.support.left_out import left_out

pytestmark = left_out("OPEN", "test-open")
_SEQUENCE = "_last_updated_sequence_number"


@pytest.mark.parametrize("name", ["flat", "compacted", "keyless", "evolved"])
def test_row_lineage_is_the_version_of_the_commit(
    reader: Readers, table: Callable[[str], OpenDataset], name: str
) -> None:
    dataset = table(name)
    for version in dataset.kept_versions():
        query = {"version": version, "meta": "true", "limit": 50_000}
        page = answered(dataset.client.get(f"{dataset.path}/rows", params=query)).json()
        expected = sorted((row["id"], int(row["_hw_commit_seqno"].partition("-")[0])) for row in page["rows"])
        found = reader(SPARK).read(
            dataset.address, version=version, columns=["id"], metadata=[_SEQUENCE], planning="client"
        )
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected


@pytest.mark.parametrize("warehouse", SPARK.warehouses)
def test_rows_that_appends_added_are_read_from_manifests(
    tenant: Tenant, reader: Readers, warehouse: str
) -> None:
    dataset = tenant.dataset(f"appends_{warehouse}", schema={"fields": [{"name": "n", "type": "int64"}]})
    for number in range(4):
        rows = [{"n": 10 * number + each} for each in range(3)]
        dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": rows})
    dataset.succeed("compactions")
    found = reader(SPARK).read(dataset.address, warehouse=warehouse, appends=[1, dataset.version])
    assert sorted(found.to_pydict()["n"]) == [10 * number + each for number in (1, 2, 3) for each in range(3)]
