"""Marks of partitions: what opens them, what ends them, and the events of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import text

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.errors import OffsetAhead
from app.core.jobs.values import Job
from app.features.partitions.repository import marks as partition_marks
from app.features.partitions.repository.marks import PartitionStore
from app.features.partitions.repository.touched import TouchedPartitionStore
from app.features.partitions.values import MarkerWork
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import DataFile, FileKind, Slot, bucket_file_group
from app.kernel.format.instant import Action
from tests.support.lakehouse import commit_of, data_file
from tests.support.store_fixtures import Stores
from tests.support.threads import together

MONDAY, TUESDAY = "day=2026-11-16", "day=2026-11-17"
Commit = Callable[..., list[DataFile]]


@pytest.fixture
def marks(stores: Stores) -> PartitionStore:
    return PartitionStore(stores.database)


@pytest.fixture
def commit(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> Commit:
    """Commits a new file in each of the partitions, in place of others; returns the new ones."""

    def run(
        *partitions: str,
        removed: tuple[DataFile, ...] = (),
        action: Action = Action.COMMIT,
        kind: FileKind = FileKind.BASE,
    ) -> list[DataFile]:
        added = []
        for path in partitions:
            slot = Slot(partition_path=path, bucket=0)
            place = {"slot": slot, "file_group": bucket_file_group(slot)}
            added.append(structs.replace(data_file(), kind=kind, **place))
        groups = dict.fromkeys(file.file_group for file in (*added, *removed))
        messages = [
            CommitMessage(
                file_group=group,
                added=tuple(file for file in added if file.file_group == group),
                removed=tuple(file.path for file in removed if file.file_group == group),
                changelog=(),
            )
            for group in groups
        ]
        version = stores.catalog.get(dataset.tenant_id, dataset.id).version
        made = structs.replace(commit_of([running()], messages, read_version=version), action=action)
        outcome = stores.timeline.publish_one(dataset.tenant_id, made)
        assert getattr(outcome, "version", None) == version + 1, outcome
        return added

    return run


def events_since(marks: PartitionStore, dataset: Dataset, since: int = 0) -> list[tuple[Any, ...]]:
    found = marks.events(dataset.tenant_id, dataset.id, since, 100)
    assert [event.number for event in found.items] == list(range(since, found.next_since))
    return [
        (event.kind.value, event.partition, event.version, event.reason and event.reason.value)
        for event in found.items
    ]


def catch_up(marks: PartitionStore, dataset: Dataset, idle_seconds: float | None = None) -> float | None:
    return marks.catch_up(dataset.tenant_id, dataset.id, idle_seconds=idle_seconds)


def test_new_data_reopens_a_done_partition(marks: PartitionStore, dataset: Dataset, commit: Commit) -> None:
    place = dataset.tenant_id, dataset.id
    commit(MONDAY, TUESDAY)
    [done] = marks.end(*place, [MONDAY])
    assert (done.changed_version, done.done_version) == (1, 1)
    commit(TUESDAY)
    assert catch_up(marks, dataset) is None
    assert marks.end(*place, [MONDAY]) == [done]
    commit(MONDAY)
    [again] = marks.end(*place, [MONDAY])
    assert (again.changed_version, again.done_version) == (3, 3)
    assert events_since(marks, dataset) == [
        ("done", MONDAY, 1, "ended"),
        ("reopened", MONDAY, 3, None),
        ("done", MONDAY, 3, "ended"),
    ]
    assert events_since(marks, dataset, since=2) == [("done", MONDAY, 3, "ended")]
    assert marks.of(*place, [TUESDAY, "day=none"])[TUESDAY].done_at is None
    with pytest.raises(OffsetAhead):
        marks.events(*place, 4, 1)


def test_removal_reopens_a_partition_and_compaction_does_not(
    marks: PartitionStore, dataset: Dataset, commit: Commit
) -> None:
    first = commit(MONDAY)
    marks.end(dataset.tenant_id, dataset.id, [MONDAY])
    compacted = commit(MONDAY, removed=tuple(first), action=Action.COMPACTION)
    catch_up(marks, dataset)
    [mark] = marks.end(dataset.tenant_id, dataset.id, [MONDAY])
    assert (mark.changed_version, mark.done_version) == (1, 1)
    commit(removed=tuple(compacted))
    catch_up(marks, dataset)
    assert events_since(marks, dataset)[1:] == [("reopened", MONDAY, 3, None)]


def test_tombstones_are_no_data_of_a_partition(
    marks: PartitionStore, stores: Stores, dataset: Dataset, commit: Commit
) -> None:
    place = dataset.tenant_id, dataset.id
    commit(MONDAY)
    marks.end(*place, [MONDAY])
    tombstones = commit(MONDAY, TUESDAY, kind=FileKind.TOMBSTONE)
    commit(removed=tuple(tombstones), action=Action.COMMIT)
    catch_up(marks, dataset)
    assert events_since(marks, dataset) == [("done", MONDAY, 1, "ended")]
    assert set(marks.of(*place, [MONDAY, TUESDAY])) == {MONDAY}
    assert TouchedPartitionStore(stores.database).touched(*place, 1, 3) == set()


def test_idle_partition_is_marked_done(
    marks: PartitionStore, stores: Stores, dataset: Dataset, commit: Commit
) -> None:
    commit(MONDAY, TUESDAY)
    assert catch_up(marks, dataset) is None
    wait = catch_up(marks, dataset, 100)
    assert wait is not None
    assert 90 < wait <= 100
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            text("UPDATE partition_marks SET changed_at = changed_at - interval '60 s' WHERE path = :path"),
            {"path": TUESDAY},
        )
    wait = catch_up(marks, dataset, 100)
    assert wait is not None
    assert 30 < wait <= 40
    wait = catch_up(marks, dataset, 50)
    assert wait is not None
    assert 40 < wait <= 50
    assert events_since(marks, dataset) == [("done", TUESDAY, 1, "idle")]
    assert catch_up(marks, dataset, 0) is None
    assert events_since(marks, dataset, since=1) == [("done", MONDAY, 1, "idle")]


def test_partition_with_only_postponed_rows_is_not_done(
    marks: PartitionStore, dataset: Dataset, commit: Commit
) -> None:
    postponed = commit(MONDAY, kind=FileKind.POSTPONED)
    assert catch_up(marks, dataset, 0) is None
    assert events_since(marks, dataset) == []
    with pytest.raises(InvalidRequest, match="1 of the partitions") as refused:
        marks.end(dataset.tenant_id, dataset.id, [MONDAY])
    assert refused.value.facts["errors"][0]["pointer"] == "/partitions/0"
    commit(MONDAY, removed=tuple(postponed), action=Action.COMPACTION)
    catch_up(marks, dataset, 0)
    # The version that has all its data is the one of the compaction.
    assert events_since(marks, dataset) == [("done", MONDAY, 2, "idle")]


def test_unknown_partition_is_named(marks: PartitionStore, dataset: Dataset, commit: Commit) -> None:
    commit(MONDAY)
    with pytest.raises(InvalidRequest) as refused:
        marks.end(dataset.tenant_id, dataset.id, [MONDAY, TUESDAY, "../etc", "\0"])
    pointers = [error["pointer"] for error in refused.value.facts["errors"]]
    assert pointers == ["/partitions/1", "/partitions/2", "/partitions/3"]
    assert events_since(marks, dataset) == []
    with pytest.raises(NotFound):
        marks.end(dataset.tenant_id, new_id(), [MONDAY])


def test_expired_versions_count_as_changes_of_every_partition(
    marks: PartitionStore, stores: Stores, dataset: Dataset, commit: Commit
) -> None:
    """A reconciler that was away longer than the history reaches reports too much rather than too little."""
    first = commit(MONDAY, TUESDAY)
    marks.end(dataset.tenant_id, dataset.id, [MONDAY, TUESDAY])
    second = commit(MONDAY, removed=(first[0],))
    commit(MONDAY, removed=tuple(second), action=Action.COMPACTION)
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("DELETE FROM files WHERE removed_version <= 3"))
        connection.execute(text("UPDATE heads SET earliest_version = 3"))
    catch_up(marks, dataset)
    assert events_since(marks, dataset)[2:] == [("reopened", MONDAY, 3, None), ("reopened", TUESDAY, 3, None)]


def test_versions_that_expire_while_changes_are_listed_count_as_changes_too(
    marks: PartitionStore,
    stores: Stores,
    dataset: Dataset,
    commit: Commit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, _ = commit(TUESDAY), commit(TUESDAY)
    marks.end(dataset.tenant_id, dataset.id, [TUESDAY])
    commit(removed=tuple(first))
    changed, calls = partition_marks._changed, []

    def expiring(*arguments: Any) -> Any:
        if not calls:
            with stores.database.tenant(dataset.tenant_id) as connection:
                connection.execute(text("DELETE FROM files WHERE removed_version <= 3"))
                connection.execute(text("UPDATE heads SET earliest_version = 3"))
        calls.append(arguments)
        return changed(*arguments)

    monkeypatch.setattr(partition_marks, "_changed", expiring)
    catch_up(marks, dataset)
    assert events_since(marks, dataset)[1:] == [("reopened", TUESDAY, 3, None)]
    assert len(calls) == 2


def test_events_of_racing_callers_are_dense_and_unique(
    marks: PartitionStore, dataset: Dataset, commit: Commit
) -> None:
    days = [f"day={number}" for number in range(8)]
    commit(*days)

    def end(number: int) -> None:
        marks.end(dataset.tenant_id, dataset.id, days[number : number + 4])
        catch_up(marks, dataset, 0)

    together([partial(end, number) for number in range(5)])
    assert sorted(partition for _, partition, _, _ in events_since(marks, dataset)) == days


def test_markers_follow_their_partitions(marks: PartitionStore, dataset: Dataset, commit: Commit) -> None:
    place = dataset.tenant_id, dataset.id

    def settled(*, wanted: bool = True) -> list[MarkerWork]:
        work: list[MarkerWork] = []
        assert marks.settle_markers(*place, work.append, with_markers=wanted, limit=9) == len(work)
        return work

    commit(MONDAY, TUESDAY)
    assert settled() == []
    done = marks.end(*place, [MONDAY, TUESDAY])
    assert settled(wanted=False) == []

    def fail(_: MarkerWork) -> None:
        raise OSError

    with pytest.raises(OSError):
        marks.settle_markers(*place, fail, with_markers=True, limit=9)
    assert marks.settle_markers(*place, lambda _: None, with_markers=True, limit=1) == 1
    [work] = settled()
    assert work in [MarkerWork(path=mark.path, version=1, done_at=mark.done_at) for mark in done]
    assert settled() == []
    commit(MONDAY)
    catch_up(marks, dataset)
    gone = MarkerWork(path=MONDAY, version=None, done_at=None)
    assert settled() == [gone]
    assert [each.path for each in settled(wanted=False)] == [TUESDAY]


def test_cleared_partition_is_marked_again_and_its_events_continue(
    marks: PartitionStore, dataset: Dataset, commit: Commit
) -> None:
    commit(MONDAY)
    marks.end(dataset.tenant_id, dataset.id, [MONDAY])
    marks.clear(dataset.tenant_id, dataset.id)
    assert marks.of(dataset.tenant_id, dataset.id, [MONDAY]) == {}
    catch_up(marks, dataset, 0)
    assert events_since(marks, dataset) == [("done", MONDAY, 1, "ended"), ("done", MONDAY, 1, "idle")]


def test_partition_that_becomes_idle_meanwhile_is_due_again(
    marks: PartitionStore,
    stores: Stores,
    dataset: Dataset,
    commit: Commit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was not idle yet when idle partitions were selected, and is when the next one is looked for."""
    commit(MONDAY)
    catch_up(marks, dataset)
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE partition_marks SET changed_at = clock_timestamp()"))
    end = partition_marks._end

    def slow(*arguments: Any) -> None:
        time.sleep(1.1)
        end(*arguments)

    monkeypatch.setattr(partition_marks, "_end", slow)
    wait = catch_up(marks, dataset, 1)
    assert wait is not None
    assert 0 <= wait <= 1
    assert events_since(marks, dataset) == []
    assert catch_up(marks, dataset, 1) is None
    assert events_since(marks, dataset) == [("done", MONDAY, 1, "idle")]
