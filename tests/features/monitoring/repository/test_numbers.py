"""The numbers of all tenants."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence

import pytest
from sqlalchemy import text

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import TenantChange
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.monitoring.repository.dataset_faults import STATEMENTS, DatasetFaultStore
from app.features.monitoring.repository.numbers import CONSUMERS_NAMED, TENANTS_NAMED, NumberStore
from app.features.monitoring.values import GATHERED, Sample
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from tests.support.lakehouse import commit_of, definition, message, new_job
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores

DECLARED = {metric.name: metric for metric in GATHERED}


@pytest.fixture
def stores(postgres: TestServer) -> Iterator[Stores]:
    """Those of a database of its own: the numbers are of all tenants in it."""
    with postgres.fresh_database() as name:
        database, administration = (
            Database(postgres.application_url(name)),
            Database(postgres.admin_url(name), role="headwater_admin"),
        )
        yield Stores.on(database, administration)
        database.close()
        administration.close()


@pytest.fixture
def numbers(stores: Stores) -> NumberStore:
    return NumberStore(stores.database)


def value(samples: Sequence[Sample], name: str, **labels: str) -> float:
    [found] = [each.value for each in samples if each.name == name and each.labels == labels]
    return found


def run(stores: Stores, tenant_id: str, *statements: str, **values: object) -> None:
    with stores.database.tenant(tenant_id) as connection:
        for statement in statements:
            connection.execute(text(statement), values)


def every(numbers: NumberStore) -> list[Sample]:
    return [sample for read in numbers.parts().values() for sample in read()]


def test_samples_are_of_declared_metrics_with_their_labels(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset
) -> None:
    run(
        stores,
        tenant_id,
        "INSERT INTO consumers (dataset_id, name, kind, position) VALUES (:dataset, 'r', 'reader', 0)",
        "INSERT INTO storage_samples (stored_bytes) VALUES (7)",
        dataset=dataset.id,
    )
    samples = every(numbers)
    assert {each.name: tuple(each.labels) for each in samples}.items() <= {
        name: metric.labels for name, metric in DECLARED.items()
    }.items()
    assert value(samples, "headwater_datasets") == 1
    assert value(samples, "headwater_storage_bytes", tenant=stores.tenants.tenant(tenant_id).name) == 7


def test_jobs_of_all_tenants_are_counted_by_queue(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    running()
    other = stores.tenants.add_tenant("other")
    waiting = stores.catalog.create(other, new_id(), definition())
    postponed = stores.jobs.accept(other, new_job(waiting.id)).job
    stores.jobs.accept(other, new_job(waiting.id))
    for job_id, column, seconds in ((postponed.id, "not_before", 60), (None, "created_at", -90)):
        run(
            stores,
            other,
            f"UPDATE jobs SET {column} = now() + make_interval(secs => {seconds}) WHERE coalesce(id = :job, true)",
            job=job_id,
        )
    samples = numbers.jobs()
    assert value(samples, "headwater_jobs_running", lane="writes") == 1
    assert value(samples, "headwater_jobs_waiting", lane="writes") == 2
    assert value(samples, "headwater_jobs_waiting", lane="tasks") == 0
    assert value(samples, "headwater_jobs_postponed") == 1
    assert 90 <= value(samples, "headwater_jobs_oldest_waiting_seconds", lane="writes") < 150


def test_consumers_farthest_behind_have_names_and_all_are_counted(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset
) -> None:
    run(
        stores,
        tenant_id,
        "UPDATE heads SET next_offset = 100 WHERE dataset_id = :dataset",
        "INSERT INTO consumers (dataset_id, name, kind, position) "
        "SELECT :dataset, 'reader ' || number, 'reader', number FROM generate_series(1, 120) AS number",
        "INSERT INTO consumers (dataset_id, name, kind, position) VALUES (:dataset, 'p', 'partition_webhook', 0)",
        dataset=dataset.id,
    )
    samples = numbers.lag()
    assert value(samples, "headwater_consumer_lag_changes_max") == 99
    assert value(samples, "headwater_consumer_lag_changes_count") == 99
    lags = [each for each in samples if each.name == "headwater_consumer_lag_changes"]
    assert sorted(each.value for each in lags) == list(range(80, 100))
    assert {each.labels["dataset"] for each in lags} == {dataset.definition.name}


@pytest.mark.parametrize(
    ("rows", "seconds", "over"),
    [(None, None, 0), (1_000, None, 0), (0, None, 1), (None, 3600, 0), (None, 0, 1), (1_000, 0, 1)],
)
def test_consumer_is_over_its_own_limit_of_changes_or_of_time(
    stores: Stores,
    numbers: NumberStore,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
    rows: int | None,
    seconds: int | None,
    over: int,
) -> None:
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    run(
        stores,
        tenant_id,
        "INSERT INTO consumers (dataset_id, name, kind, position, max_lag_rows, max_lag_seconds) "
        "VALUES (:dataset, 'reader', 'reader', 0, :rows, :seconds)",
        dataset=dataset.id,
        rows=rows,
        seconds=seconds,
    )
    [found] = numbers.parts()["limits of consumers"]()
    assert found.value == over
    faults = DatasetFaultStore(stores.database).read(tenant_id)["headwater_consumers_over_max_lag"]
    expected = [(dataset.id, "the consumer reader is farther behind than its max_lag")] * over
    assert [(each.dataset_id, each.detail) for each in faults] == expected


def test_quota_has_the_share_that_is_used(stores: Stores, numbers: NumberStore, tenant_id: str) -> None:
    quotas = Quotas(storage_bytes=200, bytes_per_day=50, rows_per_day=0, datasets=1)
    stores.tenants.change(tenant_id, TenantChange(quotas=quotas))
    run(stores, tenant_id, "INSERT INTO storage_samples (stored_bytes) VALUES (190)")
    tenant = stores.tenants.tenant(tenant_id).name
    assert [(each.labels, each.value) for each in numbers.quotas()] == [
        ({"tenant": tenant, "quota": "storage_bytes"}, 0.95),
        ({"tenant": tenant, "quota": "bytes_per_day"}, 0.0),
    ]
    [fault] = DatasetFaultStore(stores.database).read(tenant_id)["headwater_quota_used_ratio"]
    assert (fault.dataset_id, fault.dataset, fault.value) == (None, None, pytest.approx(0.95))
    assert fault.detail == "95% of the quota storage_bytes is used"
    worst = DatasetFaultStore(stores.database).worst("headwater_quota_used_ratio", 0.9, 5)
    assert worst == ([f"{tenant}: 95% of the quota storage_bytes is used"], 1)


def test_view_is_behind_since_the_first_change_that_it_lacks(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    [behind] = numbers.parts()["views"]()
    assert behind.value == 0
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    run(
        stores,
        tenant_id,
        "INSERT INTO consumers (dataset_id, name, kind, position) VALUES (:dataset, 'view:1', 'view', 0)",
        dataset=dataset.id,
    )
    [behind] = numbers.parts()["views"]()
    assert 0 < behind.value < 60


def test_failing_sources_paused_webhooks_and_records_in_quarantine_are_counted(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    values = {"dataset": dataset.id, "job": job.id}
    for number, (state, failures) in enumerate(
        [("active", 0), ("active", 2), ("failed", 1), ("paused", 0), ("paused", 3)]
    ):
        run(
            stores,
            tenant_id,
            "INSERT INTO sources (id, name, dataset_name, definition, secrets, state, position, failures) "
            f"VALUES (gen_random_uuid(), 's{number}', 'd', '{{}}', '{{}}', '{state}', '{{}}', {failures})",
        )
        if state in {"active", "paused"}:
            run(
                stores,
                tenant_id,
                "INSERT INTO webhooks (id, dataset_id, definition, secret, state, failures) "
                f"VALUES (gen_random_uuid(), :dataset, '{{}}', 's', '{state}', {failures})",
                **values,
            )
    run(
        stores,
        tenant_id,
        "INSERT INTO quarantine_files (dataset_id, path, job_id, row_count, size_bytes, checksum) "
        "VALUES (:dataset, 'q', :job, 5, 1, 'c')",
        "INSERT INTO quarantine_redrives (dataset_id, path, record, job_id) "
        "VALUES (:dataset, 'q', 0, :job), (:dataset, 'q', 1, :job)",
        **values,
    )
    # Its receiver is gone: no delivery has failed.
    run(
        stores,
        tenant_id,
        "INSERT INTO webhooks (id, dataset_id, definition, secret, state, failures, error) "
        "VALUES (gen_random_uuid(), :dataset, '{}', 's', 'paused', 0, '{}')",
        **values,
    )
    samples = every(numbers)
    assert value(samples, "headwater_sources_failing") == 2
    assert value(samples, "headwater_webhooks_paused") == 2
    assert value(samples, "headwater_webhooks_failing") == 1
    worst = DatasetFaultStore(stores.database)
    tenant = stores.tenants.tenant(tenant_id).name
    with_faults = {
        "headwater_webhooks_paused",
        "headwater_webhooks_failing",
        "headwater_quarantine_records",
    }
    for metric in STATEMENTS:
        texts, datasets = worst.worst(metric, 0, 5)
        assert len(texts) == datasets
        assert datasets == (metric in with_faults)
        assert all(each.startswith(f"{tenant}/{dataset.definition.name}: ") for each in texts)
    assert value(samples, "headwater_quarantine_records") == 3


def test_paused_webhooks_of_a_dataset_have_names_and_reasons_that_stay(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    faults, metric = DatasetFaultStore(stores.database), "headwater_webhooks_paused"
    ids = [str(uuid.UUID(int=number)) for number in range(1, 6)]

    def pause(number: int) -> str:
        run(
            stores,
            tenant_id,
            "INSERT INTO webhooks (id, dataset_id, definition, secret, state, error) VALUES (:id, :dataset, "
            "json_build_object('url', CAST(:url AS text), 'description', CAST(:description AS text)), 's', 'paused', "
            "json_build_object('code', 'webhook-given-up', 'title', 't', 'detail', CAST(:detail AS text)))",
            id=ids[number],
            dataset=dataset.id,
            url=f"https://user:secret@{number}.example.com/secret?token=secret",
            description="Stock" if number == 3 else "",
            detail=f"reason {number}",
        )
        [fault] = faults.read(tenant_id)[metric]
        assert faults.read(tenant_id)[metric] == [fault]
        return fault.detail

    assert pause(3) == "1 webhook is paused: Stock: reason 3"
    two = pause(1)
    # The path of a URL may be a secret.
    assert two == "2 webhooks are paused: 1.example.com: reason 1; Stock: reason 3"
    pause(0)
    pause(4)
    all_of_them = pause(2)
    assert all_of_them == (
        "5 webhooks are paused: 0.example.com: reason 0; 1.example.com: reason 1; "
        "2.example.com: reason 2; and 2 more"
    )
    # Operators do not see URLs of tenants.
    place = f"{stores.tenants.tenant(tenant_id).name}/{dataset.definition.name}"
    named = "; ".join(f"{ids[number]}: reason {number}" for number in range(3))
    assert faults.worst(metric, 0, 5) == ([f"{place}: 5 webhooks are paused: {named}; and 2 more"], 1)


LATE = {
    "three gaps ago, and more": (200, 700, 1),
    "as often as usual": (300, 700, 0),
    "a busy dataset that rests": (1, 250, 0),
    "idle for nine days": (60, 9 * 86_400, 0),
    "too few writes": (None, 7_000, 0),
}


@pytest.mark.parametrize("case", LATE)
def test_dataset_is_late_after_three_of_its_gaps(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset, case: str
) -> None:
    gap, seconds, late = LATE[case]
    run(
        stores,
        tenant_id,
        "INSERT INTO dataset_samples "
        "(dataset_id, version, rows, deleted_rows, files, logs, size_bytes, write_gap_seconds) "
        "VALUES (:dataset, 1, 1, 0, 1, 0, 1, :gap)",
        "UPDATE heads SET committed_at = now() - make_interval(secs => :seconds) WHERE dataset_id = :dataset",
        dataset=dataset.id,
        gap=gap,
        seconds=seconds,
    )
    samples = numbers.late()
    assert value(samples, "headwater_datasets_late") == late
    series = [each for each in samples if each.labels]
    assert [each.labels["dataset"] for each in series] == [dataset.definition.name] * late
    assert all(700 <= each.value < 760 for each in series)


def test_expected_time_of_a_dataset_counts_in_place_of_its_gaps(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset
) -> None:
    moved = "UPDATE heads SET committed_at = now() - interval '1 hour' WHERE dataset_id = :dataset"
    for seconds, late in ((60, 1), (7_200, 0)):
        expected = f"UPDATE datasets SET expected_every_seconds = {seconds} WHERE id = :dataset"
        run(stores, tenant_id, moved, expected, dataset=dataset.id)
        assert value(numbers.late(), "headwater_datasets_late") == late


def test_views_whose_last_refresh_failed_are_counted(
    stores: Stores, numbers: NumberStore, tenant_id: str, dataset: Dataset
) -> None:
    for failures in (0, 2):
        run(
            stores,
            tenant_id,
            f"INSERT INTO views (dataset_id, definition, failures) VALUES (:dataset, '{{}}', {failures}) "
            "ON CONFLICT (tenant_id, dataset_id) DO UPDATE SET failures = excluded.failures",
            dataset=dataset.id,
        )
        [sample] = numbers.parts()["failing views"]()
        assert sample.value == (failures > 0)


def test_series_are_bounded_with_a_thousand_tenants_and_more(
    stores: Stores, numbers: NumberStore, postgres: TestServer
) -> None:
    name = stores.database._engine.url.database
    assert name is not None
    with postgres.administration(name) as superuser:
        for statement in (
            "INSERT INTO tenants (tenant_id, name) SELECT gen_random_uuid(), 't' || n FROM generate_series(1, 1010) n",
            "INSERT INTO storage_samples (tenant_id, stored_bytes) SELECT tenant_id, 1 FROM tenants",
            "INSERT INTO datasets (tenant_id, id, name, definition) "
            "SELECT tenant_id, gen_random_uuid(), 'd' || n, '{}' FROM tenants, generate_series(1, 3) n",
            "INSERT INTO heads (tenant_id, dataset_id, version, next_offset) SELECT tenant_id, id, 1, 9 FROM datasets",
            "INSERT INTO consumers (tenant_id, dataset_id, name, kind, position) "
            "SELECT tenant_id, id, 'r' || n, 'reader', 0 FROM datasets, generate_series(1, 2) n",
        ):
            superuser.execute(statement.encode())
    samples = every(numbers)
    by_name = {name: sum(each.name == name for each in samples) for name in DECLARED}
    assert by_name["headwater_storage_bytes"] == TENANTS_NAMED
    assert by_name["headwater_consumer_lag_changes"] == CONSUMERS_NAMED
    # With the tenant that each database has.
    assert value(samples, "headwater_consumer_lag_changes_count") == 1_011 * 3 * 2
    assert len(samples) < TENANTS_NAMED + CONSUMERS_NAMED + 30
