"""Claims of rows, with a column for the end of the lease and without one, in Postgres."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, update

from app.core.catalog.values import Dataset
from app.features.maintenance.tables import table_maintenance
from app.infra.db.claims import ClaimColumns, tenants_in_turn
from app.infra.identifiers import new_id
from tests.support.lakehouse import definition
from tests.support.store_fixtures import Stores

LEASE_SECONDS = 60.0
SAME: dict[str, Any] = {"memory": {}}
ROWS = table_maintenance.c
LEASED = ClaimColumns(due_at=ROWS.wake_at, owner=ROWS.owner, epoch=ROWS.epoch, until=ROWS.lease_until)
DUE_AGAIN = ClaimColumns(due_at=ROWS.wake_at, owner=ROWS.owner, epoch=ROWS.epoch)


@pytest.fixture(params=[LEASED, DUE_AGAIN], ids=["with the end of the lease", "due when the lease ends"])
def claims(request: pytest.FixtureRequest) -> ClaimColumns:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def add(stores: Stores) -> Callable[[str], Dataset]:
    """A row that is due."""

    def run(tenant_id: str) -> Dataset:
        dataset = stores.catalog.create(tenant_id, new_id(), definition(f"d-{new_id()}"))
        with stores.database.tenant(tenant_id) as connection:
            values = {"dataset_id": dataset.id, "memory": {}, "wake_at": func.clock_timestamp()}
            connection.execute(insert(table_maintenance).values(values))
        return dataset

    return run


@pytest.fixture
def store(stores: Stores) -> Callable[..., Any]:
    """Stores values in the row of a dataset under a condition; the row after that, None if it does not hold."""

    def run(dataset: Dataset, condition: Any, values: dict[str, Any]) -> Any:
        with stores.database.tenant(dataset.tenant_id) as connection:
            return connection.execute(
                update(table_maintenance)
                .where(ROWS.dataset_id == dataset.id, condition)
                .values(values)
                .returning(*ROWS, (ROWS.wake_at - func.statement_timestamp()).label("seconds"))
            ).one_or_none()

    return run


def test_row_is_claimed_by_one_worker_until_its_lease_ends(
    claims: ClaimColumns, tenant_id: str, add: Callable[[str], Dataset], store: Callable[..., Any]
) -> None:
    dataset = add(tenant_id)
    first = store(dataset, claims.is_free(), claims.claimed("first", LEASE_SECONDS))
    assert (first.owner, first.epoch) == ("first", 1)
    assert first.seconds == timedelta(seconds=LEASE_SECONDS)
    assert first.lease_until == (first.wake_at if claims is LEASED else None)
    assert store(dataset, claims.is_free(), claims.claimed("second", LEASE_SECONDS)) is None
    assert store(dataset, claims.is_due(), SAME) is None
    # Its time has passed.
    past = {claims.due_at.key: func.clock_timestamp()}
    assert store(
        dataset, claims.is_held(1), past if claims is DUE_AGAIN else {**past, "lease_until": func.now()}
    )
    second = store(dataset, claims.is_free(), claims.claimed("second", LEASE_SECONDS))
    assert (second.owner, second.epoch) == ("second", 2)
    assert store(dataset, claims.is_held(first.epoch), claims.released(None)) is None
    released = store(dataset, claims.is_held(second.epoch), claims.released(None))
    assert (released.owner, released.lease_until, released.wake_at) == (None, None, None)
    assert store(dataset, claims.is_due(), SAME) is None


def test_claims_of_a_worker_that_has_ended_are_free_in_every_tenant_and_void(
    stores: Stores, claims: ClaimColumns, add: Callable[[str], Dataset], store: Callable[..., Any]
) -> None:
    tenants = [stores.tenants.add_tenant(f"claims-{new_id()}") for _ in range(2)]
    mine, others = [add(tenant_id) for tenant_id in tenants], add(tenants[0])
    for dataset in mine:
        assert store(dataset, claims.is_free(), claims.claimed("dead", LEASE_SECONDS)) is not None
    assert store(others, claims.is_free(), claims.claimed("alive", LEASE_SECONDS)) is not None
    ended: list[tuple[int, list[Any]]] = []

    def note(connection: Connection, dataset_ids: list[Any]) -> None:
        # In the transaction of the tenant.
        ended.append((len(connection.execute(select(ROWS.dataset_id)).all()), dataset_ids))

    for _ in range(2):
        claims.end_of(stores.database, "dead", returning=ROWS.dataset_id, on_end=note)
    assert sorted(ended) == sorted([(2, [mine[0].id]), (1, [mine[1].id])])
    for dataset in mine:
        # The worker may be alive: what it stores under its former claim is refused.
        assert store(dataset, claims.is_held(1), claims.released(None)) is None
        again = store(dataset, claims.is_free(), claims.claimed("next", LEASE_SECONDS))
        assert (again.owner, again.epoch) == ("next", 3)
    assert store(others, claims.is_free(), claims.claimed("next", LEASE_SECONDS)) is None


def test_rows_of_a_condition_are_ended_and_due_when_it_says(
    stores: Stores,
    claims: ClaimColumns,
    tenant_id: str,
    add: Callable[[str], Dataset],
    store: Callable[..., Any],
) -> None:
    one, other = add(tenant_id), add(tenant_id)
    for dataset in (one, other):
        assert store(dataset, claims.is_free(), claims.claimed("dead", LEASE_SECONDS)) is not None
    later = func.clock_timestamp() + timedelta(hours=1)
    claims.end_of(stores.database, "dead", ROWS.dataset_id == one.id, due_at=later)
    assert store(one, claims.is_held(1), SAME) is None
    assert store(one, claims.is_due(), SAME) is None
    assert store(other, claims.is_held(1), SAME) is not None


def test_first_rows_of_every_tenant_come_before_the_second_of_any(
    stores: Stores, add: Callable[[str], Dataset]
) -> None:
    many, few = (stores.tenants.add_tenant(f"claims-{new_id()}") for _ in range(2))
    rows = [add(many), add(many), add(many), add(few)]
    query = select(ROWS.tenant_id, ROWS.dataset_id).where(ROWS.dataset_id.in_([each.id for each in rows]))
    with stores.database.relay() as connection:
        for limit, expected in ((2, [0, 3]), (3, [0, 3, 1]), (10, [0, 3, 1, 2])):
            turns = tenants_in_turn(query, ROWS.tenant_id, ROWS.wake_at, limit)
            order = [(row.tenant_id, row.dataset_id) for row in connection.execute(turns)]
            assert order == [(rows[number].tenant_id, rows[number].id) for number in expected]
