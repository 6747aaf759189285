"""The commit transaction: one short pass under the lock of the head row, all or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

from msgspec import structs
from sqlalchemy import (
    JSON,
    BigInteger,
    Connection,
    any_,
    bindparam,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.catalog.repository.head import MOVE_HEAD, moved_head
from app.core.catalog.repository.schemas import store_evolved
from app.core.catalog.tables import heads
from app.core.jobs.repository.commit_slots import lock_datasets
from app.core.jobs.repository.job_locks import ENDED, lock_held
from app.core.jobs.repository.metering import meter
from app.core.jobs.repository.outbox import post
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import JobState, Progress
from app.core.timeline.repository.conflict_window import (
    InconsistentCommit,
    ended_tombstones,
    expired_files,
    expired_window,
    groups_read,
    in_read_set,
    other_watermark,
    window_of,
)
from app.core.timeline.repository.definitions import outdated_plan
from app.core.timeline.repository.participants import CommitParticipant
from app.core.timeline.repository.watermarks import move_watermark, watermark_after
from app.core.timeline.tables import changelog_files, commits, files, quarantine_files
from app.core.timeline.values import (
    WINNER_VERSION,
    Fenced,
    JobOutcome,
    NewCommit,
    Overtaken,
    Published,
    changed_range,
)
from app.infra.db.any_of import any_of
from app.kernel.changelog.corrections import resolved_bound
from app.kernel.commit.commit_message import CommitMessage, changelog_of, removed_of
from app.kernel.commit.conflict import Conflicted, check_conflicts, check_version
from app.kernel.format.commit_metadata import metadata_bytes
from app.kernel.format.file_group import ChangelogFile, DataFile, StoredFile, partition_of, shared_changes
from app.kernel.format.instant import WRITE_ACTIONS, InstantEvent, RowCounts, next_state, states_before

# The statements of each commit, made once.
_LOCK_HEADS: Final = (
    select(
        heads.c.dataset_id, heads.c.version, heads.c.earliest_version, heads.c.next_offset, heads.c.watermark
    )
    .where(heads.c.dataset_id == any_(bindparam("ids", type_=ARRAY(heads.c.dataset_id.type))))
    .order_by(heads.c.dataset_id)
    .with_for_update()
)
_MOVED: Final = MOVE_HEAD.cte("moved")
_OF_COMMIT: Final = (
    "dataset_id", "version", "action", "instant_id", "first_offset", "next_offset", "schema_id",
    "files_added", "files_removed", "bytes_added", "bytes_removed", "counts",
    "watermark", "metadata", "metadata_bytes",
)  # fmt: skip
_COMMIT: Final = (
    insert(commits)
    .from_select(
        [*_OF_COMMIT, "committed_at"],
        select(
            *(bindparam(f"commit_{name}", type_=commits.c[name].type) for name in _OF_COMMIT),
            _MOVED.c.committed_at,
        ),
    )
    .returning(commits.c.committed_at)
)
_REMOVE: Final = (
    update(files)
    .where(
        files.c.dataset_id == bindparam("dataset", type_=files.c.dataset_id.type),
        files.c.path == any_(bindparam("paths", type_=ARRAY(files.c.path.type))),
        files.c.removed_version.is_(None),
    )
    .values(removed_version=bindparam("now", type_=files.c.removed_version.type))
    .returning(files.c.path, files.c.size_bytes)
)
_REMOVE_OF_GROUPS: Final = _REMOVE.where(
    files.c.file_group == any_(bindparam("groups", type_=ARRAY(files.c.file_group.type)))
)
_FILES: Final = insert(files)
_CHANGELOG_FILES: Final = insert(changelog_files)
# The outcomes as one document: a statement for any number of jobs.
_OUTCOMES: Final = (
    func.json_to_recordset(bindparam("outcomes", type_=JSON))
    .table_valued(
        column("job", jobs.c.id.type),
        column("counts", JSON),
        column("result", JSON),
        column("first", BigInteger),
        column("last", BigInteger),
        column("timings", JSON),
    )
    .render_derived(name="outcome", with_types=True)
)
_SUCCEEDED: Final = (
    update(jobs)
    .where(jobs.c.id == _OUTCOMES.c.job, jobs.c.id == any_(bindparam("job_ids", type_=ARRAY(jobs.c.id.type))))
    .values(
        state=JobState.SUCCEEDED.value,
        progress=Progress(stage=JobState.SUCCEEDED.value),
        committed_version=bindparam("committed"),
        rows=_OUTCOMES.c.counts,
        result=_OUTCOMES.c.result,
        first_offset=_OUTCOMES.c.first,
        last_offset=_OUTCOMES.c.last,
        timings=_OUTCOMES.c.timings,
        replans=bindparam("planned_again", type_=jobs.c.replans.type),
        finished_at=func.clock_timestamp(),
        **ENDED,
    )
    .cte("succeeded")
)
_BEFORE_PUBLISH: Final = states_before(InstantEvent.PUBLISH)
_COMPLETE: Final = (
    update(instants)
    .where(
        instants.c.job_id == _OUTCOMES.c.job,
        instants.c.job_id == any_(bindparam("job_ids", type_=ARRAY(jobs.c.id.type))),
        any_of(instants.c.state, [state.value for state in _BEFORE_PUBLISH]),
    )
    .values(
        state=next_state(_BEFORE_PUBLISH[0], InstantEvent.PUBLISH).value,
        version=bindparam("instant_version", type_=instants.c.version.type),
        counts=_OUTCOMES.c.counts,
        completed_at=func.coalesce(
            bindparam("commit_time", type_=instants.c.completed_at.type), func.clock_timestamp()
        ),
    )
    .add_cte(_SUCCEEDED)
)


def publish_commits(
    connection: Connection, together: Sequence[NewCommit], participants: Sequence[CommitParticipant]
) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
    """Publishes commits of different datasets, all or none. Returns the reason if not; then the caller rolls back.

    The order matters: the lock of a head row makes commits of its dataset serial, so what is checked under it stays
    so. Raises CommitConflict where a dataset is not at the version that its commit expects.
    """
    head_rows = lock_heads(connection, [commit.dataset_id for commit in together])
    # A definition is in the dataset's row, which is locked before jobs, as in claims.
    lock_datasets(connection, [commit.dataset_id for commit in together if commit.definition is not None])
    claims = [outcome.claim for commit in together for outcome in commit.outcomes]
    held_ids = lock_held(connection, list(head_rows), claims)
    if len(held_ids) < len(claims):
        return Fenced(valid_ids=frozenset(held_ids))
    for commit in together:
        head = head_rows[commit.dataset_id]
        check_version(commit.dataset_id, commit.expected_version, head.version)
        verdict = (
            outdated_plan(connection, commit, head.version)
            or expired_window(connection, commit, head.version, head.earliest_version)
            or expired_files(connection, commit, head.version)
            or other_watermark(connection, commit, head.version, head.watermark)
            or check_conflicts(
                commit.messages,
                window_of(connection, commit, head.version),
                head_version=head.version,
                scope=commit.scope,
            )
        )
        if isinstance(verdict, Conflicted):
            return structs.replace(verdict, dataset_id=commit.dataset_id)
        for participant in participants:
            overtaken = participant.publishing(connection, commit)
            if overtaken is not None:
                return overtaken
    publications: dict[str, Published] = {}
    for commit in together:
        published = _publish(connection, commit, head_rows[commit.dataset_id], participants)
        if isinstance(published, Conflicted):
            return structs.replace(published, dataset_id=commit.dataset_id)
        publications[commit.dataset_id] = published
    for commit in sorted(together, key=lambda each: each.dataset_id):
        outcome = publications[commit.dataset_id]
        more = _meter(connection, commit, outcome)
        publications[commit.dataset_id] = structs.replace(outcome, more=more)
    if len(together) > 1:
        # The worker of a transaction continues with one of its datasets; writes may wait in the others.
        for commit in together:
            post(connection, "work", commit.dataset_id)
    return tuple(publications.values())


def _meter(connection: Connection, commit: NewCommit, publication: Published) -> bool:
    """Adds the commit to the usage of the day. Rows and bytes are those of writes: table services rewrite rows.

    Returns whether more writes of the dataset wait.
    """
    counts = sum((outcome.counts for outcome in commit.outcomes), RowCounts())
    new = [file for message in commit.messages for file in message.added if file.written_version is None]
    table_files: list[StoredFile] = [*new, *changelog_of(commit.messages)]
    bad = [file for outcome in commit.outcomes for file in outcome.quarantine_files]
    # A data file may be a changelog file, too.
    size = sum({file.path: file.size_bytes for file in table_files}.values())
    size += sum(file.size_bytes for file in bad)
    writes = commit.action in WRITE_ACTIONS
    return meter(
        connection,
        commit.dataset_id,
        [outcome.claim.job_id for outcome in commit.outcomes],
        rows=counts.inserted + counts.updated + counts.deleted if writes else 0,
        size=size if writes else 0,
        changes=publication.next_offset - publication.first_offset,
        writes=len(commit.outcomes) if writes else 0,
    )


def makes_version(commit: NewCommit) -> bool:
    """Whether the commit changes anything; otherwise its jobs end at the current version."""
    has_changes = any(message.added or message.removed or message.changelog for message in commit.messages)
    return has_changes or commit.definition is not None


def lock_heads(connection: Connection, dataset_ids: Sequence[str]) -> dict[str, Any]:
    """The head rows by dataset, locked in the order that all transactions use."""
    rows = connection.execute(_LOCK_HEADS, {"ids": list(dataset_ids)}).all()
    if len(rows) != len(dataset_ids):
        raise InconsistentCommit(f"{len(dataset_ids)} commits of {len(rows)} datasets")
    return {row.dataset_id: row for row in rows}


def _publish(
    connection: Connection, commit: NewCommit, head: Any, participants: Sequence[CommitParticipant]
) -> Published | Conflicted:
    _insert_quarantine(connection, commit)
    if not makes_version(commit):
        conflict = ended_tombstones(connection, commit, head.version, None)
        if conflict is not None:
            return conflict
        at_head = Published(version=head.version, first_offset=head.next_offset, next_offset=head.next_offset)
        move_watermark(connection, commit, head.version, head.watermark)
        _complete(connection, commit, at_head, instant_version=None, completed_at=None)
        post(connection, "changes", commit.dataset_id)
        return at_head
    changes = sum(file.row_count for file in changelog_of(commit.messages))
    publication = Published(
        version=head.version + 1, first_offset=head.next_offset, next_offset=head.next_offset + changes
    )
    if commit.definition is not None:
        store_evolved(connection, commit.dataset_id, commit.definition)
    removed_bytes = _remove(connection, commit, publication.version)
    watermark = watermark_after(connection, commit, head.watermark)
    committed_at = _move_head(connection, commit, publication, removed_bytes, watermark)
    conflict = ended_tombstones(connection, commit, head.version, committed_at)
    if conflict is not None:
        return conflict
    _insert_files(connection, commit, publication, committed_at)
    _complete(connection, commit, publication, instant_version=publication.version, completed_at=committed_at)
    post(connection, "changes", commit.dataset_id)
    for participant in participants:
        participant.published(connection, commit, publication)
    return publication


def _insert_quarantine(connection: Connection, commit: NewCommit) -> None:
    """Inserts the quarantined records, also where nothing else changes."""
    rows = [
        {"dataset_id": commit.dataset_id, "job_id": outcome.claim.job_id} | structs.asdict(file)
        for outcome in commit.outcomes
        for file in outcome.quarantine_files
    ]
    if rows:
        connection.execute(insert(quarantine_files), rows)


def _move_head(
    connection: Connection,
    commit: NewCommit,
    publication: Published,
    removed_bytes: int,
    watermark: datetime | None,
) -> datetime:
    """Moves the head and inserts the commit; returns its time, which is later than those of all earlier commits."""
    additions = [file for message in commit.messages for file in message.added]
    definition = commit.definition
    metadata = [outcome.metadata for outcome in commit.outcomes if outcome.metadata]
    values = {
        "dataset_id": commit.dataset_id,
        "version": publication.version,
        "action": commit.action.value,
        "instant_id": commit.outcomes[0].instant_id,
        "first_offset": publication.first_offset,
        "next_offset": publication.next_offset,
        "schema_id": commit.schema_id if definition is None else definition.schema.id,
        "files_added": len(additions),
        "files_removed": len(removed_of(commit.messages)),
        "bytes_added": sum(file.size_bytes for file in additions if file.written_version is None),
        "bytes_removed": removed_bytes,
        "counts": sum((outcome.counts for outcome in commit.outcomes), RowCounts()),
        "watermark": watermark,
        "metadata": metadata or None,
        "metadata_bytes": metadata_bytes(metadata) if metadata else None,
    }
    head_values = moved_head(commit.dataset_id, publication.version, publication.next_offset, watermark)
    committed_at: datetime = connection.execute(
        _COMMIT, {**head_values, **{f"commit_{name}": value for name, value in values.items()}}
    ).scalar_one()
    return committed_at


def _insert_files(
    connection: Connection, commit: NewCommit, publication: Published, committed_at: datetime
) -> None:
    for message in commit.messages:
        # A file that is listed again stays in its group.
        new = [file for file in message.added if file.written_version is None]
        shared_group = shared_changes(partition_of(message.file_group))
        groups = {file.file_group for file in new}
        groups |= {file.file_group for file in message.changelog if file.file_group != shared_group}
        if groups - {message.file_group}:
            raise InconsistentCommit(f"a file of another group was written for {message.file_group}")
    place = {"dataset_id": commit.dataset_id}
    changes = [place | row for row in _changelog_rows(commit.messages, publication)]
    starts = {row["path"]: row["first_offset"] for row in changes}
    rows = [
        place | _data_row(file, publication.version, committed_at, _first_offset(message, starts))
        for message in commit.messages
        for file in message.added
    ]
    if rows:
        connection.execute(_FILES, rows)
    if changes:
        connection.execute(_CHANGELOG_FILES, changes)


def _first_offset(message: CommitMessage, starts: Mapping[str, int]) -> int | None:
    """The offset of the first change of a file group; None without changes. `starts`: of the files, by path.

    The changelog files of a message follow each other in the feed, and have the changes of the rows of all its data
    files.
    """
    return next((starts[file.path] + message.first_change for file in message.changelog), None)


def _remove(connection: Connection, commit: NewCommit, version: int) -> int:
    """Ends the files that the commit removes; returns the bytes of those that it does not list again."""
    if any(len(message.removed) > len(set(message.removed)) for message in commit.messages):
        raise InconsistentCommit("a message removes a file twice")
    paths = removed_of(commit.messages)
    if not paths:
        return 0
    values: dict[str, Any] = {"dataset": commit.dataset_id, "paths": list(paths), "now": version}
    groups = groups_read(commit)
    if groups is None:
        statement = _REMOVE.where(in_read_set(commit))
    else:
        statement, values["groups"] = _REMOVE_OF_GROUPS, groups
    rows = connection.execute(statement, values).all()
    if len(rows) != len(paths):
        raise InconsistentCommit(
            f"{len(paths)} files were to be removed, but only {len(rows)} of them are live"
        )
    live_paths = {file.path for message in commit.messages for file in message.added}
    return sum(row.size_bytes for row in rows if row.path not in live_paths)


def _data_row(
    file: DataFile, version: int, committed_at: datetime, first_offset: int | None
) -> dict[str, Any]:
    """The row of a new file, or of one that is listed again with another deletion vector and keeps its origin."""
    is_relisting = file.written_version is not None
    return {
        "path": file.path,
        "file_group": file.file_group,
        "partition_path": file.slot.partition_path,
        "bucket": file.slot.bucket,
        "added_version": version,
        "size_bytes": file.size_bytes,
        "row_count": file.row_count,
        "checksum": file.checksum,
        "schema_id": file.schema_id,
        "statistics": file.statistics,
        "kind": file.kind.value,
        "written_version": file.written_version if is_relisting else version,
        "written_at": file.written_at if is_relisting else committed_at,
        "first_offset": file.first_offset if is_relisting else first_offset,
        "deletion_vector": file.deletion_vector,
        "index_file": file.index_file,
        "clustered_by": file.clustered_by,
        "layout": file.layout,
        "vector_path": file.deletion_vector.path if file.deletion_vector else None,
        "index_path": file.index_file.path if file.index_file else None,
    }


def _changelog_rows(messages: Sequence[CommitMessage], publication: Published) -> Iterator[dict[str, Any]]:
    """Rows with contiguous offsets in the order of the messages."""
    changelog = changelog_of(messages)
    starts = accumulate((file.row_count for file in changelog), initial=publication.first_offset)
    for file, first_offset in zip(changelog, starts, strict=False):
        yield {name: getattr(file, name) for name in ChangelogFile.__struct_fields__} | {
            "version": publication.version,
            "first_offset": first_offset,
            "corrects_min": resolved_bound(file.corrects_min, first_offset),
            "corrects_max": resolved_bound(file.corrects_max, first_offset),
        }


def _result(commit: NewCommit, outcome: JobOutcome) -> dict[str, Any] | None:
    if commit.winner_version is None:
        return outcome.result
    return {**(outcome.result or {}), WINNER_VERSION: commit.winner_version}


def _commit_timing(commit: NewCommit) -> dict[str, int]:
    return {} if commit.began is None else {"commit": round((time.perf_counter() - commit.began) * 1_000)}


def _complete(
    connection: Connection,
    commit: NewCommit,
    publication: Published,
    *,
    instant_version: int | None,
    completed_at: datetime | None,
) -> None:
    """Ends the jobs and their instants, each with its own counts."""
    outcomes = []
    for outcome in commit.outcomes:
        first, last = changed_range(outcome.counts, publication.first_offset, publication.next_offset)
        outcomes.append(
            {
                "job": outcome.claim.job_id,
                "counts": outcome.counts.stored,
                "result": _result(commit, outcome),
                "first": first,
                "last": last,
                "timings": {**(outcome.timings or {}), **commit.timings, **_commit_timing(commit)} or None,
            }
        )
    completion = connection.execute(
        _COMPLETE,
        {
            "outcomes": outcomes,
            "job_ids": [outcome.claim.job_id for outcome in commit.outcomes],
            "committed": publication.version,
            "planned_again": commit.replans,
            "instant_version": instant_version,
            "commit_time": completed_at,
        },
    )
    if completion.rowcount != len(outcomes):
        raise InconsistentCommit(f"{len(outcomes)} instants were to be completed, not {completion.rowcount}")
