"""Events of OpenLineage: what ended jobs have read and written, and that none is lost while the receiver is away."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx2
import pytest

from app.core.jobs.ends import WAITING_MAX, JobEnds
from app.features.lineage.emit import EmitLineage, LineageReceiver, ReceiverFailed
from app.features.views.compose import view_store
from tests.support.http import problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service

Event = dict[str, Any]
ONE, BATCH = "/base/api/v1/lineage", "/base/api/v1/lineage/batch"


@pytest.fixture
def emit(service: Service, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> EmitLineage:
    """Sends the ends of the jobs of this test to the receiver."""
    ends = JobEnds()
    monkeypatch.setattr("app.core.jobs.stages.ENDS", ends)
    ends.start()
    platform = service.platform
    return EmitLineage(
        ends=ends,
        database=platform.database,
        jobs=platform.stores.jobs,
        catalog=platform.stores.catalog,
        view_of=view_store(platform).get,
        receiver=LineageReceiver(url=f"{receiver.url.rpartition('/')[0]}/base", api_key="secret"),
        namespace="tests",
    )


def sent(receiver: Receiver) -> list[Event]:
    """All events that arrived, by the path that they were sent to."""
    events: list[Event] = []
    for message in receiver.messages:
        body = json.loads(message.body)
        assert isinstance(body, list) == (message.path == BATCH)
        events += body if isinstance(body, list) else [body]
    return events


def check_members(event: Event) -> None:
    """The members that the specification requires, with their types."""
    assert event["eventType"] in {"START", "COMPLETE", "FAIL", "ABORT"}
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/OpenLineage.json#/")
    UUID(event["run"]["runId"])
    for each in (event["job"], *event["inputs"], *event["outputs"]):
        assert {type(each[name]) for name in ("namespace", "name")} == {str}
        facets = {**each["facets"], **each.get("outputFacets", {})}
        for facet in facets.values():
            assert facet["_producer"] == event["producer"]
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def test_events_of_writes_and_of_refreshes(
    client: httpx2.Client, orders: str, service: Service, receiver: Receiver, emit: EmitLineage
) -> None:
    written = client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2})).json()
    service.work()
    emit.run()
    (message,) = receiver.messages
    assert (message.path, message.headers["authorization"]) == (BATCH, "Bearer secret")
    start, end = sent(receiver)
    for each in (start, end):
        check_members(each)
    tenant = client.get("/me").json()["tenant"]["name"]
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"] == end["run"] == {"runId": written["id"]}
    assert end["job"]["name"] == f"{tenant}.orders.write"
    assert end["inputs"] == []
    (output,) = end["outputs"]
    assert (output["namespace"], output["name"]) == ("tests", f"{tenant}.orders")
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert output["facets"]["version"]["datasetVersion"] == "1"
    assert [each["name"] for each in output["facets"]["schema"]["fields"]] == ["id", "note"]

    receiver.messages.clear()
    sql = "SELECT id, upper(note) AS loud FROM orders"
    service.derivation.queries["loud"] = lambda rows: [
        {"id": row["id"], "loud": row["note"] and row["note"].upper()} for row in rows
    ]
    assert client.post("/views", json={"name": "loud", "sql": sql}).status_code == 201
    service.work()
    emit.run()
    _, end = sent(receiver)
    check_members(end)
    assert end["job"]["facets"]["sql"]["query"] == sql
    assert [each["name"] for each in end["inputs"]] == [f"{tenant}.orders"]
    fields = end["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {name: [each["field"] for each in origin["inputFields"]] for name, origin in fields.items()} == {
        "id": ["id"],
        "loud": ["note"],
    }


def test_failed_write_is_reported_without_its_error(
    client: httpx2.Client, orders: str, service: Service, receiver: Receiver, emit: EmitLineage
) -> None:
    body = upsert({"id": 1, "note": "hidden"}) | {"expected_version": 7}
    client.post(f"{orders}/writes", json=body)
    service.work()
    emit.run()
    _, end = sent(receiver)
    check_members(end)
    assert end["eventType"] == "FAIL"
    assert "hidden" not in json.dumps(sent(receiver))


def test_receiver_without_batches_gets_one_event_at_a_time(
    client: httpx2.Client, orders: str, service: Service, receiver: Receiver, emit: EmitLineage
) -> None:
    for number in range(2):
        client.post(f"{orders}/writes", json=upsert({"id": number}))
        service.work()
    receiver.answer(404)
    emit.run()
    assert [message.path for message in receiver.messages] == [BATCH, ONE, ONE, ONE, ONE]
    client.post(f"{orders}/writes", json=upsert({"id": 3}))
    service.work()
    emit.run()
    assert [message.path for message in receiver.messages[5:]] == [ONE, ONE]


def test_events_are_sent_again_after_a_failure(
    client: httpx2.Client, orders: str, service: Service, receiver: Receiver, emit: EmitLineage
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    receiver.answer(500, 503)
    for status in (500, 503):
        with pytest.raises(ReceiverFailed, match=f"it answered {status}"):
            emit.run()
    client.post(f"{orders}/writes", json=upsert({"id": 2}))
    service.work()
    emit.run()
    bodies = [json.loads(message.body) for message in receiver.messages]
    assert bodies[0] == bodies[1] == bodies[2]
    assert len({event["run"]["runId"] for event in (*bodies[2], *bodies[3])}) == 2


def test_jobs_of_datasets_that_are_gone_are_left_out(
    client: httpx2.Client, orders: str, service: Service, receiver: Receiver, emit: EmitLineage
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    assert client.delete(orders, headers={"If-Match": client.get(orders).headers["etag"]}).is_success
    problem(client.get(orders), 404, "not-found")
    emit.run()
    # The name of a deleted dataset is known until it is removed; its schema is not shown any more.
    assert [each["eventType"] for each in sent(receiver)] == ["START", "COMPLETE"]
    assert "schema" not in sent(receiver)[1]["outputs"][0]["facets"]


def test_ends_that_nothing_takes_are_bounded() -> None:
    ends = JobEnds()

    class Ended:
        tenant_id = id = "x"

    ends.add([Ended()] * 5)  # type: ignore[list-item]
    assert ends.take(10) == ([], 0)
    ends.start()
    ends.add([Ended()] * (WAITING_MAX + 3))  # type: ignore[list-item]
    first, lost = ends.take(10)
    assert (len(first), lost) == (10, 3)
    assert len(ends.take(WAITING_MAX)[0]) == WAITING_MAX - 10
    assert ends.take(1) == ([], 0)


def test_a_job_is_read_in_one_transaction(
    client: httpx2.Client, orders: str, service: Service, emit: EmitLineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    begin, count = emit.database._begin, 0

    def counted(statements: str) -> Any:
        nonlocal count
        count += 1
        return begin(statements)

    monkeypatch.setattr(emit.database, "_begin", counted)
    emit.run()
    assert count == 1
