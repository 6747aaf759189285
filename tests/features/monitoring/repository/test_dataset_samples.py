"""Samples of datasets, and their writes by the hour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from app.access.tenants.repository.usage import UsageStore
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.monitoring.repository.dataset_samples import GAPS_MIN, SAMPLE_SECONDS, DatasetSampleStore
from app.features.monitoring.repository.leaders import LeaderStore
from app.features.monitoring.service.sample_datasets import SampleDatasets
from app.infra.identifiers import new_id
from tests.support.lakehouse import commit_of, definition, message
from tests.support.leaders import end_lease
from tests.support.store_fixtures import Stores


def rows(stores: Stores, tenant_id: str, query: str, **values: Any) -> list[Any]:
    with stores.database.tenant(tenant_id) as connection:
        result = connection.execute(text(query), values)
        return [tuple(row) for row in result] if result.returns_rows else []


def is_due(stores: Stores, tenant_id: str, dataset: Dataset) -> bool:
    return (tenant_id, dataset.id) in DatasetSampleStore(stores.database).due(1_000)


def age(stores: Stores, tenant_id: str, seconds: int) -> None:
    change = "UPDATE dataset_samples SET sampled_at = sampled_at - make_interval(secs => :seconds)"
    rows(stores, tenant_id, change, seconds=seconds)


def test_sample_has_the_sums_of_the_live_files(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    samples = DatasetSampleStore(stores.database)
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    samples.sample(tenant_id, [dataset.id])
    [expected] = rows(
        stores,
        tenant_id,
        "SELECT sum(row_count)::bigint, count(*), sum(size_bytes)::bigint FROM files WHERE removed_version IS NULL",
    )
    assert expected[0] > 0
    [found] = rows(
        stores, tenant_id, "SELECT rows, files, size_bytes, version, deleted_rows, logs FROM dataset_samples"
    )
    assert found == (*expected, 1, 0, 0)


def test_dataset_is_due_once_for_each_version_and_not_too_often(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    samples = DatasetSampleStore(stores.database)
    assert is_due(stores, tenant_id, dataset)
    samples.sample(tenant_id, [dataset.id])
    assert not is_due(stores, tenant_id, dataset)
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    assert not is_due(stores, tenant_id, dataset)
    age(stores, tenant_id, SAMPLE_SECONDS)
    assert is_due(stores, tenant_id, dataset)
    # One that takes long to sample rests for longer.
    rows(stores, tenant_id, "UPDATE dataset_samples SET milliseconds = 2_000")
    assert not is_due(stores, tenant_id, dataset)
    age(stores, tenant_id, 200)
    assert is_due(stores, tenant_id, dataset)
    samples.sample(tenant_id, [dataset.id])
    assert not is_due(stores, tenant_id, dataset)


def test_usual_gap_is_the_median_of_the_latest_writes(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    samples = DatasetSampleStore(stores.database)

    def write(number: int, minutes: int) -> None:
        rows(
            stores,
            tenant_id,
            "INSERT INTO commits (dataset_id, version, action, instant_id, committed_at, first_offset, next_offset, "
            "schema_id, files_added, files_removed, bytes_added, counts) VALUES (:dataset, :number, 'commit', 'i', "
            "now() - make_interval(days => 1) + make_interval(mins => :minutes), 0, 0, 1, 0, 0, 0, '{}')",
            dataset=dataset.id,
            number=number,
            minutes=minutes,
        )

    def gap() -> float | None:
        samples.sample(tenant_id, [dataset.id])
        [[found]] = rows(stores, tenant_id, "SELECT write_gap_seconds FROM dataset_samples")
        return found

    for number in range(1, GAPS_MIN + 1):
        write(number, 10 * number)
    assert gap() is None
    write(GAPS_MIN + 1, 700)
    assert gap() == pytest.approx(600, abs=1)


def test_commit_counts_its_writes_and_rows_of_the_hour(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    query = "SELECT writes, rows_written FROM dataset_hours WHERE hour = date_trunc('hour', now())"
    for number in (1, 2):
        stores.timeline.publish_one(tenant_id, commit_of([running()], [message(number)]))
        [(writes, rows_written)] = rows(stores, tenant_id, query)
        [(expected,)] = rows(stores, tenant_id, "SELECT sum(rows_written)::bigint FROM usage_days")
        assert (writes, rows_written) == (number, expected)
    failing = running()
    assert stores.jobs.cancel(tenant_id, failing.id)
    assert rows(stores, tenant_id, query)[0][0] == 2


def test_hours_are_kept_for_eight_days(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    rows(
        stores,
        tenant_id,
        "INSERT INTO dataset_hours (dataset_id, hour, writes) "
        "SELECT :dataset, now() - make_interval(hours => age), 1 FROM unnest(ARRAY[1, 191, 193]) AS age",
        dataset=dataset.id,
    )
    UsageStore(stores.database).expire(tenant_id)
    assert rows(stores, tenant_id, "SELECT count(*) FROM dataset_hours") == [(2,)]


def test_first_dataset_of_every_tenant_comes_before_the_second_of_any(stores: Stores) -> None:
    made = [
        [
            (tenant_id, stores.catalog.create(tenant_id, new_id(), definition(name)).id)
            for name in ("first", "second", "third")
        ]
        for tenant_id in (stores.tenants.add_tenant(f"tenant-{new_id()}") for _ in range(2))
    ]
    due = DatasetSampleStore(stores.database).due(1_000)
    places = [[due.index(each) for each in of_tenant] for of_tenant in made]
    assert max(each[0] for each in places) < min(each[1] for each in places)
    assert max(each[1] for each in places) < min(each[2] for each in places)


def test_fault_of_one_tenant_leaves_the_samples_of_others(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    class Failing(DatasetSampleStore):
        def due(self, limit: int) -> list[tuple[str, str]]:
            return [("00000000-0000-0000-0000-000000000000", dataset.id), (tenant_id, dataset.id)]

        def sample(self, tenant_id: str, dataset_ids: Any) -> None:
            if tenant_id.startswith("0000"):
                raise RuntimeError("away")
            super().sample(tenant_id, dataset_ids)

    leaders = LeaderStore(stores.database)
    SampleDatasets(samples=Failing(stores.database), leaders=leaders, owner="here").run()
    assert rows(stores, tenant_id, "SELECT version FROM dataset_samples") == [(0,)]
    end_lease(stores.database, "samples")
