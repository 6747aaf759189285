"""The folder for hot files: bounded, shared by processes, and never the cause of a failure."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.infra.files.lookups import hot_folder
from app.infra.files.lookups.hot_folder import HotFolder, remove_copies

ROOT = Path(__file__).parents[3]
# The clock that stamps files ticks this often, or more often.
TICK_SECONDS = 0.02


def put(folder: HotFolder, name: str, content: bytes) -> None:
    folder.put(name, lambda file: file.write(content))
    time.sleep(TICK_SECONDS)


def content(folder: HotFolder, name: str) -> bytes | None:
    opened = folder.open(name)
    time.sleep(TICK_SECONDS)
    return None if opened is None else opened.read()


def stored(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


def test_file_is_visible_once_it_is_complete(tmp_path: Path) -> None:
    folder, other = HotFolder(tmp_path, 1_000), HotFolder(tmp_path, 1_000)
    new = folder.create("a/b#rows")
    new.file.write(b"12345")
    assert other.open("a/b#rows") is None
    new.publish()
    new.discard()
    assert content(other, "a/b#rows") == b"12345"
    assert content(other, "a/b#keys") is None


def test_discarded_file_leaves_nothing(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path, 1_000)
    folder.create("a").discard()

    def fails(_: object) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        folder.put("a", fails)
    assert folder.open("a") is None
    assert stored(tmp_path) == []


def test_file_replaces_one_of_the_same_name(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path, 1_000)
    put(folder, "a", b"old")
    opened = folder.open("a")
    put(folder, "a", b"newer")
    assert opened is not None
    assert (opened.read(), content(folder, "a")) == (b"old", b"newer")
    assert len(stored(tmp_path)) == 1


def test_least_recently_used_files_are_evicted(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path, 300)
    for name in "abc":
        put(folder, name, name.encode() * 100)
    assert content(folder, "a") == b"a" * 100
    mapped = folder.open("b")
    time.sleep(TICK_SECONDS)
    assert content(HotFolder(tmp_path, 300), "a") is not None
    put(folder, "d", b"d" * 101)
    assert [content(folder, name) for name in "abcd"] == [b"a" * 100, None, None, b"d" * 101]
    # Who has a file mapped goes on reading it.
    assert mapped is not None
    assert mapped.read() == b"b" * 100


def test_many_small_files_stay_within_the_bound(tmp_path: Path) -> None:
    """The folder is listed now and then only, and may be as much larger as is added in between."""
    folder = HotFolder(tmp_path, 3_200)
    for number in range(100):
        folder.put(str(number), lambda file: file.write(b"x" * 90))
        assert sum(file.stat().st_size for file in stored(tmp_path)) <= 3_200 + 100
    assert content(folder, "99") is not None
    assert content(folder, "0") is None


def test_files_of_other_processes_count_towards_the_bound(tmp_path: Path) -> None:
    put(HotFolder(tmp_path, 1_000), "a", b"a" * 900)
    folder = HotFolder(tmp_path, 1_000)
    put(folder, "b", b"b" * 200)
    assert (content(folder, "a"), content(folder, "b")) == (None, b"b" * 200)


def test_file_larger_than_the_bound_is_not_stored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = HotFolder(tmp_path, 100)
    put(folder, "a", b"a" * 50)
    with caplog.at_level(logging.WARNING):
        put(folder, "b", b"b" * 101)
    assert "101 bytes exceed the folder's limit of 100" in caplog.text
    assert (content(folder, "a"), content(folder, "b")) == (b"a" * 50, None)
    new = folder.create("b")
    new.file.write(b"b" * 101)
    with pytest.raises(OSError, match="limit of 100"):
        new.publish()
    new.discard()
    assert len(stored(tmp_path)) == 1


def test_removed_folder_is_created_again(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path / "hot", 1_000)
    (tmp_path / "hot").rename(tmp_path / "away")
    put(folder, "a", b"1")
    assert content(folder, "a") == b"1"


def test_only_files_of_this_boot_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not on disk yet when the machine lost its power may be there in part."""
    (tmp_path / "mine").write_text("not the folder's")
    put(HotFolder(tmp_path, 1_000), "a", b"1")
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(hot_folder, "_BOOT_ID", boot)
    folder = HotFolder(tmp_path, 1_000)
    assert folder.open("a") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boot-another", "boot_id", "mine"]


