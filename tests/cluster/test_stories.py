"""What users and operators do, on the cluster."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.cluster.conftest import ROOT, Cluster
from tests.docs.examples import check_answer, run
from tests.support.shares import share

FIELDS = [{"name": "id", "type": "int64"}, {"name": "amount", "type": "int64"}]


@share(3)
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
    assert "warning  spark cores         0 of 6 cores are free on 2 Spark workers" in result.stdout
    assert result.stdout.count("warning") == 1, result.stdout


def test_both_workers_have_executors_and_both_spark_workers_run_them(cluster: Cluster) -> None:
    spark_workers = ("spark-worker-1", "spark-worker-2")
    for spark_worker in spark_workers:
        assert len(cluster.processes(spark_worker, "CoarseGrainedExecutorBackend")) == 3
    assert len(set.union(*map(cluster.executors, spark_workers))) == 2
    assert cluster.checks()["spark"]["ok"]


def test_upload_compaction_view_and_read_job_go_through_storage_and_executors(client: httpx2.Client) -> None:
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


def test_bytes_of_inputs_and_results_go_between_the_client_and_the_storage(
    cluster: Cluster, client: httpx2.Client
) -> None:
    storage = f"{cluster.containers['storage-1'].address}:9000"
    definition = {"name": "shipments", "schema": {"fields": FIELDS}, "record_key": ["id"]}
    assert client.post("/datasets", json=definition).status_code == 201
    content = "".join(f'{{"id": {number}, "amount": {number % 10}}}\n' for number in range(300_000)).encode()
    announced = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    made = client.post("/datasets/shipments/upload-links", json=announced)
    assert made.status_code == 201, made.text
    link = made.json()
    assert urlsplit(link["url"]).netloc == storage

    source = {"kind": "uploads", "upload_ids": [link["id"]], "format": "ndjson"}
    write, wait = {"operation": "upsert", "source": source}, {"Prefer": "wait=60"}
    early = client.post("/datasets/shipments/writes", json=write)
    assert early.json()["type"] == "/problems/upload-incomplete", early.text
    sent = httpx2.put(link["url"], content=content, headers=link["headers"], timeout=60, trust_env=False)
    assert sent.status_code == 200, sent.text
    written = client.post("/datasets/shipments/writes", json=write, headers=wait)
    assert written.json()["state"] == "succeeded", written.text
    assert written.json()["rows"]["inserted"] == 300_000

    wanted = {"query": "snapshot", "format": "csv", "disposition": "files"}
    read = client.post("/datasets/shipments/reads", json=wanted, headers=wait)
    assert read.json()["state"] == "succeeded", read.text
    lines = set()
    path = f"/jobs/{read.json()['id']}/result"
    for file in client.get(path).json()["files"]:
        there = client.get(f"{path}/files/{file['name']}", headers={"Prefer": "redirect"})
        assert there.status_code == 307, there.text
        assert urlsplit(there.headers["location"]).netloc == storage
        fetched = httpx2.get(there.headers["location"], timeout=60, trust_env=False)
        assert fetched.status_code == 200
        lines |= set(fetched.text.splitlines()[1:])
    assert lines == {f"{number},{number % 10}" for number in range(300_000)}
