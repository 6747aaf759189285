"""The states of a group of writes: what each transition keeps, and that every row is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.write import RestoreTarget
from app.core.jobs.values import Job
from app.core.timeline.values import Advance, Fenced, Overtaken, Published
from app.features.writes.attempt import (
    Basis,
    Claimed,
    Committed,
    Decoded,
    Merged,
    Part,
    Refused,
    Replan,
    WriteGroup,
    basis_of,
)
from app.infra.errors import StorageFull
from app.infra.files.errors import CorruptFile
from app.kernel.commit.commit_message import CommitMessage, KeyConflict
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.write_options import WriteOptions
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from tests.support.attempts import (
    DATASET,
    EVOLVED,
    HEAD,
    RESTORED,
    claimed,
    decoded,
    merged,
    message,
    planned,
    staged,
    write_job,
    written,
)

ONE: Final = RowCounts(inserted=1)
NEXT_SCHEMA: Final = replace(DATASET, definition=EVOLVED)


def of_rows(*rows: int) -> Decoded:
    """Writes with this number of rows each."""
    return decoded(*(written(write_job(), each) for each in rows))


# Claimed


def test_part_is_decoded_once_each_of_its_writes_is_read() -> None:
    jobs = [write_job(), write_job()]
    first, second = (written(job) for job in jobs)
    part = claimed(*jobs)
    assert part.unread is jobs[0]
    between = part.read(first)
    assert isinstance(between, Claimed)
    assert between.unread is jobs[1]
    assert between.read(second) == decoded(first, second)
    assert part.inputs == (), "a state never changes"


@pytest.mark.parametrize(
    ("read", "held", "after"),
    [
        (0, "abc", Claimed),
        (1, "ac", Claimed),
        (1, "a", Decoded),
        (2, "ab", Decoded),
        (2, "c", Claimed),
        (1, "", type(None)),
    ],
)
def test_claimed_part_continues_with_the_writes_that_are_held(read: int, held: str, after: type) -> None:
    jobs = {name: replace(write_job(), id=name) for name in "abc"}
    part: Claimed | Decoded = claimed(*jobs.values())
    for job in [*jobs.values()][:read]:
        assert isinstance(part, Claimed)
        part = part.read(written(job))
    assert isinstance(part, Claimed)
    left = part.retained(set(held))
    assert type(left) is after
    if left is not None:
        assert [job.id for job in left.jobs] == list(held)
        assert [made.job.id for made in left.inputs] == [name for name in "abc"[:read] if name in held]


# Decoded, Replan → Basis

KEPT: Final = {"a": message("a", ONE)}


def replan(before: Decoded, schema_id: int = 1) -> Replan:
    return Replan(decoded=before, version=5, schema_id=schema_id, messages=KEPT)


PLAIN: Final = of_rows(1)
EVOLVING: Final = decoded(written(write_job(), definition=EVOLVED))
RESTORING: Final = decoded(written(write_job(operation=Operation.SNAPSHOT), restored_version=RESTORED))


@pytest.mark.parametrize(
    ("part", "found", "expected"),
    [
        pytest.param(PLAIN, DATASET, Basis(decoded=PLAIN, dataset=DATASET, version=HEAD), id="at the head"),
        pytest.param(
            replan(PLAIN),
            DATASET,
            Basis(decoded=PLAIN, dataset=DATASET, version=5, messages=KEPT),
            id="after a conflict where the kept messages are valid",
        ),
        pytest.param(
            replan(PLAIN),
            NEXT_SCHEMA,
            Basis(decoded=PLAIN, dataset=NEXT_SCHEMA, version=HEAD),
            id="messages of an earlier schema are made again",
        ),
        pytest.param(
            EVOLVING,
            DATASET,
            Basis(decoded=EVOLVING, dataset=NEXT_SCHEMA, version=HEAD),
            id="under the schema that the write brings",
        ),
        pytest.param(
            replan(EVOLVING, schema_id=2),
            DATASET,
            Basis(decoded=EVOLVING, dataset=NEXT_SCHEMA, version=5, messages=KEPT),
            id="messages under the schema that the write brings are kept",
        ),
        pytest.param(
            EVOLVING,
            NEXT_SCHEMA,
            claimed(*EVOLVING.jobs),
            id="input is read again under a schema that another write brought first",
        ),
        pytest.param(
            replan(EVOLVING, schema_id=2),
            NEXT_SCHEMA,
            claimed(*EVOLVING.jobs),
            id="also after a conflict",
        ),
        pytest.param(
            RESTORING,
            DATASET,
            Basis(decoded=RESTORING, dataset=DATASET, version=RESTORED.read_version),
            id="a restore where it was compared with the table",
        ),
    ],
)
def test_plan_is_based_on_the_head_or_on_the_version_of_valid_messages(
    part: Decoded | Replan, found: Dataset, expected: Basis | Claimed
) -> None:
    assert basis_of(part, found) == expected


@pytest.mark.parametrize(("part", "after"), [(PLAIN, PLAIN), (RESTORING, claimed(*RESTORING.jobs))])
def test_only_a_restore_is_read_again_when_its_version_expires(
    part: Decoded, after: Decoded | Claimed
) -> None:
    assert part.from_the_head() == after


# Planned → Merged, Refused


def test_messages_of_earlier_tasks_and_new_ones_are_merged() -> None:
    part = planned(of_rows(2), [message("a", ONE)])
    after = part.merged([message("b", ONE)])
    assert isinstance(after, Merged)
    assert sorted(after.messages) == ["a", "b"]
    assert after.plan is part.plan


def conflict(job: int, *blamed: int, **more: str) -> KeyConflict:
    return KeyConflict(job=job, other_jobs=blamed, keys=({"id": job},), count=1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("conflicts", "refused"),
    [
        ([conflict(0, -1)], [0]),
        ([conflict(1, 0)], [1]),
        # The second may succeed without the first.
        ([conflict(0, -1), conflict(1, 0)], [0]),
        ([conflict(2, -1), conflict(1, -1)], [1, 2]),
    ],
)
def test_writes_whose_keys_are_live_are_refused(conflicts: list[KeyConflict], refused: list[int]) -> None:
    part = planned(of_rows(1, 1, 1))
    after = part.merged([CommitMessage(file_group="a", conflicts=tuple(conflicts))])
    assert isinstance(after, Refused)
    assert [job for job, _ in after.errors] == [part.jobs[number] for number in refused]
    assert {error.code for _, error in after.errors} == {"duplicate-key"}
    assert [error.facts["keys"] for _, error in after.errors] == [[{"id": number}] for number in refused]


def test_conflict_in_a_message_from_before_refuses_its_write() -> None:
    """Of a group that was merged before the round in which another one failed."""
    part = planned(of_rows(1), [CommitMessage(file_group="a", conflicts=(conflict(0, -1),))])
    assert isinstance(part.merged([message("b")]), Refused)


def test_write_whose_sum_overflows_is_refused_and_names_the_field() -> None:
    after = planned(of_rows(1)).merged(
        [CommitMessage(file_group="a", conflicts=(conflict(0, -1, overflow_field="total"),))]
    )
    assert isinstance(after, Refused)
    [(_, error)] = after.errors
    assert (error.code, error.facts["field"]) == ("aggregate-overflow", "total")


def test_refusal_names_ten_keys_at_most() -> None:
    many = KeyConflict(job=0, other_jobs=(-1,), keys=tuple({"id": number} for number in range(12)), count=40)
    after = planned(of_rows(1)).merged([CommitMessage(file_group="a", conflicts=(many,))])
    assert isinstance(after, Refused)
    [(_, error)] = after.errors
    assert (len(error.facts["keys"]), error.facts["duplicates"]) == (10, 40)


# Merged → commit


def test_rows_of_all_groups_add_up_to_those_that_were_sent() -> None:
    commit = merged(
        of_rows(7),
        message("b", RowCounts(unchanged=1, late=2, deleted=1)),
        message("a", RowCounts(inserted=2, updated=1)),
    ).commit()
    assert (commit.read_version, [message.file_group for message in commit.messages]) == (HEAD, ["a", "b"])
    assert commit.outcomes[0].counts == RowCounts(inserted=2, updated=1, unchanged=1, late=2, deleted=1)


@pytest.mark.parametrize("counts", [RowCounts(), RowCounts(inserted=4), RowCounts(inserted=5, deleted=1)])
def test_row_that_is_lost_or_doubled_is_never_committed(counts: RowCounts) -> None:
    with pytest.raises(HeadwaterError, match="5 rows went in"):
        merged(of_rows(5), message("a", counts)).commit()


def test_rows_removed_by_a_scope_are_counted_separately() -> None:
    before, scope = of_rows(2), WriteScope()
    commit = merged(before, message("a", RowCounts(inserted=1, unchanged=1, deleted=9)), scope=scope).commit()
    assert commit.outcomes[0].counts.deleted == 9
    with pytest.raises(HeadwaterError):
        merged(before, message("a", RowCounts(inserted=1, deleted=1)), scope=scope).commit()


def test_quarantined_records_of_the_input_are_counted_with_those_of_the_merge() -> None:
    found = QuarantineFile(path="q", size_bytes=1, checksum="c", row_count=4)
    refused = QuarantineFile(path="r", size_bytes=1, checksum="c", row_count=2)
    before = decoded(written(write_job(), 3, quarantine_files=(found,)))
    [outcome] = merged(before, message("a", ONE, quarantined={0: (refused,)})).commit().outcomes
    assert outcome.counts == RowCounts(inserted=1, quarantined=6)
    assert [file.path for file in outcome.quarantine_files] == ["q", "r"]


def test_no_op_counts_its_rows_as_unchanged_and_leaves_the_schema() -> None:
    before = decoded(written(write_job(), 3, definition=EVOLVED))
    commit = merged(before, dataset=NEXT_SCHEMA, noop=True, read_scope=WriteScope()).commit()
    assert (commit.outcomes[0].counts, commit.messages) == (RowCounts(unchanged=3), ())
    assert (commit.definition, commit.schema_id) == (None, 1)
    # That the table held rows must still be so.
    assert commit.scope == WriteScope()


def test_commit_that_merges_a_schema_is_planned_on_the_previous_one() -> None:
    before = decoded(written(write_job(), 1, definition=EVOLVED))
    commit = merged(before, message("a", ONE), dataset=NEXT_SCHEMA).commit()
    assert (commit.definition, commit.schema_id) == (EVOLVED, 1)


def test_expected_version_goes_into_the_commit() -> None:
    before = decoded(written(write_job(options=WriteOptions(expected_version=4))))
    assert merged(before, message("a", ONE)).commit().expected_version == 4


def test_commit_moves_the_positions_that_its_input_reaches() -> None:
    advance = Advance(dataset_id="source", name="view", since=3, next_since=9, schema_id=1)
    before = decoded(written(write_job(derived=True), 1, advances=(advance,)))
    assert merged(before, message("a", ONE)).commit().advances == (advance,)


def test_commit_of_a_restore_has_its_result() -> None:
    job = write_job(operation=Operation.SNAPSHOT, restores=RestoreTarget(version=1))
    commit = merged(decoded(written(job, restored_version=RESTORED)), message("a", ONE)).commit()
    assert (commit.action, commit.outcomes[0].result) == (Action.RESTORE, {"to_version": 1})


# Merged → Replan


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(
            merged(PLAIN, message("a", ONE), message("b")),
            Replan(decoded=PLAIN, version=9, schema_id=1, messages=KEPT),
            id="only the groups that changed are merged again",
        ),
        pytest.param(
            merged(PLAIN, message("a"), message("b"), scope=WriteScope(), read_scope=WriteScope()),
            PLAIN,
            id="all of a write with a scope is read again",
        ),
        pytest.param(
            merged(RESTORING, message("a"), scope=WriteScope(), read_scope=WriteScope()),
            claimed(*RESTORING.jobs),
            id="a restore is compared with the table again",
        ),
        pytest.param(
            merged(EVOLVING, message("b"), dataset=NEXT_SCHEMA),
            Replan(decoded=EVOLVING, version=9, schema_id=2, messages={}),
            id="the messages are of the schema that the write brings",
        ),
    ],
)
def test_conflict_sends_a_part_back_as_far_as_it_must_go(part: Merged, expected: Part) -> None:
    assert part.conflicted(("b",), 9) == expected


# Groups


def lost(dataset_id: str = "d", *groups: str) -> Conflicted:
    return Conflicted(file_groups=groups, winner="i", winner_version=8, head_version=9, dataset_id=dataset_id)


def group_of(*parts: Part, together: bool = False) -> WriteGroup:
    return WriteGroup(tenant_id="t", tag="tag", together=together, parts=parts)


def transaction() -> WriteGroup:
    """In three datasets."""
    return WriteGroup.of([write_job(dataset, transaction_id="x") for dataset in "abc"])


def test_group_has_a_part_for_each_dataset_in_order_of_acceptance() -> None:
    jobs = [write_job("b"), write_job("a"), write_job("b")]
    group = WriteGroup.of(jobs)
    assert [(part.dataset_id, part.jobs) for part in group.parts] == [
        ("b", (jobs[0], jobs[2])),
        ("a", (jobs[1],)),
    ]
    assert group.tag == f"{jobs[0].tenant_id}/{jobs[0].id}-1"
    assert [claim.job_id for claim in group.claims] == [jobs[0].id, jobs[2].id, jobs[1].id]
    assert not group.together


def in_dataset(part: Decoded, dataset_id: str) -> Decoded:
    return replace(part, dataset_id=dataset_id)


@pytest.mark.parametrize(
    ("states", "number", "stage"),
    [
        (("claimed", "claimed"), 0, "decode"),
        (("decoded", "claimed"), 1, "decode"),
        (("merged", "claimed"), 1, "decode"),
        (("decoded", "decoded"), 0, "merge"),
        (("planned", "decoded"), 0, "merge"),
        (("merged", "decoded"), 1, "merge"),
        (("merged", "replan"), 1, "merge"),
        (("merged", "planned"), 1, "merge"),
        (("merged", "merged"), None, "commit"),
    ],
)
def test_all_parts_are_decoded_before_one_is_merged_and_merged_before_they_are_committed(
    states: tuple[str, ...], number: int | None, stage: str
) -> None:
    make: dict[str, Callable[[Decoded], Part]] = {
        "claimed": Decoded.read_again,
        "decoded": lambda part: part,
        "replan": replan,
        "planned": planned,
        "merged": merged,
    }
    group = group_of(*(make[state](in_dataset(PLAIN, str(each))) for each, state in enumerate(states)))
    assert group.next == (None if number is None else group.parts[number])
    assert group.stage == stage


@pytest.mark.parametrize(
    ("job", "stage"),
    [
        (write_job(derived=True), "derive"),
        (write_job(restores=RestoreTarget(version=1)), "restore"),
        (write_job(restores=RestoreTarget(instants=1)), "restore"),
    ],
)
def test_stage_of_a_new_group_depends_on_its_input(job: Job, stage: str) -> None:
    assert WriteGroup.of([job]).stage == stage


def test_round_grows_only_when_a_part_goes_back() -> None:
    job = write_job()
    group = WriteGroup.of([job])
    names = [group.attempt]
    read = claimed(job).read(written(job))
    assert isinstance(read, Decoded)
    rounds = []
    for part in (read, planned(read), merged(read), replan(read), planned(read), read, read.read_again()):
        group = group.moved(part)
        rounds.append(group.round)
        names.append(group.attempt)
    assert rounds == [0, 0, 0, 1, 1, 2, 3]
    assert len(set(names)) == 4


def test_attempts_at_a_write_name_their_files_differently() -> None:
    """Each write, each epoch and each round has names of its own."""
    first = write_job()
    again = replace(first, epoch=first.epoch + 1)
    names = [
        replace(WriteGroup.of([job]), round=number).attempt
        for job in (first, again, write_job())
        for number in range(3)
    ]
    assert len(set(names)) == len(names)


def test_group_without_one_of_its_writes_begins_another_round() -> None:
    """Also if that is not the write whose name is in the paths."""
    before = of_rows(1, 1)
    first, second = before.jobs
    for part in (claimed(first, second), before, merged(before, message("a", ONE, ONE))):
        group = group_of(part)
        assert len({group.attempt, group.without(second).attempt}) == 2
        assert len({group.attempt, group.fenced(Fenced(valid_ids=frozenset({first.id}))).attempt}) == 2


def test_failed_write_does_not_stop_later_writes_of_its_dataset() -> None:
    before = of_rows(1, 1)
    first, second = before.jobs
    group = group_of(merged(before, message("a", ONE, ONE)))
    after = group.without(first)
    assert after.parts == (decoded(before.inputs[1]),)
    # The engine knows the group by its tag; files are named for a write that is still to be committed.
    assert after.tag == group.tag
    assert after.attempt != group.attempt
    assert second.instant in after.attempt


def test_transaction_fails_as_a_whole() -> None:
    group = transaction()
    assert group.without(group.jobs[1]).parts == ()


def test_fenced_group_continues_with_the_claims_that_are_held() -> None:
    before = of_rows(1, 1, 1)
    first, _, third = before.inputs
    group = group_of(merged(before, message("a", ONE, ONE, ONE)))
    held = frozenset({first.job.id, third.job.id})
    assert group.fenced(Fenced(valid_ids=held)).parts == (decoded(first, third),)
    assert group.fenced(Fenced(valid_ids=frozenset())).parts == ()


def test_conflict_in_one_dataset_of_a_transaction_leaves_the_others_merged() -> None:
    """Their messages are valid where they were read, which the next commit says of them."""
    one = merged(in_dataset(of_rows(1), "one"), message("a", ONE), version=5)
    two = merged(in_dataset(of_rows(1), "two"), message("b", ONE), version=5)
    group = group_of(one, two, together=True).replan(lost("two", "b"))
    assert group.parts == (
        one,
        Replan(decoded=two.decoded, version=9, schema_id=1, messages={}),
    )
    assert (group.replans, group.round) == (1, 1)
    again = group.moved(merged(two.decoded, message("b", ONE), version=9))
    assert [commit.read_version for commit in again.commits()] == [5, 9]
    # The version that won is one of the dataset that has lost.
    assert [commit.winner_version for commit in again.commits()] == [None, 8]


def test_refresh_that_was_overtaken_is_derived_again() -> None:
    before = decoded(written(write_job(derived=True)))
    group = group_of(merged(before, message("a", ONE))).replan(Overtaken(dataset_id="d", since=3))
    assert group.parts == (claimed(*before.jobs),)
    assert group.replans == 1


def test_commit_that_was_not_merged_cannot_be_lost() -> None:
    with pytest.raises(TypeError):
        group_of(PLAIN).replan(lost())


def test_committed_group_names_the_version_of_each_dataset() -> None:
    parts = [merged(in_dataset(of_rows(1), name), message("a", ONE)) for name in ("one", "two")]
    group = group_of(*parts)
    published = [Published(version=version, first_offset=0, next_offset=1) for version in (4, 6)]
    assert group.committed(published) == Committed(jobs=group.jobs, versions={"one": 4, "two": 6}, more=False)


# Whose error it is


def test_error_of_a_damaged_input_concerns_its_write_only() -> None:
    inputs = [written(write_job()), written(write_job())]
    damaged = CorruptFile("damaged", path=inputs[1].files[0].path)
    for part in (decoded(*inputs), planned(decoded(*inputs)), merged(decoded(*inputs))):
        assert group_of(part).affected(damaged) == [inputs[1].job]
    assert group_of(decoded(*inputs)).affected(CorruptFile("damaged", path="another")) == []


def test_error_of_a_damaged_input_is_attributed_during_decoding() -> None:
    jobs = [write_job(), write_job()]
    part = claimed(*jobs).read(replace(written(jobs[0]), files=(staged(1, "first"),)))
    assert group_of(part).affected(CorruptFile("damaged", path="first")) == [jobs[0]]


def test_error_in_a_transaction_concerns_the_dataset_in_progress() -> None:
    group = transaction()
    error = StorageFull("no room", path="data")
    assert group.affected(error) == [group.jobs[0]]
    [first, *_] = group.parts
    assert isinstance(first, Claimed)
    assert group.moved(first.read(written(group.jobs[0]))).affected(error) == [group.jobs[1]]


def test_commit_error_of_a_transaction_concerns_the_dataset_that_it_names() -> None:
    parts = [merged(decoded(written(write_job(name)), dataset_id=name)) for name in "ab"]
    group = group_of(*parts, together=True)
    assert group.affected(HeadwaterError("lost", dataset_id="b")) == [group.jobs[1]]
    assert group.affected(HeadwaterError("unknown")) == []


def test_error_of_independent_writes_concerns_all_of_them() -> None:
    assert group_of(of_rows(1, 1)).affected(StorageFull("no room", path="data")) == []
