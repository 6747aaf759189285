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
_EXPECTED = "UPDATE datasets SET expected_every_seconds = {seconds} WHERE id = :dataset"
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
    "a webhook that the service paused at once": (
        "INSERT INTO webhooks (id, dataset_id, definition, secret, state, error) VALUES "
        """(gen_random_uuid(), :dataset, '{}', 's', 'paused', '{"code":"x"}')""",
        (DatasetProblem.WEBHOOK,),
    ),
    "a late dataset": (_LATE.format(gap=60), (DatasetProblem.LATE,)),
    "a dataset that is written each hour": (_LATE.format(gap=3_600), ()),
    "a dataset without the commit that it expects": (_EXPECTED.format(seconds=3_599), (DatasetProblem.LATE,)),
    "a dataset that expects a commit later": (_EXPECTED.format(seconds=7_200), ()),
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


def test_view_is_late_with_its_inputs_and_not_by_its_own_commits(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    view, outer = (stores.catalog.create(tenant_id, new_id(), definition(name)) for name in ("view", "outer"))
    with stores.database.tenant(tenant_id) as connection:
        for each, source in ((view, dataset), (outer, view)):
            values = {"dataset": each.id, "input": source.id}
            connection.execute(
                text("INSERT INTO views (dataset_id, definition) VALUES (:dataset, '{}')"), values
            )
            connection.execute(
                text(
                    "INSERT INTO view_inputs (view_id, dataset_id, relation) VALUES (:dataset, :input, 'r')"
                ),
                values,
            )
            connection.execute(text(_LATE.format(gap=60)), {"dataset": each.id})
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '1 hour'"))
    numbers = DatasetNumberStore(stores.database)
    ids = [dataset.id, view.id, outer.id]
    assert [each.problems for each in numbers.of(tenant_id, ids).values()] == [()] * 3
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text(_EXPECTED.format(seconds=60)), {"dataset": dataset.id})
    assert [each.problems for each in numbers.of(tenant_id, ids).values()] == [(DatasetProblem.LATE,)] * 3
