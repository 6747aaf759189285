"""Resources that the client creates, once however often the request is sent; jobs listed; datasets renamed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from headwater_client import Dataset, Headwater, NewDataset, NewField, NewView, Problem
from tests.support.service import Service

FIELDS = (NewField(name="id", type="int64"),)
SQL = "SELECT id, upper(note) AS note FROM orders WHERE note <> ''"
URL = "http://127.0.0.1:9/hook"  # registered only: nothing is sent


class LosesFirstAnswers(httpx2.HTTPTransport):
    """Loses the first answer to each POST, though it has happened, and keeps what was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        self.statuses: list[int] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if request.method == "POST":
            answer.read()
            self.keys.append(request.headers["idempotency-key"])
            self.statuses.append(answer.status_code)
            if len(self.keys) == 1:
                raise httpx2.ReadError("the connection broke", request=request)
        return answer


CREATING: dict[str, Callable[[Headwater], Any]] = {
    "dataset": lambda client: client.create_dataset(NewDataset(name="new", fields=FIELDS)),
    "view": lambda client: client.create_view(NewView(name="loud", sql=SQL)),
    "export": lambda client: client.create_export("orders", query="changes", format="csv"),
    "webhook": lambda client: client.create_webhook("orders", URL),
    "upload": lambda client: client.upload("orders", b"id,note\n1,a\n"),
    "compaction": lambda client: client.compact("orders"),
    "savepoint": lambda client: client.create_savepoint("orders", "first"),
    "clean": lambda client: client.clean("orders", versions=1),
}
LISTED: dict[str, Callable[[Headwater], Any]] = {
    "dataset": lambda client: [each for each in client.datasets() if each.name == "new"],
    "view": lambda client: client.views(),
    "export": lambda client: client.exports("orders"),
    "webhook": lambda client: client.webhooks(),
    "compaction": lambda client: client.jobs(kinds=["compaction"]),
    "savepoint": lambda client: client.jobs(kinds=["savepoint"]),
    "clean": lambda client: client.jobs(kinds=["clean"]),
}


@pytest.fixture
def written(service: Service, headwater: Headwater, orders: Dataset) -> Dataset:
    """Two versions: the first of offsets 0 and 1, the second of offset 2."""
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "a"}])
    service.work()
    headwater.write_rows(orders, [{"id": 3, "note": "b"}])
    service.work()
    return orders


@pytest.mark.parametrize("kind", CREATING)
def test_a_lost_answer_creates_nothing_twice(
    service: Service, api_key: str, headwater: Headwater, written: Dataset, kind: str
) -> None:
    transport = LosesFirstAnswers()
    with Headwater(service.url, api_key, transport=transport) as unlucky:
        created = CREATING[kind](unlucky)
    assert len(transport.keys) == 2
    assert len(set(transport.keys)) == 1
    assert transport.statuses[0] in (200, 201, 202)
    if kind in LISTED:
        assert [each.id for each in LISTED[kind](headwater)] == [created.id]


def test_an_idempotency_key_of_the_caller_makes_two_calls_one(headwater: Headwater, orders: Dataset) -> None:
    new = NewDataset(name="new", fields=FIELDS)
    first = headwater.create_dataset(new, idempotency_key="new")
    assert headwater.create_dataset(new, idempotency_key="new") == first
    with pytest.raises(Problem) as taken:
        headwater.create_dataset(new)
    assert taken.value.code == "dataset-exists"
    assert headwater.upload(orders, b"x", idempotency_key="u") == headwater.upload(
        orders, b"x", idempotency_key="u"
    )
    webhook = headwater.create_webhook(orders, URL, idempotency_key="w")
    assert headwater.create_webhook(orders, URL, idempotency_key="w").id == webhook.id
    export = headwater.create_export(orders, query="changes", format="csv", idempotency_key="e")
    again = headwater.create_export(orders, query="changes", format="csv", idempotency_key="e")
    assert again.id == export.id
    view = headwater.create_view(NewView(name="loud", sql=SQL), idempotency_key="v")
    assert headwater.create_view(NewView(name="loud", sql=SQL), idempotency_key="v").id == view.id
    refresh = headwater.refresh_view(view, idempotency_key="r")
    assert headwater.refresh_view(view, idempotency_key="r").id == refresh.id


