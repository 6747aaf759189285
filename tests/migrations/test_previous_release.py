"""The code of the release before the newest migration works on the newest schema, until its processes are replaced.

That code is taken from the history of the repository, and runs its own tests of the repositories, with the migrations
of this one. `make test-skew` runs all of them, CI one module. Its API also serves beside that of this release, as in an
upgrade.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest

from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.valkey import EmbeddedValkey
from app.infra.settings import Settings
from migrations import revisions
from tests.support.http import ORDERS, upsert
from tests.support.postgres import TestServer
from tests.support.service import running_service, settings_for
from tests.support.shares import share
from tests.support.waiting import until

ROOT: Final = Path(__file__).parents[2]
MIGRATIONS: Final = ROOT / "migrations" / "versions"
ALL: Final = bool(os.environ.get("SKEW"))
# In CI: commits, their conflicts, and what readers of a version see.
TESTS: Final = (
    ("timeline", "jobs", "catalog", "consumers", "changes")
    if ALL
    else ("timeline/repository/test_timeline_store.py",)
)


def git(*words: str) -> str:
    result = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"the history of the repository is not there: git {words[0]}: {result.stderr.strip()}")
    return result.stdout.strip()


def commit_before(migration: str) -> str:
    """The commit before that which added the migration to the main line; the latest one if none has yet."""
    added = git("log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "-1", "--", migration)
    if not added:
        if git("rev-parse", "--is-shallow-repository") == "true":
            pytest.skip(f"the history of the repository is shallow: it does not show who added {migration}")
        return git("rev-parse", "HEAD")
    return git("rev-parse", "--verify", f"{added}^")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The previous release, with the migrations of this one."""
    folder = tmp_path_factory.mktemp("previous")
    [newest] = MIGRATIONS.glob(f"{revisions()[-1]}_*.py")
    archive = folder / "release.tar"
    git("archive", "--output", str(archive), commit_before(str(newest.relative_to(ROOT))))
    release = folder / "release"
    with tarfile.open(archive) as files:
        files.extractall(release, filter="data")
    assert not (release / newest.relative_to(ROOT)).exists()
    shutil.rmtree(release / MIGRATIONS.relative_to(ROOT))
    shutil.copytree(
        MIGRATIONS, release / MIGRATIONS.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__")
    )
    return release


def only(release: Path) -> dict[str, str]:
    """The environment in which a release is imported, and nothing of this one."""
    return {"PYTHONPATH": f"{release}:{release / 'clients' / 'python'}"}


@contextmanager
def served(release: Path, settings: Settings, key: str) -> Iterator[httpx2.Client]:
    """The API of a release on these settings."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environment |= only(release) | {
        "HEADWATER_DATABASE_URL": settings.database_url,
        "HEADWATER_ADMIN_DATABASE_URL": settings.admin_database_url,
        "HEADWATER_REDIS_URL": settings.redis_url,
        "HEADWATER_DATA_DIR": str(settings.data_dir),
        "HEADWATER_STORAGE_URI": settings.storage_uri,
        "HEADWATER_PORT": str(port),
    }
    process = subprocess.Popen([sys.executable, "-P", "-m", "app.main"], cwd=release, env=environment)
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx2.Client(
            base_url=f"http://{LOOPBACK}:{port}", headers=headers, timeout=30, trust_env=False
        ) as client:
            until(lambda: answers(client), "the API of the previous release", seconds_max=60)
            yield client
    finally:
        process.terminate()
        process.wait(30)


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx2.TransportError:
        return False


@share(2)
def test_apis_of_both_releases_accept_writes_and_read_while_no_worker_runs(
    previous: Path, postgres: TestServer, redis: EmbeddedValkey, tmp_path: Path
) -> None:
    with postgres.fresh_database() as name:
        settings = settings_for(
            postgres.application_url(name), postgres.admin_url(name), redis.url, tmp_path / "data"
        )
        with running_service(settings) as service:
            key = service.new_key("acme")
            with service.client(key) as new, served(previous, settings, key) as old:
                path = old.post("/datasets", json=ORDERS).headers["location"]
                sent = [
                    client.post(f"{path}/writes", json=upsert({"id": number, "note": f"{number}"}))
                    for number, client in enumerate([old, new, old, new])
                ]
                assert [answer.status_code for answer in sent] == [202] * 4
                jobs = [answer.json()["id"] for answer in sent]
                for client in (old, new):
                    listed = client.get("/jobs", params={"dataset": "orders"}).json()["items"]
                    assert sorted((job["id"], job["state"]) for job in listed) == sorted(
                        (job_id, "queued") for job_id in jobs
                    )
                    assert client.get(f"{path}/rows").json()["rows"] == []
            # The workers of this release start once its APIs have replaced the others.
            service.work()
            with service.client(key) as client:
                assert {client.get(f"/jobs/{job_id}").json()["state"] for job_id in jobs} == {"succeeded"}
                rows = client.get(f"{path}/rows").json()["rows"]
                assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]


@share(2)
@pytest.mark.parametrize("tests", TESTS)
def test_previous_release_works_on_the_newest_schema(previous: Path, tests: str) -> None:
    # A release from before the wings has its rooms directly below `tests`.
    [place] = [place for wing in ("core", ".") if (place := previous / "tests" / wing / tests).exists()]
    chosen = place if place.suffix else place / "repository"
    environment = os.environ | only(previous)
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(chosen)]
    result = subprocess.run(
        command, cwd=previous, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert result.returncode == 0, result.stdout[-8_000:] + result.stderr[-2_000:]
