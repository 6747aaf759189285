"""The loss of a database and its storage: the commands restore both, and the service goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from psycopg import sql

from app.infra.runtime.valkey import EmbeddedValkey
from app.infra.settings import Settings
from tests.support.http import ORDERS, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.shares import share
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
# More than is kept with a job in Postgres: the rows are a file in the storage until the write is committed.
LARGE = [{"id": 1_000 + number, "note": f"{number:0200d}"} for number in range(1_000)]


def command(settings: Settings, owner_url: str, *words: Any) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environment |= {
        "HEADWATER_DATABASE_URL": settings.database_url,
        "HEADWATER_ADMIN_DATABASE_URL": settings.admin_database_url,
        "HEADWATER_MIGRATION_DATABASE_URL": owner_url,
        "HEADWATER_REDIS_URL": settings.redis_url,
        "HEADWATER_DATA_DIR": str(settings.data_dir),
        "HEADWATER_STORAGE_URI": settings.storage_uri,
    }
    words = (sys.executable, "-m", "clients.cli", *map(str, words))
    return subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def rows_of(client: httpx2.Client, dataset: str) -> dict[int, str]:
    answer = client.get(f"{dataset}/rows", params={"limit": 10_000})
    assert answer.status_code == 200, answer.text
    return {row["id"]: row["note"] for row in answer.json()["rows"]}


def feed_of(client: httpx2.Client, dataset: str, since: int = 0) -> list[tuple[int, str, int]]:
    answer = client.get(f"{dataset}/changes", params={"since": since, "limit": 10_000})
    assert answer.status_code == 200, answer.text
    return [(each["offset"], each["op"], each["row"]["id"]) for each in answer.json()["changes"]]


def write(client: httpx2.Client, dataset: str, *rows: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"{dataset}/writes", json=upsert(*rows))
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


def run(service: Service, client: httpx2.Client, *jobs: dict[str, Any]) -> None:
    service.work()
    for job in jobs:
        ended = client.get(job["links"]["self"]).json()
        assert ended["state"] == "succeeded", ended


def recreate(postgres: TestServer, name: str) -> None:
    with postgres.administration() as administration:
        administration.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        administration.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))


@share(4)
def test_lost_database_and_storage_are_restored_and_the_service_goes_on(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path: Path
) -> None:
    folder, copy = tmp_path / "backup", tmp_path / "copy"
    with postgres.fresh_database() as name:
        settings = settings_for(
            postgres.application_url(name), postgres.admin_url(name), redis.url, tmp_path / "data"
        )
        owner, storage = postgres.owner_url(name), settings.data_dir / "storage"
        with running_service(settings) as service:
            key = service.new_key("acme")
            with service.client(key) as client:
                dataset = client.post("/datasets", json=ORDERS).headers["location"]
                run(service, client, write(client, dataset, {"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
                waiting = [write(client, dataset, {"id": 3, "note": "c"}), write(client, dataset, *LARGE)]
                # The writes that wait are run before their files are copied, which then has to have them.
                began, go = tmp_path / "began", tmp_path / "go"
                script = f"touch {began}; until [ -e {go} ]; do sleep 0.05; done; cp -a {storage} {copy}"
                with ThreadPoolExecutor() as pool:
                    backup = pool.submit(command, settings, owner, "backup", folder, "--", "sh", "-c", script)
                    try:
                        until(lambda: began.exists() or backup.done(), "the copy of the storage")
                        run(service, client, *waiting)
                    finally:
                        go.touch()
                    assert backup.result().returncode == 0, backup.result().stderr
                # What comes after the backup is lost.
                run(service, client, write(client, dataset, {"id": 4, "note": "lost"}))
                assert set(rows_of(client, dataset)) >= {1, 2, 3, 4}

        shutil.rmtree(settings.data_dir)
        recreate(postgres, name)
        shutil.copytree(copy, storage)
        restored = command(settings, owner, "server", "restore", folder)
        assert restored.returncode == 0, restored.stderr
        assert "are there" in restored.stdout
        assert command(settings, owner, "server", "verify", "--contents").returncode == 0
        again = command(settings, owner, "server", "restore", folder)
        assert again.returncode == 1
        assert "not empty" in again.stderr
        assert "Traceback" not in again.stderr

        with running_service(settings) as service, service.client(key) as client:
            assert rows_of(client, dataset) == {1: "a", 2: "b"}
            run(service, client, *waiting, write(client, dataset, {"id": 1, "note": "new"}))
            expected = {1: "new", 2: "b", 3: "c"} | {row["id"]: row["note"] for row in LARGE}
            assert rows_of(client, dataset) == expected
            feed = feed_of(client, dataset)
            assert [offset for offset, _, _ in feed] == list(range(len(feed)))
            assert len(feed) == 2 + 1 + len(LARGE) + 2
            job = client.post(f"{dataset}/verifications").json()
            run(service, client, job)
            assert client.get(job["links"]["self"]).json()["result"]["equal"] is True

        check_that_faults_are_named(settings, owner, storage)


def check_that_faults_are_named(settings: Settings, owner: str, storage: Path) -> None:
    with psycopg.connect(owner) as connection:
        found = connection.execute("SELECT DISTINCT path FROM files ORDER BY 1 LIMIT 2").fetchall()
    missing, damaged = (storage / path for (path,) in found)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    missing.unlink()
    verified = command(settings, owner, "server", "verify", "--contents")
    assert verified.returncode == 1
    assert f"the file {missing.relative_to(storage)} is missing" in verified.stderr
    assert str(damaged.relative_to(storage)) in verified.stderr
    assert len(verified.stderr.splitlines()) == 3, verified.stderr
