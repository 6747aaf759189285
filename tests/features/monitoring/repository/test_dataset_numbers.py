"""What is wrong with datasets."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.values import DatasetProblem
from app.infra.identifiers import new_id
from tests.support.lakehouse import definition
from tests.support.store_fixtures import Stores

_SOURCE = (
    "INSERT INTO sources (id, name, dataset_id, dataset_name, definition, secrets, state, position, failures) "
    "VALUES (gen_random_uuid(), 's', :dataset, 'd', '{{}}', '{{}}', '{state}', '{{}}', {failures})"
)
_WEBHOOK = (
    "INSERT INTO webhooks (id, dataset_id, definition, secret, state, failures) "
    "VALUES (gen_random_uuid(), :dataset, '{{}}', 's', '{state}', {failures})"
)
_LATE = (
    "INSERT INTO dataset_samples (dataset_id, version, rows, deleted_rows, files, logs, size_bytes, write_gap_seconds) "
    "VALUES (:dataset, 0, 0, 0, 0, 0, 0, {gap})"
)
CASES = {
    "a source that works": (_SOURCE.format(state="active", failures=0), ()),
    "a source that fails": (_SOURCE.format(state="active", failures=1), (DatasetProblem.SOURCE,)),
    "a source that has failed": (_SOURCE.format(state="failed", failures=1), (DatasetProblem.SOURCE,)),
    "a view that fails": (
        "INSERT INTO views (dataset_id, definition, failures) VALUES (:dataset, '{}', 1)",
        (DatasetProblem.VIEW,),
    ),
    "a webhook that its user paused": (_WEBHOOK.format(state="paused", failures=0), ()),
    "a webhook that the service paused": (
        _WEBHOOK.format(state="paused", failures=9),
        (DatasetProblem.WEBHOOK,),
    ),
    "a late dataset": (_LATE.format(gap=60), (DatasetProblem.LATE,)),
    "a dataset that is written each hour": (_LATE.format(gap=3_600), ()),
}


@pytest.mark.parametrize("case", CASES)
def test_problems_of_a_dataset_are_named_and_of_no_other(
    stores: Stores, tenant_id: str, dataset: Dataset, case: str
) -> None:
    statement, problems = CASES[case]
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '1 hour'"))
        connection.execute(text(statement), {"dataset": dataset.id})
    numbers = DatasetNumberStore(stores.database).of(tenant_id, [dataset.id, other.id])
    assert numbers[dataset.id].problems == problems
    assert numbers[other.id].problems == ()
    assert numbers[other.id].rows is None
