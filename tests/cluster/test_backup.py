"""Backups of a service whose storage is on a real S3 server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import psycopg
from psycopg import sql

from app.infra.files.storage import create_bucket, open_storage
from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.valkey import EmbeddedValkey
from clients.cluster.programs import Programs
from tests.cluster.conftest import ROOT, Cluster
from tests.cluster.load import loaded
from tests.process.backup import test_disaster as disaster
from tests.support.http import ORDERS
from tests.support.postgres import TestServer
from tests.support.s3_server import S3Server
from tests.support.service import running_service, settings_for
from tests.support.shares import share
from tests.support.table import Table, by_key, fold
from tests.support.waiting import until

RESTORED: Final = "restored"
COPIED: Final = "s3://headwater-copy/tables"
ORIGINAL: Final = "s3://headwater/tables"


def copy(source: str, target: str) -> tuple[str, ...]:
    """A command that does what `aws s3 sync` does."""
    script = f"""
import os
from pyarrow.fs import copy_files
from app.infra.files.storage import create_bucket, s3_file_system
create_bucket({target!r})
storage = s3_file_system(os.environ)
copy_files({source.removeprefix("s3://")!r}, {target.removeprefix("s3://")!r}, storage, storage)
"""
    return sys.executable, "-c", script


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
def served(settings: dict[str, str], data: Path, api_key: str) -> Iterator[httpx2.Client]:
    """An API on these settings. Without a worker it is not ready, and reads."""
    port = free_port()
    own = {"HEADWATER_HOST": LOOPBACK, "HEADWATER_PORT": str(port), "HEADWATER_DATA_DIR": str(data)}
    url, headers = f"http://{LOOPBACK}:{port}", {"Authorization": f"Bearer {api_key}"}
    process = subprocess.Popen([sys.executable, "-m", "app.main"], cwd=ROOT, env=settings | own)
    try:
        with httpx2.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
            until(lambda: answers(client), "the API of the restored service", seconds_max=60)
            yield client
    finally:
        process.terminate()
        process.wait(60)


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx2.TransportError:
        return False


def test_backup_under_load_is_restored_with_the_copy_of_its_storage(
    cluster: Cluster, client: httpx2.Client, tmp_path: Path
) -> None:
    settings, folder = environment(cluster), tmp_path / "backup"
    with loaded(cluster, client) as load:
        headwater(settings, "backup", folder, "--", *copy(ORIGINAL, COPIED))
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
    assert "are there" in headwater(restored, "server", "restore", folder)
    headwater(restored, "server", "verify", "--contents")

    with served(restored, tmp_path / "data", cluster.api_key) as there:
        table = Table(deployment=cluster, client=there, id=load.table.id, key=load.table.key)
        changes = table.changes()
        assert by_key(table.rows(), table.key) == fold(changes, table.key)
    # What came after the backup is not there, and all that came before it is.
    everything = load.table.changes()
    assert 0 < len(changes) < len(everything)
    assert changes == everything[: len(changes)]


@share(2)
def test_lost_database_and_bucket_are_restored_and_the_service_goes_on(
    programs: Programs, postgres: TestServer, redis: EmbeddedValkey, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    with S3Server.running(programs.versitygw), postgres.fresh_database() as name:
        create_bucket(ORIGINAL)
        settings = settings_for(
            postgres.application_url(name),
            postgres.admin_url(name),
            redis.url,
            tmp_path / "data",
            storage_uri=ORIGINAL,
        )
        owner = postgres.owner_url(name)
        with running_service(settings) as service:
            key = service.new_key("acme")
            with service.client(key) as client:
                dataset = client.post("/datasets", json=ORDERS).headers["location"]
                disaster.run(service, client, disaster.write(client, dataset, {"id": 1, "note": "a"}))
                waiting = disaster.write(client, dataset, *disaster.LARGE)
                made = disaster.command(settings, owner, "backup", folder, "--", *copy(ORIGINAL, COPIED))
                assert made.returncode == 0, made.stderr
                disaster.run(
                    service, client, waiting, disaster.write(client, dataset, {"id": 4, "note": "lost"})
                )

        lost = open_storage(ORIGINAL)
        lost.delete([path for path, _ in lost.list("")])
        disaster.recreate(postgres, name)
        subprocess.run(copy(COPIED, ORIGINAL), cwd=ROOT, check=True, timeout=60)
        restored = disaster.command(settings, owner, "server", "restore", folder)
        assert restored.returncode == 0, restored.stderr
        assert "are there" in restored.stdout
        assert disaster.command(settings, owner, "server", "verify", "--contents").returncode == 0

        with running_service(settings) as service, service.client(key) as client:
            assert disaster.rows_of(client, dataset) == {1: "a"}
            disaster.run(service, client, waiting)
            expected = {1: "a"} | {row["id"]: row["note"] for row in disaster.LARGE}
            assert disaster.rows_of(client, dataset) == expected
            assert len(disaster.feed_of(client, dataset)) == len(expected)
