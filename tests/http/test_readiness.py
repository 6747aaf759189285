"""The checks behind the readiness: loops that stand still, the storage, and the free space of disks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from app.infra.files.probe import Probed, StorageProbe
from app.infra.files.storage import LocalStorage
from app.process.readiness import loops_check, spark_check

SINCE = datetime(2026, 11, 22, 8, tzinfo=UTC)


def test_loop_that_stands_still_is_named_and_required_only_if_no_worker_has_it_moving() -> None:
    still, moving = {"reaper": SINCE}, {}
    assert loops_check({"the API": moving, "worker a": moving}).ok
    one = loops_check({"the API": moving, "worker a": still, "worker b": moving})
    assert (one.ok, one.required) == (False, False)
    assert one.detail == "worker a: the loop reaper stands still since 2026-11-22T08:00:00+00:00"
    both = loops_check({"the API": moving, "worker a": still, "worker b": still})
    assert (both.ok, both.required) == (False, True)
    assert not loops_check({"the API": still}).required


def test_spark_is_named_where_a_worker_has_no_executor_and_required_if_none_has_one() -> None:
    assert spark_check({}).ok
    assert spark_check({"here": None, "cluster": 2}).ok
    one = spark_check({"here": None, "cluster": 0})
    assert (one.ok, one.required) == (False, False)
    assert one.detail == "Spark has no executor for the workers cluster"
    every = spark_check({"a": 0, "b": 0})
    assert (every.ok, every.required) == (False, True)


def test_probe_finds_a_missing_storage_and_a_full_disk_and_leaves_no_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    probe = StorageProbe(LocalStorage(root), tmp_path, 0)
    assert probe.run().storage == "it is out of reach"
    root.mkdir()
    assert StorageProbe(LocalStorage(root), tmp_path, 0).run() == Probed()
    assert not list(root.iterdir())
    assert StorageProbe(LocalStorage(root), tmp_path, 2**62).run().disk.endswith(f"of {2**62} at least")


def test_probe_does_not_wait_for_a_storage_that_hangs(tmp_path: Path) -> None:
    released = Event()

    class Hanging(LocalStorage):
        def create(self, path: str, *, durable: bool = True):
            released.wait(60)
            return super().create(path, durable=durable)

    probe = StorageProbe(Hanging(tmp_path), tmp_path, 0)
    for _ in range(2):
        assert probe.run().storage.startswith("it has not answered for")
    released.set()
