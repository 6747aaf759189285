"""The client says which partitions are done, and follows what happens to them."""

from __future__ import annotations

import pytest

from headwater_client import Dataset, Headwater, NewDataset, NewField, Problem
from tests.support.receiver import receiving
from tests.support.waiting import until


@pytest.fixture
def visits(headwater: Headwater) -> Dataset:
    """A dataset that marks its partitions, by day."""
    fields = (NewField(name="id", type="int64"), NewField(name="day", type="date"))
    made = headwater.create_dataset(
        NewDataset(name="visits", fields=fields, record_key=("day", "id"), partition_by=("day",))
    )
    return headwater.change_services(made, {"partition_done": {}})


def test_partitions_are_marked_done_and_followed(headwater: Headwater, visits: Dataset, service) -> None:
    with receiving() as receiver, service.working():
        headwater.create_webhook(visits, receiver.url, events="partitions")
        headwater.write_rows(
            visits, [{"id": 1, "day": "2026-11-21"}, {"id": 2, "day": "2026-11-22"}], wait=30
        )
        paths = ["day=2026-11-22", "day=2026-11-21"]
        marks = headwater.end_partitions(visits, paths)
        assert [(mark.path, mark.changed_version == mark.done_version) for mark in marks] == [
            (path, True) for path in paths
        ]
        assert headwater.end_partitions(visits, paths) == marks
        events = list(headwater.partition_events(visits))
        assert [(event.number, event.kind, event.partition, event.reason) for event in events] == [
            (0, "done", paths[0], "ended"),
            (1, "done", paths[1], "ended"),
        ]
        assert list(headwater.partition_events(visits, since=1)) == events[1:]
        done = {partition.path: partition.done_version for partition in headwater.partitions(visits)}
        assert done == dict.fromkeys(paths, marks[0].done_version)
        until(lambda: receiver.messages, "the message")
        assert [event["partition"] for event in receiver.messages[0].data["events"]] == paths
    with pytest.raises(Problem) as refusal:
        headwater.metastore_report(visits)
    assert refusal.value.code == "not-found"
