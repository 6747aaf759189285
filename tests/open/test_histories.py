"""Random histories, read by every engine at every kept version."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import DUCKDB, ENGINES
from tests.open.histories import played
from tests.open.test_tables import check_versions
from tests.support.left_out import left_out
from tests.support.service import Service

_OF_A_TENANT: Final = 50


def test_duckdb_reads_every_version_of_a_few_histories(
    reader: Readers, few_histories: Sequence[OpenDataset]
) -> None:
    for dataset in few_histories:
        check_versions(reader(DUCKDB), dataset, latest=False)


@left_out("OPEN", "test-open")
def test_engines_read_every_version_of_many_histories(
    reader: Readers, service: Service, record_property: Callable[[str, object], None]
) -> None:
    """`OPEN_HISTORIES`: how many. `OPEN_SEED`: the first one. `OPEN_ENGINES`: names of some engines.

    Each failure names its seed and engine.
    """
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_HISTORIES", "20"))
    names = os.environ.get("OPEN_ENGINES", "").split()
    readers = [reader(engine) for engine in ENGINES if not names or engine.name in names]
    faults: list[str] = []
    reads = Counter[str]()
    tenant = Tenant.new(service)
    for number in range(first, first + many):
        if number % _OF_A_TENANT == 0:
            tenant = Tenant.new(service)
        dataset = played(tenant, number)
        for each in readers:
            try:
                check_versions(each, dataset, latest=False)
            except Exception as error:
                faults.append(f"history {number}, {each.engine.name}: {str(error)[:400]}")
            reads[each.engine.name] += len(dataset.kept_versions()) * len(each.engine.warehouses)
    record_property("open", f"{many} histories from {first}: {dict(reads)} reads, {len(faults)} faults")
    assert not faults, "\n".join(faults[:50])
