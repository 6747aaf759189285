"""Scratch folders of workers: removed at their end, and after a kill by the next worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from workers.engine.scratch import is_alive, remove_abandoned, scratch_folder

_WORKER = """
import sys
from pathlib import Path
from workers.engine.scratch import scratch_folder

with scratch_folder(Path(sys.argv[1]), sys.argv[2]) as folder:
    (folder / "spill").write_bytes(b"rows")
    print("ready", flush=True)
    sys.stdin.read()
"""


def worker(parent: Path, name: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(parent), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def names(parent: Path) -> set[str]:
    return {path.name for path in parent.iterdir()}


def test_scratch_folder_is_removed_when_its_worker_ends(tmp_path: Path) -> None:
    parent = tmp_path / "spark"
    with worker(parent, "one") as process:
        assert names(parent) == {"one", "one.lock"}
        process.communicate(timeout=30)
    assert names(parent) == set()


def test_scratch_folder_of_a_killed_worker_is_removed_by_others(tmp_path: Path) -> None:
    with worker(tmp_path, "lives") as living:
        with worker(tmp_path, "killed.7") as killed:
            killed.kill()
        assert "killed.7" in names(tmp_path)
        with scratch_folder(tmp_path, "next"):
            remove_abandoned(tmp_path, lambda _: None)
            assert names(tmp_path) == {"lives", "lives.lock", "next", "next.lock"}
        assert (tmp_path / "lives" / "spill").read_bytes() == b"rows"
        living.communicate(timeout=30)


def test_death_of_a_worker_is_reported_until_its_claims_have_ended(tmp_path: Path) -> None:
    with worker(tmp_path, "killed") as killed:
        killed.kill()
    ended: list[str] = []

    def fails(name: str) -> None:
        ended.append(name)
        raise ConnectionError("no database")

    remove_abandoned(tmp_path, fails)
    assert names(tmp_path) == {"killed", "killed.lock"}
    with scratch_folder(tmp_path, "next"):
        remove_abandoned(tmp_path, ended.append)
    assert ended == ["killed", "killed"]
    assert names(tmp_path) == set()


def test_process_is_alive_as_long_as_it_has_its_lock(tmp_path: Path) -> None:
    with worker(tmp_path, "lives") as living:
        assert is_alive(tmp_path, "lives")
        living.kill()
        living.wait(30)
        assert not is_alive(tmp_path, "lives")
    assert not is_alive(tmp_path, "never lived")
