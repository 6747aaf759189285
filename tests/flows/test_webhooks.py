"""Changes on their way from a write to a receiver, through the processes of a real deployment."""

from __future__ import annotations

import pytest

from tests.support.deployment import WORKERS, Deployment
from tests.support.left_out import left_out
from tests.support.receiver import receiving
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack
LONG = left_out("FLOWS", "test-flows")


def test_webhook_delivers_every_committed_change_once(deployment: Deployment, table: Table) -> None:
    with receiving() as receiver:
        members = {"dataset": table.id, "url": receiver.url, "batch_changes_max": 7}
        webhook = table.client.post("/webhooks", json=members)
        assert webhook.status_code == 201, webhook.text
        receiver.answer(500, 200, 503)
        with deployment.gates.at_head(table.id) as gate:
            job_id = table.submit("upsert", [{"id": number, "note": "a"} for number in range(10)])
            gate.arrival()
            assert not receiver.messages
        table.succeeded(job_id)
        for number in range(3):
            table.write("upsert", [{"id": number, "note": "b"}, {"id": 50 + number, "note": "c"}])
        found = until(
            lambda: (
                (found := table.client.get(webhook.json()["links"]["self"]).json())["pending"] == 0 and found
            ),
            "all changes to arrive",
        )
        taken = {message.id: message for message in receiver.messages}.values()
        assert [change for message in taken for change in message.data["changes"]] == table.changes()
        assert found["position"] == len(table.changes())
        assert all(message.signatures_of(webhook.json()["secret"]) == 1 for message in receiver.messages)
        assert table.client.delete(found["links"]["self"]).status_code == 204


@LONG
def test_webhook_that_starts_with_the_table_goes_on_while_workers_are_killed(
    deployment: Deployment, table: Table
) -> None:
    with receiving() as receiver:
        table.write("upsert", [{"id": number, "note": "a"} for number in range(60)])
        members = {"dataset": table.id, "url": receiver.url, "batch_changes_max": 3, "since": "snapshot"}
        answer = table.client.post("/webhooks", json=members)
        assert answer.status_code == 201, answer.text
        path = answer.headers["location"]
        for count in (5, 10):
            until(lambda least=count: len(receiver.messages) >= least, "messages", seconds_max=60)
            for worker in WORKERS:
                deployment.processes[worker].kill()
                deployment.processes[worker].start(wait=False)
        table.write("upsert", [{"id": number, "note": "b"} for number in range(5)])
        head = len(table.changes())
        until(lambda: table.client.get(path).json()["position"] == head, "all of it", seconds_max=120)
        bodies: dict[str, set[bytes]] = {}
        for message in receiver.messages:
            bodies.setdefault(message.id, set()).add(message.body)
        assert {len(each) for each in bodies.values()} == {1}
        taken = {message.id: message for message in receiver.messages}.values()
        assert [message.data["since"] for message in list(taken)[1:]] == [
            message.data["next_since"] for message in list(taken)[:-1]
        ]
        rows = [each for each in taken if isinstance(each.data["since"], str)]
        sent = [change["row"] for each in rows for change in each.data["changes"]]
        assert sorted((row["id"], row["note"]) for row in sent) == [(number, "a") for number in range(60)]
        after = [change for each in taken if each not in rows for change in each.data["changes"]]
        assert after == table.changes()[60:]
        assert table.client.delete(path).status_code == 204
