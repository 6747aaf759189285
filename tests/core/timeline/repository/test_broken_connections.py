"""Connections that break: before the commit nothing happened, at the commit it is not known what did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DataError

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job, JobState
from app.core.timeline.ports import OutcomeUnknown
from app.core.timeline.repository.publish import publish_commits
from app.core.timeline.values import Fenced, Published
from app.infra.db.errors import CommitInDoubt
from app.infra.db.session import Database
from app.infra.errors import Unavailable
from tests.support.lakehouse import commit_of, message, new_job
from tests.support.postgres import TestServer
from tests.support.proxy import BreakingProxy, Fault
from tests.support.store_fixtures import Stores
from tests.support.waiting import until


@pytest.fixture
def proxy(database_url: str) -> Iterator[BreakingProxy]:
    with BreakingProxy.before(database_url) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: BreakingProxy) -> Iterator[Stores]:
    """The stores of a worker that reaches the database through the proxy."""
    database = Database(proxy.url, application_name="far")
    yield Stores.on(database)
    database.close()


def test_proxy_removes_the_port_of_an_ended_connection(proxy: BreakingProxy) -> None:
    with psycopg.connect(make_url(proxy.url).set(drivername="postgresql").render_as_string(False)) as client:
        [[port]] = client.execute("SELECT client_port FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        assert proxy.carries(port)
    until(lambda: not proxy.carries(port), "the proxy to remove the port")


def test_commit_with_a_lost_response_is_found(
    stores: Stores,
    far: Stores,
    proxy: BreakingProxy,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
) -> None:
    job = running()
    commit = commit_of([job], [message(changes=3)])
    proxy.break_next(Fault.ANSWER_LOST)
    with pytest.raises(OutcomeUnknown):
        far.timeline.publish_one(tenant_id, commit)
    assert proxy.broken == 1
    expected = Published(version=1, first_offset=0, next_offset=3)
    assert far.timeline.outcome_of_one(tenant_id, dataset.id, [job.id]) == expected
    assert stores.jobs.get(tenant_id, job.id).state is JobState.SUCCEEDED


def test_lost_commit_is_published_again_with_the_same_claim(
    stores: Stores,
    far: Stores,
    proxy: BreakingProxy,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
) -> None:
    job = running()
    commit = commit_of([job], [message(changes=3)])
    proxy.break_next(Fault.REQUEST_LOST)
    with pytest.raises(OutcomeUnknown):
        far.timeline.publish_one(tenant_id, commit)
    assert far.timeline.outcome_of_one(tenant_id, dataset.id, [job.id]) is None
    assert stores.catalog.get(tenant_id, dataset.id).version == 0
    assert far.timeline.publish_one(tenant_id, commit) == Published(version=1, first_offset=0, next_offset=3)


def test_refused_commit_is_known_before_the_connection_breaks(
    stores: Stores, far: Stores, proxy: BreakingProxy, tenant_id: str, running: Callable[[], Job]
) -> None:
    job = running()
    stores.jobs.cancel(tenant_id, job.id)
    proxy.break_next(Fault.REQUEST_LOST)
    assert far.timeline.publish_one(tenant_id, commit_of([job], [message()])) == Fenced(valid_ids=frozenset())


def test_outcome_lookup_waits_for_a_running_commit(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """The worker lost its connection, and the server has not noticed: its transaction holds the head row."""
    job = running()
    outcome: list[Published | None] = []
    lookup = threading.Thread(
        target=lambda: outcome.append(stores.timeline.outcome_of_one(tenant_id, dataset.id, [job.id]))
    )
    with stores.database.tenant(tenant_id) as connection:
        published = publish_commits(connection, [commit_of([job], [message()])], ())
        lookup.start()
        lookup.join(0.3)
        assert lookup.is_alive()
    lookup.join(10)
    assert tuple(outcome) == published


def test_other_transactions_in_doubt_raise_commit_in_doubt_and_keys_settle_them(
    far: Stores, proxy: BreakingProxy, tenant_id: str, dataset: Dataset
) -> None:
    first = new_job(dataset.id, key="k")
    proxy.break_next(Fault.ANSWER_LOST)
    with pytest.raises(CommitInDoubt):
        far.jobs.accept(tenant_id, first)
    again = far.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    assert (again.is_replay, again.job.id) == (True, first.id)


def test_dead_pooled_connections_are_replaced(
    stores: Stores, postgres: TestServer, tenant_id: str, dataset: Dataset, database_url: str
) -> None:
    name = database_url.rsplit("/", 1)[1]
    for _ in range(2):
        assert stores.catalog.get(tenant_id, dataset.id) == dataset
        with postgres.administration(name) as connection:
            cut = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = %s AND pid <> pg_backend_pid()",
                (name,),
            ).fetchone()
            assert cut is not None
            assert cut[0] >= 1


def test_connection_lost_in_a_transaction_is_unavailable_and_changes_nothing(
    stores: Stores, postgres: TestServer, tenant_id: str, dataset: Dataset
) -> None:
    def die_on_the_way() -> None:
        with stores.database.tenant(tenant_id) as connection:
            connection.exec_driver_sql("UPDATE heads SET version = 7")
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            with postgres.administration() as administration:
                administration.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(Unavailable) as failure:
        die_on_the_way()
    assert not isinstance(failure.value, CommitInDoubt)
    assert stores.catalog.get(tenant_id, dataset.id) == dataset


def test_unreachable_server_is_unavailable(proxy: BreakingProxy, far: Stores, tenant_id: str) -> None:
    proxy.close()
    with pytest.raises(Unavailable):
        far.catalog.list(tenant_id, page_size=1, page_token=None)


def test_lock_timeout_raises_unavailable(
    stores: Stores, database_url: str, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    impatient = Database(database_url, lock_timeout_seconds=0.2)
    job = running()
    with stores.database.tenant(tenant_id) as connection:
        connection.exec_driver_sql("SELECT 1 FROM heads FOR UPDATE")
        with pytest.raises(Unavailable):
            Stores.on(impatient).timeline.publish_one(tenant_id, commit_of([job], [message()]))
    impatient.close()
    assert stores.jobs.get(tenant_id, job.id).state is JobState.RUNNING


def test_process_that_stands_still_in_a_transaction_does_not_fail_the_commits_of_others(
    stores: Stores, database_url: str, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    frozen = Database(database_url, idle_timeout_seconds=1.0)
    outcomes = []

    def stand_still() -> None:
        with frozen.tenant(tenant_id) as connection:
            connection.exec_driver_sql("SELECT 1 FROM heads FOR UPDATE")
            outcomes.append(stores.timeline.publish_one(tenant_id, commit_of([job], [message()])))

    with pytest.raises(Unavailable):
        stand_still()
    frozen.close()
    assert [type(outcome) for outcome in outcomes] == [Published]


@pytest.mark.parametrize("timeout", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_statement_after_postgres_has_ended_the_session_is_unavailable_and_changes_nothing(
    database_url: str, stores: Stores, tenant_id: str, dataset: Dataset, timeout: str
) -> None:
    frozen = Database(database_url)

    def stand_still() -> None:
        with frozen.tenant(tenant_id) as connection:
            connection.exec_driver_sql("UPDATE heads SET version = 7")
            connection.exec_driver_sql(f"SET LOCAL {timeout} = '100ms'")
            time.sleep(0.5)
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(Unavailable) as failure:
        stand_still()
    assert not isinstance(failure.value, CommitInDoubt)
    assert stores.catalog.get(tenant_id, dataset.id) == dataset
    with frozen.tenant(tenant_id) as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    frozen.close()


def test_error_of_a_statement_is_not_unavailable(stores: Stores, tenant_id: str) -> None:
    def divide() -> None:
        with stores.database.tenant(tenant_id) as connection:
            connection.exec_driver_sql("SELECT 1 / 0")

    with pytest.raises(DataError):
        divide()


def test_shared_transaction_may_wait_for_longer(stores: Stores, tenant_id: str) -> None:
    with stores.database.tenant(tenant_id, shared=True) as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one()
    assert shown == "1min"
    with stores.database.tenant(tenant_id) as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one()
    assert shown == "10s"


def test_sessions_have_their_limits_and_names(stores: Stores, tenant_id: str) -> None:
    with stores.database.tenant(tenant_id) as connection:
        shown = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar_one()
            for name in (
                "application_name",
                "timezone",
                "transaction_isolation",
                "statement_timeout",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
            )
        }
    assert shown == {
        "application_name": "tests",
        "timezone": "UTC",
        "transaction_isolation": "read committed",
        "statement_timeout": "1min",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
    }


def test_psycopg_sends_commit_as_the_proxy_expects(proxy: BreakingProxy) -> None:
    """Guards the tests above: without a COMMIT in the clear, no fault would ever strike."""
    proxy.break_next(Fault.REQUEST_LOST)
    with pytest.raises(psycopg.OperationalError), psycopg.connect(proxy.url) as connection:
        connection.execute("SELECT 1")
    assert proxy.broken == 1
