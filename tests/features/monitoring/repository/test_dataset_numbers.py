"""What is wrong with datasets."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.values import DatasetProblem
from app.infra.identifiers import new_id, new_instant_id
from tests.support.lakehouse import definition
from tests.support.postgres import TestServer
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


_VIEW = (
    "INSERT INTO views (dataset_id, definition) VALUES (:view, '{}')",
    "INSERT INTO view_inputs (view_id, dataset_id, relation) VALUES (:view, :input, 'r')",
    "INSERT INTO consumers (dataset_id, name, kind, position) VALUES (:input, 'view:' || :view, 'view', 0)",
)
_COMMIT = (
    "INSERT INTO commits (dataset_id, version, action, instant_id, committed_at, first_offset, next_offset, "
    "schema_id, files_added, files_removed, bytes_added, counts) "
    "VALUES (:input, 1, 'commit', :instant, now() - make_interval(mins => :minutes), 0, 5, 0, 1, 0, 1, '{}')",
    "UPDATE heads SET version = 1, next_offset = 5, committed_at = now() WHERE dataset_id = :input",
)


def test_view_without_new_changes_of_its_inputs_is_not_late(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    view = stores.catalog.create(tenant_id, new_id(), definition("view"))
    with stores.database.tenant(tenant_id) as connection:
        for statement in _VIEW:
            connection.execute(text(statement), {"view": view.id, "input": dataset.id})
        connection.execute(text(_LATE.format(gap=60)), {"dataset": view.id})
        connection.execute(text(_EXPECTED.format(seconds=60)), {"dataset": dataset.id})
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '1 hour'"))
    numbers = DatasetNumberStore(stores.database).of(tenant_id, [dataset.id, view.id])
    assert numbers[dataset.id].problems == (DatasetProblem.LATE,)
    assert numbers[view.id].problems == ()


BEHIND: dict[str, tuple[int, int, str, tuple[DatasetProblem, ...]]] = {
    "a change of an hour ago": (60, 60, "SELECT 1", (DatasetProblem.LATE,)),
    "a change of before it was registered": (60, 1, "SELECT 1", ()),
    "a change of now": (0, 60, "SELECT 1", ()),
    "a change that it has": (60, 60, "UPDATE consumers SET position = 5", ()),
    "a change that it need not have": (60, 60, "UPDATE views SET paused = true", ()),
}
"""Minutes since the change, minutes since the view was registered, a statement, and the problems of the view."""


@pytest.mark.parametrize("case", BEHIND)
def test_view_that_lacks_a_change_of_an_input_is_late(
    stores: Stores, postgres: TestServer, tenant_id: str, dataset: Dataset, case: str
) -> None:
    minutes, minutes_registered, statement, problems = BEHIND[case]
    view = stores.catalog.create(tenant_id, new_id(), definition("view"))
    values = {"view": view.id, "input": dataset.id, "instant": new_instant_id(), "minutes": minutes}
    with stores.database.tenant(tenant_id) as connection:
        for each in (*_VIEW, *_COMMIT, statement):
            connection.execute(text(each), values)
        name = str(connection.execute(text("SELECT current_database()")).scalar_one())
    with postgres.administration(name) as administration:
        administration.execute(
            "UPDATE datasets SET created_at = now() - make_interval(mins => %s) WHERE id = %s",
            (minutes_registered, view.id),
        )
    numbers = DatasetNumberStore(stores.database).of(tenant_id, [dataset.id, view.id])
    assert numbers[view.id].problems == problems
    assert numbers[dataset.id].problems == ()