def test_files_are_synced_without_a_boot_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_folder, "_BOOT_ID", tmp_path / "none")
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    put(HotFolder(tmp_path, 1_000), "a", b"1")
    assert len(synced) == 1
    assert content(HotFolder(tmp_path, 1_000), "a") == b"1"


@pytest.mark.parametrize("same_process", [True, False])
def test_files_that_were_not_used_for_a_week_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_process: bool
) -> None:
    folder = HotFolder(tmp_path, 1_000_000)
    put(folder, "old", b"1")
    [old] = stored(tmp_path)
    put(folder, "used", b"2")
    for file in stored(tmp_path):
        os.utime(file, (time.time() - 8 * 86_400,) * 2)
    assert content(folder, "used") == b"2"
    put(folder, "soon", b"3")
    assert old.exists(), "the folder is not listed for each file"
    if same_process:
        monkeypatch.setattr(hot_folder, "_UNLISTED_SECONDS", 0)
    else:
        folder = HotFolder(tmp_path, 1_000_000)
    put(folder, "new", b"4")
    assert not old.exists()
    assert [content(folder, name) for name in ("used", "soon", "new")] == [b"2", b"3", b"4"]


def test_files_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path, 1_000)
    for _ in range(2):
        with folder.create("a").file as file:
            file.write(b"half")
    one, _ = stored(tmp_path)
    long_ago = time.time() - 3_600
    os.utime(one, (long_ago, long_ago))
    put(folder, "b", b"b" * 900)
    assert one not in stored(tmp_path)
    assert len(stored(tmp_path)) == 2


_CHURN = """
import random, sys
from pathlib import Path
import app.kernel.arrow
from app.infra.files.lookups.hot_folder import HotFolder

folder = HotFolder(Path(sys.argv[1]), 64_000)
source = random.Random(sys.argv[2])
print("ready", flush=True)
for step in range(int(sys.argv[3])):
    number = source.randrange(60)
    expected = bytes([number]) * (1_000 + 50 * number)
    opened = folder.open(str(number))
    if opened is None:
        folder.put(str(number), lambda file: [file.write(expected[at:at + 500]) for at in range(0, len(expected), 500)])
    elif opened.read() != expected:
        sys.exit(f"file {number} is not what was put there")
"""


def test_folder_stays_within_its_bound_when_a_process_is_killed(tmp_path: Path) -> None:
    """Who opens a file sees all of it, whatever writes, replaces or removes it at the time."""

    def start(name: str, steps: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _CHURN, str(tmp_path), name, str(steps)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    victim = start("victim", 10**9)
    others = [start(name, 3_000) for name in ("one", "other")]
    try:
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(0.1)
        victim.send_signal(signal.SIGKILL)
        for process in others:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, b"")
    finally:
        for process in (victim, *others):
            process.kill()
            process.communicate()
    finished = [file for file in stored(tmp_path) if not file.name.endswith(".new")]
    assert len(finished) > 20
    assert sum(file.stat().st_size for file in finished) <= 64_000 * (1 + 3 / 32)


def test_copies_of_deleted_files_are_removed_and_others_stay(tmp_path: Path) -> None:
    folder = HotFolder(tmp_path, 1_000)
    for name in ("a", "a#rows", "a#keys", "b#rows"):
        put(folder, name, b"12345")
    remove_copies(tmp_path, ["a", "c"])
    assert [content(folder, name) for name in ("a", "a#rows", "a#keys", "b#rows")] == [
        None,
        None,
        None,
        b"12345",
    ]
    remove_copies(tmp_path / "missing", ["a"])
