"""Changes on their way from a write to a receiver, through the processes of a real deployment."""

from __future__ import annotations

import pytest

from tests.support.deployment import Deployment
from tests.support.receiver import receiving
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack


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
