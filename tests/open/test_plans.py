"""Plans of the service as any client gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.open.datasets import OpenDataset, answered
from tests.open.facade import VendedTable, path_of


def _tasks(dataset: OpenDataset, **request: Any) -> Iterator[dict[str, Any]]:
    """The tasks of a plan, those of its plan tasks among them."""
    path = path_of(dataset.name)
    plans = [answered(dataset.client.post(f"{path}/plan", json=request)).json()]
    while plans:
        plan = plans.pop()
        yield from plan.get("file-scan-tasks", ())
        names = plan.get("plan-tasks", ())
        plans += [
            answered(dataset.client.post(f"{path}/tasks", json={"plan-task": name})).json() for name in names
        ]


@pytest.mark.parametrize("name", ["parted_0", "flat"])
def test_plan_has_the_files_of_the_snapshot_and_no_null_in_a_partition(
    table: Callable[[str], OpenDataset], name: str
) -> None:
    dataset = table(name)
    loaded = VendedTable.loaded(dataset.client, dataset.address)
    for snapshot in loaded.snapshots():
        tasks = list(_tasks(dataset, **{"snapshot-id": snapshot["snapshot-id"]}))
        files = [task["data-file"] for task in tasks]
        entries = [entry["data_file"] for entry in loaded.entries(snapshot)]
        assert {file["file-path"] for file in files} == {
            entry["file_path"] for entry in entries if entry["content"] == 0
        }
        assert all(task["residual-filter"] is True for task in tasks)
        # PyIceberg 0.12 refuses a plan with a null.
        assert not any(None in file["partition"] for file in files)