def test_jobs_are_listed_by_dataset_kind_and_state(headwater: Headwater, written: Dataset) -> None:
    other = headwater.create_dataset(NewDataset(name="other", fields=FIELDS))
    waiting = headwater.write_rows(other, [{"id": 1}], operation="insert")
    compaction = headwater.compact(written)
    writes = [each.job_id for each in headwater.timeline(written, states=["completed"])]
    assert [job.id for job in headwater.jobs()] == [compaction.id, waiting.id, *writes]
    assert [job.id for job in headwater.jobs(written)] == [compaction.id, *writes]
    assert [job.id for job in headwater.jobs("other", kinds=["write", "clean"])] == [waiting.id]
    assert [job.id for job in headwater.jobs(kinds=["compaction"])] == [compaction.id]
    queued = headwater.jobs(states=["queued", "running"])
    assert [job.id for job in queued] == [compaction.id, waiting.id]
    assert list(headwater.jobs(written.id, kinds=["write"])) == [headwater.get_job(each) for each in writes]


def test_a_renamed_dataset_keeps_its_id_and_its_rows(headwater: Headwater, written: Dataset) -> None:
    headwater.create_dataset(NewDataset(name="taken", fields=FIELDS))
    renamed = headwater.rename_dataset(written.id, "parcels")
    assert (renamed.id, renamed.name) == (written.id, "parcels")
    assert len(list(headwater.rows("parcels"))) == 3
    with pytest.raises(Problem) as gone:
        headwater.get_dataset("orders")
    assert gone.value.code == "not-found"
    with pytest.raises(Problem) as taken:
        headwater.rename_dataset(renamed, "taken")
    assert taken.value.code == "dataset-exists"
    with pytest.raises(Problem) as stale:
        headwater.rename_dataset(renamed, "other", version=renamed.version + 1)
    assert stale.value.code == "precondition-failed"


def test_a_feed_starts_at_a_version_or_a_time(headwater: Headwater, written: Dataset) -> None:
    changes = list(headwater.changes(written))
    assert [change.version for change in changes] == [1, 1, 2]
    assert list(headwater.changes(written, since_version=2, limit=1)) == changes[2:]
    assert list(headwater.changes(written, since_version=1, limit=1)) == changes
    second = changes[2].system_time
    assert list(headwater.changes(written, since_time=second)) == changes[2:]
    [table] = headwater.change_tables(written, since_time=changes[0].system_time - timedelta(hours=1))
    assert (table.to_arrow().num_rows, table.next_since) == (3, 3)
    [page] = headwater.change_pages(written, since_version=3)
    assert (page.changes, page.next_since) == ((), 3)
    with pytest.raises(Problem) as both:
        list(headwater.changes(written, since=0, since_version=2))
    assert both.value.code == "invalid-request"


def test_a_consumer_starts_at_a_version_or_a_time(headwater: Headwater, written: Dataset) -> None:
    second = list(headwater.changes(written))[2].system_time
    assert headwater.create_consumer(written, "a").offset == 0
    assert headwater.create_consumer(written, "b", since_version=2).offset == 2
    made = headwater.create_consumer(written, "c", since_time=second)
    assert made.offset == 2
    moved = headwater.commit(written, made, since_version=1, reset=True)
    assert moved.offset == 0
    assert headwater.commit(written, moved, since_time=second).offset == 2
    read = [
        change.offset
        for page in headwater.consume(written, "d", since_version=2, follow=False)
        for change in page.changes
    ]
    assert read == [2]
    again = headwater.consume(written, "e", since_time=second, follow=False)
    assert [change.offset for page in again for change in page.changes] == [2]


def test_exports_and_webhooks_start_at_a_version_or_a_time(headwater: Headwater, written: Dataset) -> None:
    second = list(headwater.changes(written))[2].system_time
    export = headwater.create_export(written, query="changes", format="csv", since_version=2)
    assert export.since == 2
    export = headwater.create_export(written, query="changes", format="csv", since_time=second)
    assert export.since == 2
    assert headwater.create_export(written, query="changes", format="csv").since == 0
    webhook = headwater.create_webhook(written, URL)
    assert webhook.position == 3
    assert headwater.create_webhook(written, URL, since_version=2).position == 2
    assert headwater.create_webhook(written, URL, since_time=second).position == 2
    assert headwater.change_webhook(webhook, since_version=1).position == 0
