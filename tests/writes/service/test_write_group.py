"""Groups of writes: what is kept after a lost race, who is dropped with whom, and that every row is accounted for."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from app.catalog.values import Dataset
from app.commit.commit_message import CommitMessage
from app.commit.write_options import WriteOptions
from app.commit.write_plan import WriteScope
from app.format.errors import HeadwaterError
from app.format.identifiers import new_id, new_instant_id
from app.format.instant import RowCounts
from app.format.operation import Operation
from app.format.quarantine import QuarantineFile
from app.format.rows.staging import StagedFile
from app.jobs.values import Job, JobKind, JobState, Progress, WriteRequest
from app.writes.service.group import Part, Plan, WriteGroup
from tests.support.lakehouse import definition

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DATASET = Dataset(
    id="d",
    tenant_id="t",
    definition=definition(),
    version=7,
    next_offset=0,
    created_at=NOW,
    committed_at=None,
)


def job(dataset_id: str = "d", *, transaction_id: str | None = None, **options: object) -> Job:
    request = WriteRequest(operation=Operation.UPSERT, options=WriteOptions(**options))  # type: ignore[arg-type]
    return Job(
        id=new_id(), tenant_id="t", dataset_id=dataset_id, instant_id=new_instant_id(), kind=JobKind.WRITE,
        state=JobState.RUNNING, request=request, progress=Progress(stage="claimed"), attempts=1, epoch=1,
        committed_version=None, first_offset=None, last_offset=None, rows=RowCounts(), error=None, created_at=NOW,
        started_at=None, finished_at=None, transaction_id=transaction_id,
    )  # fmt: skip


def part(
    *rows: int, scope: WriteScope | None = None, noop: bool = False, read: WriteScope | None = None
) -> Part:
    """A planned part of writes with so many rows each."""
    jobs = [job() for _ in rows]
    made = Part(dataset_id="d", jobs=jobs)
    for each, number in zip(jobs, rows, strict=True):
        made.staged[each.id] = (StagedFile(path="s", size_bytes=1, checksum="c", rows=number, batches=()),)
        made.quarantined[each.id] = ()
    made.plan = Plan(dataset=DATASET, version=7, scope=scope, read_scope=read, noop=noop)
    return made


def told(part: Part, **counts: RowCounts) -> None:
    """Messages of file groups, of write 0."""
    part.messages = {
        group: CommitMessage(file_group=group, counts={0: each}) for group, each in counts.items()
    }


def test_rows_of_all_groups_add_up_to_those_that_were_sent() -> None:
    made = part(5)
    told(made, a=RowCounts(inserted=2, updated=1), b=RowCounts(unchanged=1, deleted=1))
    commit = made.commit()
    assert (commit.read_version, [message.file_group for message in commit.messages]) == (7, ["a", "b"])
    assert commit.outcomes[0].counts == RowCounts(inserted=2, updated=1, unchanged=1, deleted=1)


@pytest.mark.parametrize("counts", [RowCounts(), RowCounts(inserted=4), RowCounts(inserted=5, deleted=1)])
def test_a_row_that_is_lost_or_doubled_is_never_committed(counts: RowCounts) -> None:
    made = part(5)
    told(made, a=counts)
    with pytest.raises(HeadwaterError, match="5 rows went in"):
        made.commit()


def test_what_a_scope_takes_out_comes_on_top() -> None:
    made = part(2, scope=WriteScope())
    told(made, a=RowCounts(inserted=1, unchanged=1, deleted=9))
    assert made.commit().outcomes[0].counts.deleted == 9
    told(made, a=RowCounts(inserted=1, deleted=1))
    with pytest.raises(HeadwaterError):
        made.commit()


def test_records_that_were_set_aside_are_counted_with_those_of_the_merge() -> None:
    made = part(3)
    made.quarantined[made.jobs[0].id] = (QuarantineFile(path="q", size_bytes=1, checksum="c", row_count=4),)
    refused = QuarantineFile(path="r", size_bytes=1, checksum="c", row_count=2)
    counts = {0: RowCounts(inserted=1)}
    made.messages = {"a": CommitMessage(file_group="a", counts=counts, quarantined={0: (refused,)})}
    [outcome] = made.commit().outcomes
    assert outcome.counts == RowCounts(inserted=1, quarantined=6)
    assert [file.path for file in outcome.quarantined] == ["q", "r"]


def test_a_write_that_is_left_alone_counts_its_rows_as_unchanged() -> None:
    made = part(3, noop=True, read=WriteScope())
    commit = made.commit()
    assert (commit.outcomes[0].counts, commit.messages) == (RowCounts(unchanged=3), ())
    # That the table held rows must still be so.
    assert commit.scope == WriteScope()


def test_after_a_conflict_only_the_changed_groups_are_merged_again() -> None:
    made = part(2)
    told(made, a=RowCounts(inserted=1), b=RowCounts(inserted=1))
    made.remerge(("b",), 9)
    assert (made.read_version, list(made.messages)) == (9, ["a"])


def test_after_a_conflict_in_its_scope_all_is_read_again() -> None:
    made = part(2, scope=WriteScope(), read=WriteScope())
    told(made, a=RowCounts(inserted=1), b=RowCounts(inserted=1))
    made.remerge(("b",), 9)
    assert (made.read_version, made.messages) == (None, {})


def test_the_writes_of_a_dataset_go_on_without_one_that_failed() -> None:
    jobs = [job(), job()]
    group = WriteGroup.of(jobs)
    [made] = group.parts
    told(made, a=RowCounts(inserted=1))
    before = (group.tag, group.attempt)
    group.drop(jobs[0])
    assert (group.jobs, made.messages) == ([jobs[1]], {})
    # The engine knows the group by its tag; files are named for a write that is still to be committed.
    assert group.tag == before[0]
    assert group.attempt != before[1]
    assert jobs[1].instant_id in group.attempt


def test_a_transaction_goes_down_as_a_whole() -> None:
    jobs = [job(dataset, transaction_id="t") for dataset in "abc"]
    group = WriteGroup.of(jobs)
    assert [each.dataset_id for each in group.parts] == ["a", "b", "c"]
    group.drop(jobs[1])
    assert group.jobs == []


def test_an_expected_version_goes_into_the_commit() -> None:
    made = part(1)
    made.jobs = [msgspec.structs.replace(job(expected_version=4), id=made.jobs[0].id)]
    told(made, a=RowCounts(inserted=1))
    assert made.commit().expected_version == 4
