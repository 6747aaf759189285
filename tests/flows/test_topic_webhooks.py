"""A topic is written by real workers while they are killed: each change is one message, and none is missing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.deployment import WORKERS, Deployment
from tests.support.kafka.topics import Topic
from tests.support.left_out import left_out
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack
LONG = left_out("FLOWS", "test-flows")

ROWS = 40
KILLS = 3


@LONG
def test_each_change_is_one_message_while_workers_are_killed(
    deployment: Deployment, table: Table, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic(partitions=3)
    members = {
        "dataset": table.id,
        "url": f"kafka://{topic.bootstrap}/{topic.name}",
        "since": "earliest",
        "batch_changes_max": 5,
    }
    answer = table.client.post("/webhooks", json=members)
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    random = Random(68)

    def found() -> dict[str, Any]:
        webhook: dict[str, Any] = table.client.get(path).json()
        return webhook

    for kill in range(KILLS):
        table.write("upsert", [{"id": number, "note": str(kill)} for number in range(ROWS)])
        before = found()["position"]
        until(lambda at=before: found()["position"] > at, "a batch", seconds_max=60)
        for worker in random.sample(WORKERS, len(WORKERS)):
            deployment.processes[worker].kill()
            deployment.processes[worker].start(wait=False)
    until(lambda: found()["pending"] == 0, "all changes in the topic", seconds_max=120)
    messages = topic.committed()
    changes = [json.loads(message.value()) for message in messages]
    assert sorted(changes, key=lambda change: int(change["offset"])) == table.changes()
    offsets = defaultdict(list)
    for message, change in zip(messages, changes, strict=True):
        offsets[message.key()].append(change["offset"])
    assert all(each == sorted(each) for each in offsets.values())
    assert (found()["state"], found()["error"]) == ("active", None)
    assert table.client.delete(path).status_code == 204
