"""What users and operators do, on the cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from tests.cluster.conftest import ROOT, Cluster
from tests.docs.examples import check_answer, run

FIELDS = [{"name": "id", "type": "int64"}, {"name": "amount", "type": "int64"}]


def test_first_ten_minutes_of_the_readme(cluster: Cluster, tmp_path: Path) -> None:
    for example, received in run(ROOT / "README.md", tmp_path, cluster.url, cluster.api_key):
        if example.answer is not None:
            check_answer(example.answer, received)


def test_doctor_finds_no_fault(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "clients.cli", "doctor"]
    environment = cluster.environment("worker-1")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    # Both workers run: nothing is left for a third.
    assert "warning  spark cores         0 of 4 cores are free on 2 Spark workers" in result.stdout
    assert result.stdout.count("warning") == 1, result.stdout


def test_both_workers_have_executors_on_both_spark_workers(cluster: Cluster) -> None:
    for spark_worker in ("spark-worker-1", "spark-worker-2"):
        executors = cluster.processes(spark_worker, "CoarseGrainedExecutorBackend")
        applications = {process.cmdline()[process.cmdline().index("--app-id") + 1] for process in executors}
        assert len(applications) == 2
    assert cluster.checks()["spark"]["ok"]


def test_upload_compaction_view_and_read_job_go_through_storage_and_executors(client: httpx.Client) -> None:
    definition = {
        "name": "payments",
        "schema": {"fields": FIELDS},
        "record_key": ["id"],
        "table_type": "merge_on_read",
    }
    assert client.post("/datasets", json=definition).status_code == 201
    rows = "".join(f'{{"id": {number}, "amount": {number % 10}}}\n' for number in range(20_000))
    headers = {"Content-Type": "application/x-ndjson", "Prefer": "wait=60"}
    for _ in range(2):
        answer = client.post("/datasets/payments/writes", content=rows, headers=headers)
        assert answer.json()["state"] == "succeeded", answer.text
    wait = {"Prefer": "wait=60"}
    compacted = client.post("/datasets/payments/compactions", headers=wait)
    assert compacted.json()["state"] == "succeeded", compacted.text
    view = {"name": "large", "sql": "SELECT id, amount FROM payments WHERE amount > 5", "record_key": ["id"]}
    made = client.post("/views", json=view)
    assert made.status_code == 201, made.text

    refreshed = client.post("/views/large/refreshes", headers=wait)
    assert refreshed.json()["state"] == "succeeded", refreshed.text
    page = client.get("/datasets/large/rows", params={"limit": 10_000}).json()
    assert len(page["rows"]) == 8_000
    read = client.post(
        "/datasets/payments/reads", json={"query": "snapshot", "format": "parquet"}, headers=wait
    )
    assert read.json()["state"] == "succeeded", read.text
    verified = client.post("/datasets/payments/verifications", headers=wait)
    assert verified.json()["state"] == "succeeded", verified.text
