"""Tasks of a bucket go back to the Spark worker that has its hot copies, and elsewhere when that is killed."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.infra.settings import Settings
from tests.cluster.conftest import Cluster
from tests.support.waiting import until

FIELDS = [{"name": "id", "type": "int64"}, {"name": "amount", "type": "int64"}]
SPARK_WORKERS = ("spark-worker-1", "spark-worker-2")
# Of fewer rows there are no copies.
ROWS = 3_000
# The host of a table is as good as random.
DATASETS, DATASETS_MAX = 4, 20
_numbers = count(1)


@pytest.fixture(autouse=True)
def _preferences(cluster: Cluster) -> None:
    """Skips where the compose file does not switch preferences on."""
    settings = Settings.from_environment(cluster.environment("worker-1"))
    if not settings.spark_locality_wait_seconds:
        pytest.skip("HEADWATER_SPARK_LOCALITY_WAIT_SECONDS of the workers in docker-compose.yml is 0")


def copy_files(cluster: Cluster, spark_worker: str) -> list[Path]:
    """The copies in the folder of a Spark worker, without those that are being written."""
    folder = cluster.data / "containers" / spark_worker / "executor" / "hot"
    return [file for file in folder.glob("boot-*/*") if file.suffix != ".new"]


def copies(cluster: Cluster) -> dict[str, set[str]]:
    """Their names, by Spark worker."""
    return {name: {file.name for file in copy_files(cluster, name)} for name in SPARK_WORKERS}


def new_copies(cluster: Cluster, before: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: files - before[name] for name, files in copies(cluster).items()}


def new_table(client: httpx2.Client) -> str:
    """A table of one bucket, in which writes look rows up."""
    definition: dict[str, Any] = {
        "name": f"locality_{next(_numbers)}",
        "schema": {"fields": FIELDS},
        "record_key": ["id"],
        "table_type": "merge_on_read",
        "bucket": {"mode": "fixed", "count": 1},
        # They could keep the preferred host busy for longer than a write waits for it.
        "services": {"compaction": None, "changelog": None},
    }
    answer = client.post("/datasets", json=definition)
    assert answer.status_code == 201, answer.text
    return str(definition["name"])


def write(client: httpx2.Client, dataset: str, operation: str, rows: list[dict[str, int]]) -> dict[str, Any]:
    body = {"operation": operation, "source": {"kind": "rows", "rows": rows}}
    answer = client.post(f"/datasets/{dataset}/writes", json=body, headers={"Prefer": "wait=60"})
    job: dict[str, Any] = answer.json()
    assert job["state"] == "succeeded", answer.text
    return job


def load(client: httpx2.Client, dataset: str) -> None:
    write(client, dataset, "insert", [{"id": number, "amount": 0} for number in range(ROWS)])


def upsert(client: httpx2.Client, dataset: str, amount: int) -> None:
    write(client, dataset, "upsert", [{"id": number, "amount": amount} for number in range(0, ROWS, 100)])


def test_tasks_of_a_bucket_run_on_the_spark_worker_with_its_copies(
    cluster: Cluster, client: httpx2.Client
) -> None:
    used: set[str] = set()
    for number in range(1, DATASETS_MAX + 1):
        dataset, before = new_table(client), copies(cluster)
        load(client, dataset)
        for amount in range(1, 7):
            upsert(client, dataset, amount)
        here = {name for name, files in new_copies(cluster, before).items() if files}
        assert len(here) == 1, "copies are on one Spark worker only"
        used |= here
        if number >= DATASETS and len(used) == len(SPARK_WORKERS):
            return
    raise AssertionError(f"all {DATASETS_MAX} tables are on {used}")


def test_writes_go_on_when_the_spark_worker_with_the_copies_is_killed(
    cluster: Cluster, client: httpx2.Client
) -> None:
    dataset, before = new_table(client), copies(cluster)
    load(client, dataset)
    upsert(client, dataset, 1)
    [home] = [name for name, files in new_copies(cluster, before).items() if files]
    [other] = [name for name in SPARK_WORKERS if name != home]
    [spark_worker] = cluster.processes(home, "deploy.worker.Worker")
    executors = cluster.processes(home, "CoarseGrainedExecutorBackend")
    # It stops first, so that nothing starts its executors again before the writes.
    spark_worker.suspend()
    try:
        for executor in executors:
            executor.kill()
        before = copies(cluster)
        began = time.monotonic()
        upsert(client, dataset, 2)
        print(f"the write after the kill: {time.monotonic() - began:.1f} s")
        assert len(new_copies(cluster, before)[other]) > 0, "it ran on the other one"
        assert not new_copies(cluster, before)[home]
    finally:
        spark_worker.kill()
    until(lambda: cluster.checks().get("spark", {}).get("ok"), "executors for all", seconds_max=120)
    amounts = count(3)

    def runs_at_home() -> bool:
        """Whether an upsert made no copies on the other Spark worker, after those there were removed."""
        for file in copy_files(cluster, other):
            file.unlink()
        before = copies(cluster)
        upsert(client, dataset, next(amounts))
        return not new_copies(cluster, before)[other]

    until(runs_at_home, "the host with the copies", seconds_max=120)
    for _ in range(5):
        assert runs_at_home()
    last = next(amounts)
    upsert(client, dataset, last)
    answer = client.get(f"/datasets/{dataset}/rows", params={"limit": 10_000}).json()
    assert {row["amount"] for row in answer["rows"] if row["id"] % 100 == 0} == {last}
