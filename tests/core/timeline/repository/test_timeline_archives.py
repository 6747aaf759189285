"""Archives of instants: what leaves the catalogue, and that the timeline is read on into them without a seam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from sqlalchemy import Uuid, bindparam, insert, select, text
from sqlalchemy.dialects import postgresql

from app.core.catalog.values import Dataset
from app.core.jobs.tables import instants
from app.core.jobs.values import Claim, Job
from app.core.timeline.archives import TimelineArchive
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.instants import EVERY_INSTANT, InstantFilter, InstantRecord
from app.core.timeline.repository.archives import TimelineArchiveStore, count_archivable
from app.core.timeline.repository.instant_rows import OPEN_INSTANT
from app.core.timeline.service import read_timeline
from app.core.timeline.service.read_timeline import ReadTimeline
from app.core.timeline.values import Fenced
from app.features.retention.repository.references import ReferenceStore
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.instant import Action, InstantState, RowCounts
from tests.support.lakehouse import claim_of, commit_of, message
from tests.support.store_fixtures import Stores


@pytest.fixture
def archives(stores: Stores) -> TimelineArchiveStore:
    return TimelineArchiveStore(stores.database)


@pytest.fixture
def timeline_files(tmp_path: Path) -> TimelineFileStore:
    storage = LocalStorage(tmp_path)
    return TimelineFileStore(storage, ParquetReader(storage))


@pytest.fixture
def reading(
    stores: Stores, archives: TimelineArchiveStore, timeline_files: TimelineFileStore
) -> ReadTimeline:
    return ReadTimeline(timeline=stores.timeline, archives=archives, files=timeline_files)


def add(
    stores: Stores, dataset: Dataset, count: int, more: Mapping[int, dict[str, Any]] = MappingProxyType({})
) -> list[str]:
    """Instants of before, without jobs, of which some are otherwise; returns their ids in order."""
    ids = sorted(f"{number:020}-{number:06x}" for number in range(1, count + 1))
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            insert(instants),
            [
                {
                    "dataset_id": dataset.id, "id": each, "action": Action.COMMIT.value, "operation": "upsert",
                    "state": InstantState.COMPLETED.value, "counts": RowCounts(inserted=number),
                    "metadata": None,
                }
                | dict(more.get(number, {}))
                for number, each in enumerate(ids)
            ],
        )  # fmt: skip
    return ids


def walk(
    reading: ReadTimeline, dataset: Dataset, page_size: int, wanted: InstantFilter = EVERY_INSTANT
) -> list[InstantRecord]:
    """All pages."""
    found: list[InstantRecord] = []
    token = None
    while True:
        page = reading.page(dataset, page_size=page_size, page_token=token, instant_filter=wanted)
        assert len(page.items) <= page_size
        found += page.items
        token = page.next_token
        if token is None:
            return found


Archive = Callable[[int, int], list[InstantRecord]]


@pytest.fixture
def archive(
    dataset: Dataset, archives: TimelineArchiveStore, timeline_files: TimelineFileStore,
    running: Callable[[], Job],
) -> Archive:  # fmt: skip
    """Archives at most a number of instants beyond a number of the latest."""
    job = running()

    def run(keep: int, limit: int) -> list[InstantRecord]:
        records = archives.oldest(dataset.tenant_id, dataset.id, keep, limit)
        if records:
            made = timeline_files.write(f"timeline/{records[0].id}", records)
            ids = [record.id for record in records]
            assert archives.archive(dataset.tenant_id, dataset.id, claim_of(job), made, ids)
        return records

    return run


def in_catalogue(stores: Stores, dataset: Dataset) -> list[str]:
    query = select(instants.c.id).where(instants.c.dataset_id == dataset.id).order_by(instants.c.id)
    with stores.database.tenant(dataset.tenant_id) as connection:
        return list(connection.execute(query).scalars())


def test_timeline_is_equal_however_much_is_archived(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archive: Archive
) -> None:
    add(stores, dataset, 40, {3: {"metadata": {"run": "7"}}})
    whole = stores.timeline.instants(dataset.tenant_id, dataset.id, page_size=99, page_token=None).items
    assert len(whole) == 41
    for keep, limit in ((30, 100), (25, 2), (10, 9), (2, 5)):
        archive(keep, limit)
        for page_size in (3, 7, 40, 41):
            assert walk(reading, dataset, page_size) == whole, (keep, page_size)
    assert len(in_catalogue(stores, dataset)) == 14
    assert [entry.metadata for entry in whole if entry.metadata] == [{"run": "7"}]
    # One with everything that an entry may have is among them.
    assert whole[0].job_id is not None


def test_filters_of_archives_equal_those_of_the_catalog(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archive: Archive
) -> None:
    cleaned, undone = {"action": "clean"}, {"state": "rolled_back"}
    add(stores, dataset, 10, {2: cleaned, 4: undone, 7: cleaned})
    middle = walk(reading, dataset, 99)[5].requested_at
    filters = [
        InstantFilter(actions=(Action.CLEAN,)),
        InstantFilter(states=(InstantState.ROLLED_BACK,)),
        InstantFilter(since=middle),
        InstantFilter(until=middle, actions=(Action.COMMIT,)),
        InstantFilter(actions=()),
        InstantFilter(from_version=3, to_version=6),
        InstantFilter(from_version=5, to_version=5),
        InstantFilter(to_version=2),
    ]
    before = [walk(reading, dataset, 99, wanted) for wanted in filters]
    assert [len(each) for each in before[:2]] == [2, 1]
    archive(6, 100)
    archive(2, 100)
    for page_size in (2, 9):
        assert [walk(reading, dataset, page_size, wanted) for wanted in filters] == before


def test_unfinished_instant_and_its_successors_are_not_archived(
    stores: Stores, dataset: Dataset, archives: TimelineArchiveStore, archive: Archive
) -> None:
    ids = add(stores, dataset, 9, {4: {"state": "inflight"}})
    with stores.database.tenant(dataset.tenant_id) as connection:
        assert count_archivable(connection, dataset.id, 0, 100) == 4
        assert count_archivable(connection, dataset.id, 0, 3) == 3
        assert count_archivable(connection, dataset.id, 7, 100) == 3
        assert count_archivable(connection, dataset.id, 100, 100) == 0
    assert [record.id for record in archive(0, 100)] == ids[:4]
    assert archive(0, 100) == []


def test_late_instant_with_an_earlier_id_is_listed_in_order(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archive: Archive
) -> None:
    """The clocks of the processes that give ids differ."""
    ids = add(stores, dataset, 20)
    archive(5, 100)
    late = [f"{ids[3]}0", f"{ids[12]}0"]
    for each in late:
        with stores.database.tenant(dataset.tenant_id) as connection:
            connection.execute(
                insert(instants).values(
                    dataset_id=dataset.id, id=each, action="commit", operation="upsert", state="completed",
                    counts=RowCounts(),
                )
            )  # fmt: skip
    expected = sorted([*ids, *late], reverse=True)
    for keep in (5, 3, 1):
        for page_size in (2, 5, 30):
            assert [each.id for each in walk(reading, dataset, page_size)][1:] == expected, page_size
        archive(keep, 100)
    assert len(in_catalogue(stores, dataset)) == 1


def test_instant_is_listed_once_while_it_is_archived(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archive: Archive
) -> None:
    add(stores, dataset, 12)
    whole = walk(reading, dataset, 99)

    class Between:
        """Archives between a look into the catalogue and one into the archives."""

        def instants(self, *place: str, **more: Any) -> Any:
            page = stores.timeline.instants(*place, **more)
            archive(4, 3)
            return page

    racing = replace(reading, timeline=Between())
    for page_size in (5, 2, 20):
        assert walk(racing, dataset, page_size) == whole


def test_page_reads_a_bounded_number_of_archives(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = add(stores, dataset, 30)
    while archive(1, 3):
        pass
    monkeypatch.setattr(read_timeline, "ARCHIVES_MAX", 2)
    assert walk(reading, dataset, 5, InstantFilter(actions=())) == []
    first = reading.page(dataset, page_size=5, page_token=None, instant_filter=InstantFilter(actions=()))
    assert (first.items, first.next_token is None) == ([], False)
    for page_size in (2, 7, 40):
        assert [each.id for each in walk(reading, dataset, page_size)][1:] == ids[::-1]


def test_only_the_holder_of_the_clean_archives_and_each_instant_once(
    stores: Stores, dataset: Dataset, archives: TimelineArchiveStore, archive: Archive,
    timeline_files: TimelineFileStore,
) -> None:  # fmt: skip
    ids = add(stores, dataset, 4)
    made = TimelineArchive(
        path="x", first_instant=ids[0], last_instant=ids[2], row_count=3, size_bytes=1, checksum=""
    )
    foreign = Claim(job_id=new_id(), epoch=1)
    assert not archives.archive(dataset.tenant_id, dataset.id, foreign, made, ids[:3])
    assert in_catalogue(stores, dataset)[:4] == ids
    archive(3, 2)
    [claimed_job] = stores.jobs.find(dataset.tenant_id, [_claimed(stores, dataset)])
    # Of three, two have gone.
    assert not archives.archive(dataset.tenant_id, dataset.id, claim_of(claimed_job), made, ids[:3])
    assert in_catalogue(stores, dataset)[:2] == ids[2:]
    assert [each.path for each in archives.before(dataset.tenant_id, dataset.id, None, 9)] == [
        f"timeline/{ids[0]}"
    ]
    references = ReferenceStore(stores.database)
    found = references.referenced(dataset.tenant_id, dataset.id, ["x", f"timeline/{ids[0]}"])
    assert found == {f"timeline/{ids[0]}"}


def _claimed(stores: Stores, dataset: Dataset) -> str:
    page = stores.timeline.instants(dataset.tenant_id, dataset.id, page_size=1, page_token=None)
    job_id: str = page.items[0].job_id
    return job_id


def test_jobs_outlive_their_archived_instants(
    stores: Stores, dataset: Dataset, reading: ReadTimeline, archives: TimelineArchiveStore,
    timeline_files: TimelineFileStore, running: Callable[[], Job],
) -> None:  # fmt: skip
    """And who lost the answer to its commit, and requests it only now, changes nothing by publishing again."""
    job = running()
    commit = commit_of([job], [message()])
    stores.timeline.publish_one(dataset.tenant_id, commit)
    holder = running()
    records = archives.oldest(dataset.tenant_id, dataset.id, 0, 9)
    assert [record.job_id for record in records] == [job.id]
    made = timeline_files.write("timeline/1", records)
    assert archives.archive(dataset.tenant_id, dataset.id, claim_of(holder), made, [records[0].id])
    assert stores.jobs.get(dataset.tenant_id, job.id).committed_version == 1
    assert walk(reading, dataset, 1)[-1:] == records
    assert stores.timeline.outcome_of_one(dataset.tenant_id, dataset.id, [job.id]) is None
    assert stores.timeline.publish_one(dataset.tenant_id, commit) == Fenced(valid_ids=frozenset())


def test_damaged_or_missing_archive_raises_corrupt_file(
    stores: Stores, dataset: Dataset, archive: Archive, reading: ReadTimeline, tmp_path: Path,
    archives: TimelineArchiveStore,
) -> None:  # fmt: skip
    add(stores, dataset, 5)
    archive(1, 100)
    [made] = archives.before(dataset.tenant_id, dataset.id, None, 9)
    content = (tmp_path / made.path).read_bytes()
    (tmp_path / made.path).write_bytes(content[:-1] + b"?")
    with pytest.raises(CorruptFile):
        walk(reading, dataset, 9)
    (tmp_path / made.path).unlink()
    with pytest.raises(CorruptFile):
        walk(reading, dataset, 9)


def test_invalid_page_token_is_refused(reading: ReadTimeline, dataset: Dataset) -> None:
    with pytest.raises(InvalidRequest):
        reading.page(dataset, page_size=9, page_token="§")


def test_archivable_instants_are_found_by_index(stores: Stores, dataset: Dataset) -> None:
    """The open ones, and those of one job, are found by an index."""
    of_old = text(
        "INSERT INTO instants (dataset_id, id, action, operation, state, counts) "
        "SELECT :dataset, lpad(n::text, 20, '0') || '-000000', 'commit', 'upsert', 'completed', '{}' "
        "FROM generate_series(1, 12000) AS n"
    )
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(of_old.bindparams(bindparam("dataset", dataset.id, type_=Uuid(as_uuid=False))))
        for query in (
            select(instants.c.id).where(instants.c.dataset_id == dataset.id, OPEN_INSTANT),
            select(instants.c.id).where(instants.c.dataset_id == dataset.id).order_by(instants.c.id.desc()),
            select(instants.c.id).where(instants.c.job_id.in_([dataset.id]), instants.c.state == "requested"),
        ):
            statement = query.limit(10).compile(
                dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}
            )
            plan = "\n".join(connection.execute(text(f"EXPLAIN {statement}")).scalars())
            assert "Index" in plan, plan
            assert "Seq Scan" not in plan, plan
