"""A backup of the cluster under load, restored into another database, with the copy of its S3 storage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import psycopg
from psycopg import sql

from app.runtime.loopback import LOOPBACK, free_port
from tests.cluster.conftest import ROOT, Cluster
from tests.cluster.load import loaded
from tests.support.table import Table, by_key, fold
from tests.support.waiting import until

RESTORED: Final = "restored"
COPIED: Final = "s3://headwater-copy/tables"
# What `aws s3 sync` does.
COPY: Final = f"""
import os
from pyarrow.fs import copy_files
from app.files.storage import create_bucket, s3_file_system
create_bucket({COPIED!r})
storage = s3_file_system(os.environ)
copy_files("headwater/tables", {COPIED.removeprefix("s3://")!r}, storage, storage)
"""


def foreign(name: str) -> bool:
    return name.startswith(("HEADWATER_", "AWS_", "PG"))


def environment(cluster: Cluster) -> dict[str, str]:
    """What `docker compose run init` would have."""
    kept = {name: value for name, value in os.environ.items() if not foreign(name)}
    return kept | cluster.containers["init-1"].environment


def headwater(settings: dict[str, str], *words: str | Path) -> str:
    """Standard output of a command, which must succeed."""
    command = [sys.executable, "-m", "clients.cli", *map(str, words)]
    result = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@contextmanager
def served(settings: dict[str, str], data: Path, api_key: str) -> Iterator[httpx.Client]:
    """An API on these settings. Without a worker it is not ready, and reads."""
    port = free_port()
    own = {"HEADWATER_HOST": LOOPBACK, "HEADWATER_PORT": str(port), "HEADWATER_DATA_DIR": str(data)}
    url, headers = f"http://{LOOPBACK}:{port}", {"Authorization": f"Bearer {api_key}"}
    process = subprocess.Popen([sys.executable, "-m", "app.main"], cwd=ROOT, env=settings | own)
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
            until(lambda: answers(client), "the API of the restored service", seconds_max=60)
            yield client
    finally:
        process.terminate()
        process.wait(60)


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


def test_backup_under_load_is_restored_with_the_copy_of_its_storage(
    cluster: Cluster, client: httpx.Client, tmp_path: Path
) -> None:
    settings, folder = environment(cluster), tmp_path / "backup"
    with loaded(cluster, client) as load:
        headwater(settings, "backup", folder, "--", sys.executable, "-c", COPY)
    postgres = cluster.containers["postgres-1"]
    with psycopg.connect(
        host=postgres.address,
        user=postgres.environment["POSTGRES_USER"],
        password=postgres.environment["POSTGRES_PASSWORD"],
        dbname=postgres.environment["POSTGRES_DB"],
        autocommit=True,
    ) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(RESTORED)))
    restored = {
        name: value.removesuffix("/headwater") + f"/{RESTORED}" if name.endswith("DATABASE_URL") else value
        for name, value in settings.items()
    } | {"HEADWATER_STORAGE_URI": COPIED}
    assert "are there" in headwater(restored, "restore", folder)
    headwater(restored, "verify", "--contents")

    with served(restored, tmp_path / "data", cluster.api_key) as there:
        table = Table(deployment=cluster, client=there, id=load.table.id, key=load.table.key)
        changes = table.changes()
        assert by_key(table.rows(), table.key) == fold(changes, table.key)
    # What came after the backup is not there, and all that came before it is.
    everything = load.table.changes()
    assert 0 < len(changes) < len(everything)
    assert changes == everything[: len(changes)]
