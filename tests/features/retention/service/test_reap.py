"""The reaper keeps every file that a commit refers to, or that a commit, a job or a body may still come to refer to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from app.features.retention.service.reaper import Reap
from app.features.retention.values import ReapReport
from app.infra.errors import StorageUnavailable, Unavailable
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id, new_instant_id, random_hex
from app.kernel.format.file_group import Slot
from app.kernel.format.paths import (
    Folder,
    attempt_name,
    dataset_prefix,
    decoded_prefix,
    export_folder,
    marker_path,
    merged_changelog_path,
    quarantine_prefix,
    read_folder,
    staged_path,
    timeline_path,
    upload_path,
    written_path,
)
from tests.support.threads import together

TENANT: Final = "t"
DATASET: Final = "d"
PREFIX: Final = dataset_prefix(TENANT, DATASET)
SLOT: Final = Slot(partition_path="day=2026-01-01", bucket=0)
JOB: Final = new_id()


def data_path(instant_id: str) -> str:
    return written_path(PREFIX, Folder.DATA, SLOT, attempt_name(instant_id, 1, 1), random_hex(4))


@dataclass
class References:
    """The references in the catalogue. `between` runs once: after the first of the reaper's two queries."""

    deleted: bool = False
    instants: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    between: Callable[[], None] | None = None
    purged: list[tuple[str, float]] = field(default_factory=list)
    claim: int | None = None
    held: bool = False

    def deletions_held(self) -> bool:
        return self.held

    def tenants(self) -> Sequence[str]:
        return [TENANT]

    def datasets(self, tenant_id: str) -> Sequence[tuple[str, bool]]:
        return [(DATASET, self.deleted)]

    def expire_results(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        self.purged.append(("results", older_than_seconds))

    def expire_uploads(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        self.purged.append(("uploads", older_than_seconds))

    def expire_replaced(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        self.purged.append(("replaced", older_than_seconds))

    def unfinished(self, tenant_id: str, dataset_id: str) -> tuple[set[str], set[str], int | None]:
        found = set(self.instants), set(self.jobs), self.claim
        self._answered()
        return found

    def referenced(self, tenant_id: str, dataset_id: str, paths: Sequence[str]) -> set[str]:
        found = self.paths & set(paths)
        self._answered()
        return found

    def _answered(self) -> None:
        between, self.between = self.between, None
        if between is not None:
            between()


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def put(storage: LocalStorage, tmp_path: Path) -> Callable[..., None]:
    """Writes a file that was last changed this number of seconds ago."""

    def run(path: str, age_seconds: float = 3600) -> None:
        with storage.create(path) as file:
            file.write(b"1")
        then = time.time() - age_seconds
        os.utime(tmp_path / path, (then, then))

    return run


def left(storage: LocalStorage, references: References, grace_seconds: float = 60) -> set[str]:
    """The files that are there after one round."""
    reap = Reap(
        references=references,
        storage=storage,
        grace_seconds=grace_seconds,
        upload_seconds_max=7,
        result_seconds_max=8,
    )
    before = {path for path, _ in storage.list("")}
    deleted = reap.run()
    after = {path for path, _ in storage.list("")}
    assert deleted == len(before) - len(after)
    return after


def test_reaper_deletes_what_nothing_refers_to(storage: LocalStorage, put: Callable[..., None]) -> None:
    kept, orphan = data_path(new_instant_id()), data_path(new_instant_id())
    put(kept)
    put(orphan)
    references = References(paths={kept})
    assert left(storage, references) == {kept}
    assert references.purged == [("uploads", 7), ("results", 8), ("replaced", 60)]


def test_reaper_keeps_files_that_are_published_between_its_two_queries(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    """What is unfinished is queried first: what has ended by then has its files among the referenced ones."""
    instant_id = new_instant_id()
    path = data_path(instant_id)
    put(path)
    references = References(instants={instant_id})

    def publish() -> None:
        references.instants.clear()
        references.paths.add(path)

    references.between = publish
    assert left(storage, references) == {path}
    assert references.between is None, "the commit came between"


@pytest.mark.parametrize(
    "folder", [Folder.DATA, Folder.CHANGES, Folder.DELETES, Folder.INDEX, Folder.QUARANTINE]
)
def test_reaper_keeps_files_of_open_instants_however_old(
    storage: LocalStorage, put: Callable[..., None], folder: Folder
) -> None:
    running, ended = new_instant_id(), new_instant_id()
    kept, orphan = (
        written_path(PREFIX, folder, SLOT, attempt_name(each, 3, 2), random_hex(4))
        for each in (running, ended)
    )
    for path in (kept, orphan):
        put(path, 10_000_000)
    assert left(storage, References(instants={running})) == {kept}


@pytest.mark.parametrize(
    "path",
    [
        staged_path(PREFIX, JOB),
        f"{decoded_prefix(PREFIX, JOB, 1)}-00001.arrow",
        f"{quarantine_prefix(PREFIX, JOB, 1)}-00001.parquet",
        f"{export_folder(PREFIX, new_id(), 1, JOB, 1)}/part-1.csv",
        f"{read_folder(PREFIX, JOB, 1)}/part-1.csv",
        timeline_path(PREFIX, new_instant_id(), new_instant_id(), JOB, 1),
    ],
    ids=["staged", "decoded", "quarantine", "export", "result", "archive"],
)
def test_reaper_keeps_files_of_unfinished_jobs_however_old(
    storage: LocalStorage, put: Callable[..., None], path: str
) -> None:
    put(path, 10_000_000)
    assert left(storage, References(jobs={JOB})) == {path}
    assert left(storage, References()) == set()


def test_reaper_keeps_merged_changelog_files_that_may_still_be_listed(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    """Those of the claim that runs, however old they are; another claim has ended."""
    ours, lost = (merged_changelog_path(PREFIX, epoch, random_hex(8)) for epoch in (12, 1))
    put(ours, 10_000_000)
    put(lost, 10_000_000)
    assert left(storage, References(claim=12)) == {ours}
    assert left(storage, References()) == set()


def test_reaper_keeps_young_files(storage: LocalStorage, put: Callable[..., None]) -> None:
    """A body or an upload that is still arriving has no row yet."""
    young, old = upload_path(PREFIX, new_id()), upload_path(PREFIX, new_id())
    put(young, 10)
    put(old, 100)
    assert left(storage, References(), grace_seconds=60) == {young}
    assert left(storage, References(), grace_seconds=5) == set()


def test_reaper_leaves_markers_to_live_datasets_only(storage: LocalStorage, put: Callable[..., None]) -> None:
    marker, data = marker_path(PREFIX, SLOT.partition_path), data_path(new_instant_id())
    put(marker)
    put(data)
    assert left(storage, References()) == {marker}
    assert left(storage, References(deleted=True)) == set()


def test_reaper_deletes_all_files_of_a_deleted_dataset_once_its_jobs_have_ended(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    listed, written = data_path(new_instant_id()), data_path(running := new_instant_id())
    put(listed)
    put(written)
    references = References(deleted=True, paths={listed}, instants={running})
    assert left(storage, references) == {written}
    references.instants.clear()
    assert left(storage, references) == set()


def test_dataset_whose_files_cannot_be_listed_does_not_stop_the_others(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    class Several(References):
        def tenants(self) -> Sequence[str]:
            return ["gone", TENANT]

        def datasets(self, tenant_id: str) -> Sequence[tuple[str, bool]]:
            if tenant_id == "gone":
                raise Unavailable("its datasets cannot be read")
            return [("broken", False), (DATASET, False)]

        def unfinished(self, tenant_id: str, dataset_id: str) -> tuple[set[str], set[str], int | None]:
            if dataset_id == "broken":
                raise Unavailable("its jobs cannot be read")
            return super().unfinished(tenant_id, dataset_id)

    broken = written_path(
        dataset_prefix(TENANT, "broken"), Folder.DATA, SLOT, attempt_name("i", 1, 1), random_hex(4)
    )
    put(broken)
    put(data_path("ended"))
    assert left(storage, Several()) == {broken}


def test_reaper_deletes_nothing_while_a_backup_runs(put: Callable[..., None], storage: LocalStorage) -> None:
    path = data_path(new_instant_id())
    put(path)
    assert left(storage, References(held=True)) == {path}
    assert left(storage, References()) == set()


def test_two_reapers_at_the_same_time_delete_the_same_orphans_and_nothing_else(
    storage: LocalStorage, put: Callable[..., None], tmp_path: Path
) -> None:
    kept, orphans = data_path(new_instant_id()), [data_path(new_instant_id()) for _ in range(20)]
    for path in (kept, *orphans):
        put(path)
    both = threading.Barrier(2)

    class Together(LocalStorage):
        """Deletes once both have chosen what to delete."""

        def delete(self, paths: Iterable[str]) -> None:
            both.wait(10)
            super().delete(paths)

    def reap() -> int:
        references, own = References(paths={kept}), Together(tmp_path)
        return Reap(
            references=references, storage=own, grace_seconds=60, upload_seconds_max=7, result_seconds_max=8
        ).run()

    assert together([reap, reap]) == [len(orphans), len(orphans)]
    assert {path for path, _ in storage.list("")} == {kept}


def test_backup_that_begins_while_the_reaper_checks_is_respected(
    put: Callable[..., None], storage: LocalStorage
) -> None:
    """The rows that it contains may refer to a file that is not referenced a moment later."""
    path = data_path(new_instant_id())
    put(path)
    references = References(paths={path})

    def backup_and_expire() -> None:
        references.held = True
        references.paths.clear()

    references.between = backup_and_expire
    assert left(storage, references) == {path}


class Parts:
    """Unfinished uploads; aborts raise `error`, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.requests: list[float] = []

    def abort(self, older_than_seconds: float) -> int:
        self.requests.append(older_than_seconds)
        if self.error is not None:
            raise self.error
        return 3


@pytest.mark.parametrize("error", [None, StorageUnavailable("AccessDenied")], ids=["aborted", "refused"])
def test_uploads_of_processes_that_ended_are_aborted_and_a_storage_that_refuses_stops_nothing(
    storage: LocalStorage, put: Callable[..., None], error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    put(data_path(new_instant_id()))
    parts = Parts(error)
    reap = Reap(
        references=References(),
        storage=storage,
        grace_seconds=60,
        upload_seconds_max=7,
        result_seconds_max=8,
        parts=parts,  # type: ignore[arg-type]
    )
    with caplog.at_level("INFO"):
        assert reap.run() == 1
    assert parts.requests == [86_400]
    assert ("AccessDenied" in caplog.text) is (error is not None)
    assert ("aborted 3 uploads" in caplog.text) is (error is None)


def test_files_of_a_deleted_dataset_are_deleted_at_once_on_request_and_those_of_others_stay(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    def reap(references: References, seconds_max: float = 30) -> ReapReport:
        whole = Reap(
            references=references,
            storage=storage,
            grace_seconds=3600,
            upload_seconds_max=7,
            result_seconds_max=8,
        )
        return whole.deleted_datasets(seconds_max)

    running = new_instant_id()
    young, written = data_path(new_instant_id()), data_path(running)
    put(young, age_seconds=1)
    put(written, age_seconds=1)
    assert reap(References()) == ReapReport(files=0, complete=True)
    assert reap(References(deleted=True, held=True)) == ReapReport(files=0, complete=True)
    assert reap(References(deleted=True), seconds_max=-1) == ReapReport(files=0, complete=False)
    assert reap(References(deleted=True, instants={running})) == ReapReport(files=1, complete=True)
    assert {path for path, _ in storage.list("")} == {written}


def test_copies_of_deleted_files_are_removed_and_those_of_others_stay(
    storage: LocalStorage, put: Callable[..., None]
) -> None:
    orphan, used = data_path(new_instant_id()), data_path(new_instant_id())
    put(orphan)
    put(used)
    removed: list[str] = []
    reap = Reap(
        references=References(paths={used}),
        storage=storage,
        grace_seconds=60,
        upload_seconds_max=7,
        result_seconds_max=8,
        remove_copies=removed.extend,
    )
    assert reap.run() == 1
    assert removed == [orphan]
