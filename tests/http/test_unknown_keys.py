"""A flood of keys that do not exist, while the database is slow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2

from app.access.tenants.values import new_api_key
from app.http.credential_cache import ADDRESS_LOOKUPS_MAX, LOOKUPS_MAX
from app.http.limits.threads import THREADS_MAX
from tests.support.http import ORDERS, problem
from tests.support.postgres import TestServer
from tests.support.service import Service
from tests.support.waiting import until


def test_known_key_is_served_while_keys_that_do_not_exist_wait_for_the_database(
    service: Service, postgres: TestServer, new_client: Callable[..., httpx2.Client]
) -> None:
    client = new_client()
    assert client.post("/datasets", json=ORDERS).status_code == 201
    with service.client("") as anyone, ThreadPoolExecutor(2 * THREADS_MAX) as pool:

        def send(address: str) -> httpx2.Response:
            # Loopback is a trusted proxy.
            headers = {"Authorization": f"Bearer {new_api_key()}", "X-Forwarded-For": address}
            return anyone.get("/datasets", headers=headers)

        database = service.settings.database_url.rsplit("/", 1)[1]
        # Two, since a transaction sees the activity of its first look.
        with postgres.administration(database) as connection, postgres.administration(database) as watch:

            def lookups() -> int:
                waiting = (
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND wait_event_type = 'Lock' AND query LIKE '%api_keys%'"
                )
                return int(watch.execute(waiting).fetchall()[0][0])

            with connection.transaction():
                # No one reads a key until the transaction ends.
                connection.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
                flood = [pool.submit(send, "192.0.2.1") for _ in range(2 * THREADS_MAX - 1)]
                until(lambda: lookups() >= LOOKUPS_MAX, "keys to be looked up")
                other = pool.submit(send, "192.0.2.2")
                assert client.get("/datasets").status_code == 200
                refused = until(
                    lambda: [each for each in flood if each.done()], "requests beyond the limit to be refused"
                )
                assert len(refused) <= len(flood) - ADDRESS_LOOKUPS_MAX
                assert lookups() == LOOKUPS_MAX
                for each in refused:
                    answer = problem(each.result(), 429, "rate-limited")
                    assert (answer["limited"], each.result().headers["retry-after"]) == ("address", "1")
                assert not other.done()
        # Those that have waited too long when the transaction ends are 503, on a slow machine.
        assert other.result().status_code in (401, 503)
        assert {429} < {each.result().status_code for each in flood} <= {401, 429, 503}
