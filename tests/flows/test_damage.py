"""Damaged files and a full disk: refused with a clear error, and nothing that was right is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.deployment import Deployment
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

STORAGE_BYTES = 2 * 1024 * 1024


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def one_bucket(new_table: Callable[..., Table]) -> Table:
    """A table of one file."""
    return new_table(bucket={"count": 1})


def live_file(table: Table) -> str:
    query = "SELECT path FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    [(path,)] = table.deployment.query(query, table.id)
    return path


def test_damaged_file_fails_the_write_and_is_named(deployment: Deployment, one_bucket: Table) -> None:
    table = one_bucket
    rows = [{"id": number, "note": f"{number}"} for number in range(100)]
    table.write("insert", rows)
    path = live_file(table)
    flip_a_bit(deployment.storage / path)

    refused = table.failed(table.submit("upsert", [{"id": 1, "note": "lost"}]), "corrupt-file")
    assert refused["path"] == path
    answer = table.client.get(f"{table.path}/rows")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/corrupt-file")
    assert answer.json()["path"] == path
    assert table.version == 1
    deployment.reap()
    assert live_file(table) == path
    assert (deployment.storage / path).exists()

    flip_a_bit(deployment.storage / path)
    assert table.write("upsert", [{"id": 1, "note": "kept"}])["committed_version"] == 2
    assert sorted(table.sound(), key=lambda row: row["id"]) == [
        *rows[:1],
        {"id": 1, "note": "kept"},
        *rows[2:],
    ]


def test_damaged_input_fails_only_its_own_write(deployment: Deployment, table: Table) -> None:
    with deployment.gates.before_claim(table.id):
        one = table.submit("insert", [{"id": 1, "note": "one"}])
        # Rows that are larger than those that are kept in Postgres.
        bad = table.submit("insert", [{"id": 2, "note": "bad" * 50_000}])
        two = table.submit("insert", [{"id": 3, "note": "two"}])
        [staged] = deployment.storage.glob(f"*/{table.id}/staged/{bad}*")
        flip_a_bit(staged)
    table.failed(bad, "corrupt-file")
    for job_id in (one, two):
        table.succeeded(job_id)
    assert {row["id"] for row in table.sound()} == {1, 3}


def test_missing_file_is_named(deployment: Deployment, one_bucket: Table) -> None:
    one_bucket.write("insert", [{"id": 1, "note": "x"}])
    path = live_file(one_bucket)
    (deployment.storage / path).unlink()
    problem = one_bucket.failed(one_bucket.submit("upsert", [{"id": 1, "note": "y"}]), "corrupt-file")
    assert problem["path"] == path
    assert one_bucket.version == 1


@pytest.fixture
def small_disk(deployment: Deployment, one_bucket: Table) -> Iterator[Path]:
    """The folder of the table's files, on a disk of its own that holds little."""
    [(tenant_id,)] = deployment.query("SELECT tenant_id::text FROM datasets WHERE id = %s", one_bucket.id)
    folder = deployment.storage / tenant_id / one_bucket.id
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={STORAGE_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a disk of its own takes the right to mount one")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_accepted_write_waits_until_a_full_disk_has_space(
    deployment: Deployment, one_bucket: Table, small_disk: Path
) -> None:
    table = one_bucket
    row = {"id": 1, "note": "before"}
    table.write("insert", [row])
    filling = small_disk / "filling"
    gate = deployment.gates.before_claim(table.id)
    with gate:
        # Accepted while there was room, merged when there is none.
        job_id = table.submit("upsert", [{"id": number, "note": "x"} for number in range(10)])
        with filling.open("wb") as file:
            fill(file.fileno())
    until(lambda: table.job(job_id)["progress"]["waiting_for"] == "space", "the write to wait")
    # The rows of a small write need no space in storage to be accepted.
    small = table.submit("upsert", [row])
    refused = table.send("upsert", [{"id": 1, "note": "x" * 200_000}])
    assert (refused.status_code, refused.json()["type"]) == (507, "/problems/storage-full")
    assert table.sound() == [row]
    assert not table.orphans()
    filling.unlink()
    assert table.succeeded(job_id)["committed_version"] == 2
    table.succeeded(small)
    assert len(table.sound()) == 10


def fill(descriptor: int) -> None:
    """Writes until there is no room for another byte."""
    size = 65_536
    while size:
        try:
            os.write(descriptor, bytes(size))
        except OSError:
            size //= 2
