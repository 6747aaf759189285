"""`headwater up` under writes while each of its processes is killed in turn, the files that this leaves, and a start
after the operator key was lost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import psutil
import pytest

from tests.support.http import TLS
from tests.support.shares import share
from tests.support.waiting import until

pytestmark = pytest.mark.stack

ROOT = Path(__file__).parents[2]
# The word of each process's command by which it is found.
JAVA = "org.apache.spark.deploy.SparkSubmit"
PROCESSES = ("workers.main", JAVA, "workers.main", "app.main", "postgres", "valkey")


@dataclass(kw_only=True)
class Up:
    """`headwater up`, and the folder that its processes have for temporary files."""

    data: Path
    temporary: Path
    process: subprocess.Popen[bytes] | None = None
    # Every process that was there at some time.
    processes: dict[int, psutil.Process] = field(default_factory=dict)

    def command(self, *flags: str) -> list[str]:
        return [sys.executable, "-m", "clients.cli", "up", "--port", "0", "--data", str(self.data), *flags]

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        return own | {"TMPDIR": str(self.temporary), "HEADWATER_SPARK_MASTER": "local[2]"}

    def start(self, *flags: str) -> None:
        with (self.data.parent / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(*flags),
                cwd=ROOT,
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
        until(lambda: self.note()["pid"] == self.pid, "the service to serve", seconds_max=120)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def note(self) -> dict[str, Any]:
        """What the service says of itself; a process number of 0 while it does not serve."""
        try:
            found: dict[str, Any] = json.loads((self.data / "headwater.json").read_text())
        except FileNotFoundError:
            return {"pid": 0}
        return found

    def watch(self) -> None:
        """Remembers the processes that are there now."""
        with suppress(psutil.NoSuchProcess):
            for each in psutil.Process(self.pid).children(recursive=True):
                self.processes[each.pid] = each

    def child(self, word: str) -> psutil.Process | None:
        for each in psutil.Process(self.pid).children():
            with suppress(psutil.NoSuchProcess):
                if any(part.rpartition("/")[2].startswith(word) for part in each.cmdline()):
                    return each
        return None

    def kill(self, word: str) -> None:
        """Kills a process of the service once it is there."""
        self.watch()
        until(lambda: self.child(word), f"{word} to run", seconds_max=60).kill()

    def kill_supervisor(self) -> None:
        """Kills the supervisor, and starts another one once all its children have ended."""
        self.watch()
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.ended()
        self.start()

    def ended(self) -> None:
        """Waits for the end of all processes that were there."""
        _, left = psutil.wait_procs(self.processes.values(), timeout=30)
        assert left == []

    def stop(self) -> None:
        """Stops the service in order."""
        self.watch()
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait(60) == 0
            self.process = None
        self.ended()


@dataclass(kw_only=True)
class Writer:
    """Writes rows to a dataset without a key, which would show a write that happened twice."""

    up: Up
    dataset: str = ""
    jobs: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def client(self) -> Iterator[httpx2.Client]:
        note = self.up.note()
        with httpx2.Client(
            base_url=note["url"],
            headers={"Authorization": f"Bearer {note['api_key']}"},
            timeout=20,
            trust_env=False,
            verify=TLS,
        ) as client:
            yield client

    def register(self) -> None:
        with self.client() as client:
            fields = [{"name": "id", "type": "int64"}]
            answer = client.post("/datasets", json={"name": "kills", "schema": {"fields": fields}})
            assert answer.status_code == 201, answer.text
            self.dataset = answer.json()["id"]

    def run(self) -> None:
        """Sends one row after another, each until it is accepted."""
        while not self.stopping.is_set():
            row = {"id": len(self.jobs)}
            body = {"operation": "insert", "source": {"kind": "rows", "rows": [row]}}
            try:
                with self.client() as client:
                    answer = client.post(
                        f"/datasets/{self.dataset}/writes",
                        json=body,
                        headers={"Idempotency-Key": f"row-{row['id']}"},
                    )
            except (KeyError, httpx2.TransportError):
                time.sleep(0.05)
                continue
            if answer.status_code in (200, 202):
                self.jobs.append(answer.json()["id"])
            else:
                assert answer.status_code == 503, answer.text
            time.sleep(0.05)

    def committed(self, job_id: str) -> bool:
        """Whether the job has succeeded. A service that does not answer says nothing."""
        try:
            with self.client() as client:
                answer = client.get(f"/jobs/{job_id}", params={"wait": 5})
        except (KeyError, httpx2.TransportError):
            return False
        if answer.status_code == 503:
            return False
        state = answer.json()["state"]
        assert state in ("queued", "running", "succeeded"), answer.text
        return bool(state == "succeeded")

    def await_next(self) -> None:
        """Waits until a row is committed that was accepted from now on."""
        number = len(self.jobs)
        until(lambda: len(self.jobs) > number, "a write to be accepted", seconds_max=60)
        until(lambda: self.committed(self.jobs[number]), "the write to be committed", seconds_max=120)

    def rows(self) -> list[int]:
        with self.client() as client:
            answer = client.get(f"/datasets/{self.dataset}/rows", params={"limit": 10_000})
            assert answer.status_code == 200, answer.text
            return sorted(row["id"] for row in answer.json()["rows"])


@pytest.fixture
def up() -> Iterator[Up]:
    # Not pytest's own folder, which is closed to the account that Postgres runs as.
    with TemporaryDirectory(prefix="headwater-up-") as directory:
        folder = Path(directory)
        folder.chmod(0o755)
        temporary = folder / "tmp"
        temporary.mkdir()
        up = Up(data=folder / "data", temporary=temporary)
        try:
            yield up
        finally:
            if up.process is not None:
                up.process.terminate()
                up.process.wait(60)


@share(8)
def test_no_write_is_lost_or_doubled_and_no_file_is_left_whatever_is_killed(up: Up) -> None:
    up.start()
    writer = Writer(up=up)
    writer.register()
    thread = threading.Thread(target=writer.run)
    thread.start()
    try:
        writer.await_next()
        for word in PROCESSES:
            java = up.child(JAVA)
            up.kill(word)
            writer.await_next()
            if word == "workers.main":
                assert up.child(JAVA) == java, "the JVM was not taken over"
        up.kill_supervisor()
        writer.await_next()
    finally:
        writer.stopping.set()
        thread.join()
    until(lambda: all(map(writer.committed, writer.jobs)), "all writes to be committed", seconds_max=60)
    assert writer.rows() == list(range(len(writer.jobs)))
    up.stop()
    assert list(up.temporary.iterdir()) == []
    counters = {path.name for path in Path("/tmp").glob("hsperfdata_*/*")}
    assert counters.isdisjoint(map(str, up.processes))
    assert [path for name in ("jvm", "spark") for path in (up.data / name).rglob("*")] == []


def test_a_lost_operator_key_is_replaced_by_another_one_and_revoked(up: Up) -> None:
    up.start()
    writer, key_file = Writer(up=up), up.data / "operator.key"
    writer.register()
    with writer.client() as client:
        lost = client.get("/me").json()["key"]["id"]
    up.stop()
    command = up.command("--new-operator-key")
    refused = subprocess.run(
        command, cwd=ROOT, env=up.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == 1
    assert f"{key_file} has a key already: move it away" in refused.stderr
    lost_key = key_file.read_text().strip()
    key_file.unlink()
    up.start("--new-operator-key")
    assert up.note()["api_key"] == key_file.read_text().strip() != lost_key
    assert key_file.stat().st_mode & 0o777 == 0o600
    with writer.client() as client:
        assert {"operate", "manage", "read", "write"} <= set(client.get("/me").json()["scopes"])
        assert client.get(f"/datasets/{writer.dataset}").json()["name"] == "kills"
        with_lost_key = {"Authorization": f"Bearer {lost_key}"}
        assert client.get("/me", headers=with_lost_key).status_code == 200
        assert client.delete(f"/keys/{lost}").status_code == 204
        assert client.get("/me", headers=with_lost_key).status_code == 401
    up.stop()
