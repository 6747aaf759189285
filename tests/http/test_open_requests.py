"""Streams and waiting requests end with their credential, at once, with the problem that a new request gets."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx2
import pytest
from sqlalchemy import text, update

from app.access.tenants.repository.credential_changes import CREDENTIALS_CHANNEL
from app.access.tenants.tables import api_keys
from app.access.tenants.values import Grant, KeyScope, MadeKey, TenantChange, TenantState
from app.infra.identifiers import new_id
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.streams import waiting
from tests.support.waiting import until

READ = frozenset({"read"})
ORDERS_ONLY = (Grant(datasets="orders*"),)
# Below the time after which an idle stream sends anything.
AT_ONCE = 8.0


class Open:
    """A request in a thread: what has arrived of its response."""

    def __init__(self, client: httpx2.Client, method: str, path: str, **request: Any) -> None:
        self.status = 0
        self.text = ""
        self.headers = httpx2.Headers()
        self._request = client.build_request(method, path, **request)
        self._client = client
        self._thread = threading.Thread(target=self._read, name=path)
        self._thread.start()

    def _read(self) -> None:
        # Its client is closed under it where a test has failed.
        with suppress(httpx2.TransportError):
            answer = self._client.send(self._request, stream=True)
            self.status, self.headers = answer.status_code, answer.headers
            for part in answer.iter_text():
                self.text += part

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def last(self) -> dict[str, Any]:
        """The problem that has ended it: the last event of a stream, the response of another request."""
        until(lambda: self.ended, f"the end of {self._request.url}", seconds_max=AT_ONCE)
        if self.headers["content-type"].startswith("text/event-stream"):
            assert self.status == 200
            *_, last, rest = self.text.split("\n\n")
            assert (last.startswith("event: error\ndata: "), rest) == (True, ""), self.text
            members = json.loads(last.split("data: ", 1)[1])
        else:
            members = json.loads(self.text)
            assert (self.status, self.headers["content-type"]) == (
                members["status"],
                "application/problem+json",
            )
        assert members["instance"] == self._request.url.path
        found: dict[str, Any] = members
        return found


class Tenant:
    """A tenant with a dataset and a job that waits, and what its keys hold open."""

    def __init__(self, service: Service, stack: ExitStack) -> None:
        self._service = service
        self._stack = stack
        self.name = f"open-{new_id()[-12:]}-x"
        self.id = service.tenants.add_tenant(self.name)
        self.writer = self.client(self.key({"read", "write", "manage"}))
        self.orders = self.writer.post("/datasets", json=ORDERS).headers["location"]
        self.job = self.writer.post(f"{self.orders}/writes", json=upsert({"id": 1})).headers["location"]

    def key(self, scopes: Any = READ, **more: Any) -> MadeKey:
        return self._service.tenants.make_key(self.id, scopes, **more)

    def client(self, key: MadeKey) -> httpx2.Client:
        return self._stack.enter_context(self._service.client(key.api_key))

    def opened(self, key: MadeKey) -> list[Open]:
        """One request of each kind that stays open; returns once all of them wait."""
        events, longpoll = self.opened_feeds(key)
        before = held(self._service)
        client = self.client(key)
        jobs = [Open(client, "GET", f"{self.job}/events"), Open(client, "GET", self.job, params={"wait": 60})]
        until(lambda: held(self._service) == before + len(jobs), "requests that wait for the job")
        return [events, jobs[0], longpoll, jobs[1]]

    def opened_feeds(self, key: MadeKey) -> list[Open]:
        """A stream and a long poll of the feed; returns once both wait."""
        before = held(self._service)
        client = self.client(key)
        found = [
            Open(client, "GET", f"{self.orders}/changes/events", params={"since": "now"}),
            Open(client, "GET", f"{self.orders}/changes", params={"feed": "longpoll", "timeout": 60}),
        ]
        until(lambda: held(self._service) == before + len(found), "requests that wait for the feed")
        return found

    def rename(self, old: str, new: str) -> None:
        """Renames a dataset."""
        tag = self.writer.get(f"/datasets/{old}").headers["etag"]
        answer = self.writer.patch(f"/datasets/{old}", json={"name": new}, headers={"If-Match": tag})
        assert answer.is_success, answer.text

    def change_key(self, key: MadeKey, **values: Any) -> None:
        """Keys of the service never change: an operator has changed one in the database."""
        with self._service.tenants._database.administration() as connection:
            this = api_keys.c.tenant_id == self.id, api_keys.c.id == key.key_id
            connection.execute(update(api_keys).where(*this).values(values))
            connection.execute(text(f"SELECT pg_notify('{CREDENTIALS_CHANNEL}', '{self.id}')"))


def held(service: Service) -> int:
    found = service.api.dependencies
    head_polls: Any = found["head_polls"]
    job_waits: Any = found["job_waits"]
    return waiting(head_polls) + waiting(job_waits.polls)


@pytest.fixture
def tenant(service: Service) -> Iterator[Callable[[], Tenant]]:
    """Makes tenants. What they hold open ends with the test, at the latest when their datasets are deleted."""
    made: list[Tenant] = []

    def make() -> Tenant:
        made.append(Tenant(service, stack))
        return made[-1]

    with ExitStack() as stack:
        yield make
        for each in made:
            each.writer.post(f"{each.job}/cancel")
            each.writer.delete(each.orders)
        until(lambda: not held(service), "the end of what is open")


def test_open_requests_of_a_revoked_key_end_at_once_and_no_others(
    service: Service, tenant: Callable[[], Tenant]
) -> None:
    one, other = tenant(), tenant()
    lost = one.key(grants=ORDERS_ONLY)
    ended, kept, foreign = one.opened(lost), one.opened(one.key()), other.opened(other.key())
    writer = one.client(one.key({"write"}))
    with_wait = {"Prefer": "wait=60"}
    written = Open(writer, "POST", f"{one.orders}/writes", json=upsert({"id": 2}), headers=with_wait)
    until(lambda: held(service) == 13, "the write to wait")

    service.tenants.revoke_key(one.id, lost.key_id)
    for each in ended:
        members = each.last()
        assert (members["type"], members["status"]) == ("/problems/unauthorized", 401)
        assert ": still here" not in each.text
    assert 'error="invalid_token"' in ended[-1].headers["www-authenticate"]
    problem(one.client(lost).get(one.orders), 401, "unauthorized")
    assert not any(each.ended for each in (*kept, *foreign, written))

    # The others go on as if nothing had happened.
    with service.working():
        for events, *others in (kept, foreign):
            until(lambda each=events: "event: change\n" in each.text, "a change")  # type: ignore[misc]
            until(lambda each=others: all(one.ended for one in each), "the rest")  # type: ignore[misc]
            job_events, longpoll, job = others
            assert [longpoll.status, job.status] == [200, 200]
            assert '"state":"succeeded"' in job.text
            assert "event: error" not in events.text + job_events.text
        until(lambda: written.ended, "the write")
    assert written.status == 200


def test_open_requests_end_when_the_grants_or_scopes_of_their_key_change(
    tenant: Callable[[], Tenant],
) -> None:
    one = tenant()
    for values, statuses in (
        ({"grants": [{"datasets": "payments"}]}, [404] * 4),
        ({"scopes": ["write"]}, [403] * 4),
        # The feed can still be read, but not all of it; the job of all of it does not exist.
        ({"grants": [{"datasets": "orders*", "mask": ["note"]}]}, [403, 404, 403, 404]),
    ):
        key = one.key(grants=ORDERS_ONLY)
        kept = one.key(grants=ORDERS_ONLY)
        ended, still = one.opened(key), one.opened(kept)
        one.change_key(key, **values)
        assert [each.last()["status"] for each in ended] == statuses
        assert not any(each.ended for each in still)
        one.change_key(kept, scopes=["write"])
        assert {each.last()["status"] for each in still} == {403}


def test_open_requests_end_when_their_dataset_is_renamed_to_what_their_key_reaches_otherwise(
    service: Service, tenant: Callable[[], Tenant]
) -> None:
    one = tenant()
    masked = Grant(datasets="shown_*", mask=("note",))
    named, both, every = (
        one.opened(one.key(grants=grants))
        for grants in (ORDERS_ONLY, (*ORDERS_ONLY, masked), (Grant(datasets="*"),))
    )
    by_name = Open(
        one.client(one.key(grants=ORDERS_ONLY)),
        "GET",
        "/datasets/orders/changes/events",
        params={"since": "now"},
    )
    until(lambda: held(service) == 13, "the stream by the name")

    one.rename("orders", "shown_orders")
    # Another dataset takes the name: it is not the one that the request is of.
    assert one.writer.post("/datasets", json=ORDERS).is_success
    assert [each.last()["status"] for each in (*named, by_name)] == [404] * 5
    # Its feed is shown in part from now on. The job is of all of it.
    assert [each.last()["status"] for each in both] == [403, 404, 403, 404]
    assert not any(each.ended for each in every)

    # One that comes into a grant which shows more.
    part = one.opened_feeds(one.key(grants=(masked, *ORDERS_ONLY)))
    one.rename("shown_orders", "orders_2")
    assert [each.last()["status"] for each in part] == [403, 403]
    assert not any(each.ended for each in every)


def test_suspension_and_quotas_end_nothing_and_the_deletion_of_the_tenant_everything(
    service: Service, tenant: Callable[[], Tenant], new_client: Callable[..., httpx2.Client]
) -> None:
    one = tenant()
    kept, key = one.opened(one.key()), one.key()
    ended = one.opened(key)
    service.tenants.change(one.id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    until(lambda: one.writer.post(f"{one.orders}/writes", json=upsert()).status_code == 403, "suspension")
    service.tenants.revoke_key(one.id, key.key_id)
    assert {each.last()["status"] for each in ended} == {401}
    assert not any(each.ended for each in kept)
    operator = new_client((KeyScope.OPERATE,))
    assert operator.delete(f"/tenants/{one.name}", params={"confirm": one.name}).status_code == 202
    assert {each.last()["status"] for each in kept} == {401}


def test_stream_ends_with_its_connection_while_another_request_waits_there(
    service: Service, tenant: Callable[[], Tenant], caplog: pytest.LogCaptureFixture
) -> None:
    one = tenant()
    head = f"HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {one.key().api_key}\r\n\r\n"
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connected:
        connected.sendall(f"GET {one.orders}/changes/events?since=now {head}GET /me {head}".encode())
        until(lambda: held(service) == 1, "the stream to wait")
        # Closed so, the connection is reset: what is sent to it from now on fails.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    service.work()
    until(lambda: not held(service), "the change to be sent", seconds_max=AT_ONCE)
    with pytest.raises(AssertionError, match="in vain"):
        until(lambda: held(service), "the stream to wait again", seconds_max=1)
    # A client that is gone is no fault of the service.
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_write_whose_key_is_revoked_while_it_waits_goes_on(
    service: Service, tenant: Callable[[], Tenant]
) -> None:
    one = tenant()
    key = one.key({"write"})
    body = {"json": upsert({"id": 7}), "headers": {"Prefer": "wait=60"}}
    written = Open(one.client(key), "POST", f"{one.orders}/writes", **body)
    until(lambda: held(service) == 1, "the write to wait")
    service.tenants.revoke_key(one.id, key.key_id)
    assert written.last()["status"] == 401
    service.work()
    assert [row["id"] for row in one.writer.get(f"{one.orders}/rows").json()["rows"]] == [1, 7]
