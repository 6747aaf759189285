"""File groups of a version one after another, against the list of all its files."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from random import Random
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.errors import VersionExpired
from app.core.timeline.service.live_groups import AFTER_ALL, LiveGroups
from app.core.timeline.values import Published
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.file_group import DataFile, DeletionVector, FileKind, bucket_file_group
from tests.support.lakehouse import commit_of, message, written_once
from tests.support.store_fixtures import Stores

KINDS = [tuple(FileKind), (FileKind.BASE,), (FileKind.BASE, FileKind.LOG)]
VECTOR = DeletionVector(path="v", size_bytes=8, checksum="xxh3:0", cardinality=2)


@pytest.fixture
def history(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> list[list[DataFile]]:
    """The live files of each version: groups of one and of many files, some rewritten, some with deleted rows."""

    def publish(*messages: CommitMessage, read_version: int) -> None:
        commit = commit_of([running()], messages, read_version=read_version)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)

    random, versions = Random(1), 0
    for bucket in random.sample(range(40), 12):
        group = written_once(bucket, rows=5, files=random.choice([1, 1, 2, 9]))
        added = [
            msgspec.structs.replace(file, kind=random.choice(list(FileKind)))
            if random.random() < 0.3
            else msgspec.structs.replace(file, deletion_vector=random.choice([None, VECTOR]))
            for file in group.added
        ]
        publish(msgspec.structs.replace(group, added=tuple(added)), read_version=versions)
        versions += 1
        live = stores.timeline.live_files(tenant_id, dataset.id, versions, None)
        if versions % 3 == 0:
            old = random.choice(live)
            publish(message(old.slot.bucket, removed=[old], rows=7), read_version=versions)
            versions += 1
    return [
        stores.timeline.live_files(tenant_id, dataset.id, version, None) for version in range(versions + 1)
    ]


def of_day(file: DataFile, day: str) -> DataFile:
    """The file, with the slot of its bucket in another partition."""
    slot = msgspec.structs.replace(file.slot, partition_path=f"day={day}")
    return msgspec.structs.replace(file, slot=slot, file_group=bucket_file_group(slot))


def test_partitions_are_found_and_their_groups_read_alone(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    # Paths that begin with another one, and characters before and after the slash.
    days = [
        "2024-01-01",
        "2024-01-01 1",
        "2024-01-01-1",
        "2024-01-01.1",
        "2024-01-010",
        "2024-01-01a",
        "1",
        "z",
    ]
    removed: list[DataFile] = []
    for version, day in enumerate(days):
        messages = []
        for bucket in (0, 1, 2):
            group = written_once(bucket, rows=2, files=2)
            added = tuple(of_day(file, day) for file in group.added)
            messages.append(
                msgspec.structs.replace(group, file_group=added[0].file_group, added=added, changelog=())
            )
        if day == "z":
            # The first partition is gone at the last version.
            gone = [
                file
                for file in stores.timeline.live_files(tenant_id, dataset.id, version, None)
                if file.slot.partition_path == f"day={days[0]}"
            ]
            by_group = groupby(
                sorted(gone, key=lambda file: (file.file_group, file.path)), key=lambda file: file.file_group
            )
            for name, files in by_group:
                paths = tuple(file.path for file in files)
                messages.append(CommitMessage(file_group=name, removed=paths, added=(), changelog=()))
            removed = gone
        commit = commit_of([running()], messages, read_version=version)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
    assert len(removed) == 6
    for version in range(len(days) + 1):
        expected = {f"day={day}" for day in days[:version]}
        live = stores.timeline.live_files(tenant_id, dataset.id, version, None)
        found = stores.timeline.partition_paths(tenant_id, dataset.id, version)
        # Those of later versions may be among them.
        assert len(found) == len(set(found))
        assert {file.slot.partition_path for file in live} <= set(found) <= {f"day={day}" for day in days}
        for wanted in ([], sorted(expected)[:1], sorted(expected)[::2], sorted(expected)[1:4]):
            groups = LiveGroups(
                timeline=stores.timeline,
                tenant_id=tenant_id,
                dataset_id=dataset.id,
                version=version,
                kinds=tuple(FileKind),
            ).of_partitions(found, wanted)
            of_wanted = [file for file in live if file.slot.partition_path in wanted]
            read = [file for batch in groups.batches() for file in batch]
            assert read == of_kinds(of_wanted, tuple(FileKind))
            for name in {file.file_group for file in of_wanted}:
                rest = [file for batch in groups.batches(name) for file in batch]
                assert rest == of_kinds(of_wanted, tuple(FileKind), name)


def of_kinds(files: list[DataFile], kinds: tuple[FileKind, ...], first: str = "") -> list[DataFile]:
    """In the order of their groups and paths."""
    found = [file for file in files if file.kind in kinds and file.file_group >= first]
    return sorted(found, key=lambda file: (file.file_group, file.path))


@pytest.mark.parametrize("kinds", KINDS)
def test_some_groups_are_whole_and_follow_each_other(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    history: list[list[DataFile]],
    kinds: tuple[FileKind, ...],
) -> None:
    for version, files in enumerate(history):
        for limit in (1, 2, 3, 8, 100):
            found: list[DataFile] = []
            first = ""
            more = True
            while more:
                part = stores.timeline.files_of_groups(
                    tenant_id, dataset.id, version, kinds, first, AFTER_ALL, limit
                )
                groups = {file.file_group for file in part.files}
                assert len(part.files) <= limit or len(groups) == 1
                found += part.files
                more = part.more
                first = part.files[-1].file_group + "\1" if part.files else AFTER_ALL
            assert found == of_kinds(files, kinds)


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_file_that_is_removed_meanwhile_is_found_once(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    commit = commit_of([running()], [written_once(1, rows=5, files=3)], read_version=0)
    assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
    live = stores.timeline.live_files(tenant_id, dataset.id, 1, None)
    removal = commit_of([running()], [message(1, removed=live, rows=7)], read_version=1)
    execute, removed = Connection.execute, []

    def executed(connection: Connection, statement: Any, *values: Any) -> Any:
        rows = execute(connection, statement, *values)
        if "removed_version" in str(statement) and not removed:
            # As late as possible before the next statement.
            removed.append(True)
            assert isinstance(stores.timeline.publish_one(tenant_id, removal), Published)
        return rows

    monkeypatch.setattr(Connection, "execute", executed)
    found = stores.timeline.files_of_groups(tenant_id, dataset.id, 1, tuple(FileKind), "", AFTER_ALL, limit)
    assert removed
    assert [file.path for file in found.files] == [file.path for file in live]


@pytest.mark.parametrize("kinds", KINDS)
def test_groups_have_numbers_and_rows(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    history: list[list[DataFile]],
    kinds: tuple[FileKind, ...],
) -> None:
    for version, files in enumerate(history):
        at = tenant_id, dataset.id, version, kinds
        names = [name for name, _ in groupby(of_kinds(files, kinds), key=lambda file: file.file_group)]
        found = [stores.timeline.group_at(*at, number) for number in range(len(names) + 2)]
        assert found == [*names, None, None]
        for name in ("", *names, AFTER_ALL):
            counted = [file for file in of_kinds(files, kinds, name) if file.kind.holds_rows]
            expected = sum(file.live_rows for file in counted)
            assert stores.timeline.rows_from(*at, name) == expected


def test_groups_are_read_as_they_are_needed(
    stores: Stores, tenant_id: str, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    version = len(history) - 1
    groups = LiveGroups(
        timeline=stores.timeline,
        tenant_id=tenant_id,
        dataset_id=dataset.id,
        version=version,
        kinds=tuple(FileKind),
    )
    names = sorted({file.file_group for file in history[version]})
    assert groups.name(len(names)) is None
    assert groups.name(3) == names[3]
    found = [file for batch in groups.batches(names[3], 3) for file in batch]
    assert found == of_kinds(history[version], tuple(FileKind), names[3])
    assert [groups.number(name) for name in names[3:]] == list(range(3, len(names)))
    assert list(groups.batches(AFTER_ALL)) == []


def test_versions_that_are_not_there_have_no_groups(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    kinds = tuple(FileKind)
    for wrong, error in ((new_id(), NotFound), (dataset.id, VersionExpired)):
        with pytest.raises(error):
            stores.timeline.files_of_groups(tenant_id, wrong, -1, kinds, "", AFTER_ALL, 5)
        with pytest.raises(error):
            stores.timeline.group_at(tenant_id, wrong, -1, kinds, 0)
        with pytest.raises(error):
            stores.timeline.partition_paths(tenant_id, wrong, -1)
        with pytest.raises(error):
            stores.timeline.rows_from(tenant_id, wrong, -1, kinds, "")
