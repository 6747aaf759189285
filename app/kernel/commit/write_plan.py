"""The plan of a write: one task per touched file group."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from app.kernel.commit.halved_groups import HalvedGroup, StagedBucket, halved_groups
from app.kernel.format.clustering import ClusterBy
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import (
    DataFile,
    FileKind,
    Slot,
    append_file_group,
    bucket_file_group,
    bucket_slot,
    halved_slot,
)
from app.kernel.format.halving import around
from app.kernel.format.operation import Operation, matches_equal_rows
from app.kernel.format.partition.globs import matches_partition_glob
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from app.kernel.sql.conditions.prune import may_match
from app.kernel.sql.conditions.tree import Filter

# The staged rows of one partition that one append task takes; more rows go to several parallel tasks.
APPEND_BYTES_MAX: Final = 32 * 1024 * 1024
# The keys of more numbers are in most buckets of a partition.
_NUMBERS_MAX: Final = 256


class StagedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Record batches of one staged file, with rows of grouped write `job`."""

    job: int
    file: StagedFile
    batch_indices: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.file.batches[index].rows for index in self.batch_indices)


class WriteScope(msgspec.Struct, frozen=True, kw_only=True):
    """The live rows of a table that a write retracts without naming their keys, unless its own rows have them.

    `partitions`: paths, all if None. `where`: a filter, all rows if None. Both must match. `globs`: also the partitions
    that match one of these; under key_dynamic, where logs have rows of partitions that no base file is in.
    """

    partitions: tuple[str, ...] | None = None
    where: Filter | None = None
    globs: tuple[str, ...] = ()

    def has_partition(self, path: str) -> bool:
        """Whether rows of the partition may be in scope."""
        return (
            self.partitions is None
            or path in self.partitions
            or any(matches_partition_glob(path, glob) for glob in self.globs)
        )


class WriteIntent(msgspec.Struct, frozen=True, kw_only=True):
    """The intent of a grouped write for its rows.

    `drop_duplicates`: rows of an insert whose key is live are dropped and counted as unchanged. `quarantine`: they are
    quarantined. `accept_late`: rows behind the watermark are merged, whatever the dataset says. `by_arrival`: rows are
    applied in the order of arrival, whatever their ordering values. `keep_seconds`: how long the tombstones of its
    deletes last; 0 leaves none. `committed_at`: the time of its commit, or of its plan as long as it has none.
    """

    operation: Operation
    drop_duplicates: bool = False
    quarantine: bool = False
    accept_late: bool = False
    by_arrival: bool = False
    keep_seconds: int = 0
    committed_at: datetime | None = None

    @property
    def replaces_rows(self) -> bool:
        """Whether its rows replace live rows as they are."""
        return self.operation.replaces or self.by_arrival


class MergeTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The task that merges one file group; plain values, sent to Spark.

    `slot` is the group's own. `files` are its live files in the order of their commits. `intents` are those of the
    grouped writes by number. `scope` (of a write that runs alone) selects the live rows to retract. `compact`: the task
    belongs to a table service, which changes no rows. Then `files` are only those that it rewrites, with logs,
    postponed writes and deletion vectors applied, and may be of other groups. `cluster`: the order of the rows in the
    base files that are written, if the service or the write specifies one. `attempt` is part of the names of the files
    that the task writes, so that no two attempts ever write the same path. `watermark`: that of the version before,
    which decides which rows are late. `checks_lateness`: whether they are compared with it. `planned_at`: the least
    time of the commit, where there are tombstones.
    """

    dataset: DatasetDefinition
    slot: Slot
    file_group: str
    files: tuple[DataFile, ...]
    segments: tuple[StagedSegment, ...]
    intents: dict[int, WriteIntent]
    attempt: str
    data_prefix: str
    scope: WriteScope | None = None
    compact: bool = False
    cluster: ClusterBy | None = None
    checks_lateness: bool = msgspec.field(default=False, name="judged")
    watermark: datetime | None = None
    planned_at: datetime | None = None

    @property
    def by_value(self) -> bool:
        """Whether rows are retracted by changes that equal them in every value."""
        return any(matches_equal_rows(intent.operation, self.dataset) for intent in self.intents.values())

    @property
    def divides(self) -> bool:
        """Whether the file group takes its rows from the files of a larger one, which is halved."""
        slot = self.slot
        return slot.of is not None and any(file.slot != slot for file in self.files)

    @property
    def keeps_rows(self) -> bool:
        """Whether exactly the live rows of the files go to the new files.

        Without `cluster` they keep their order, bucket by bucket.
        """
        return self.compact and not any(file.kind.is_pending for file in self.files)


class WrittenGroups(msgspec.Struct, frozen=True, kw_only=True):
    """File groups by name, and those of all buckets of some partitions.

    `numbers`: by partition, those of written keys. Where buckets are halved, the names are those of the buckets of all
    sizes with these keys.
    """

    names: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    numbers: dict[str, frozenset[int]] = {}

    def open_partitions(self, file_groups: Iterable[str]) -> tuple[str, ...]:
        """The partitions with keys that are in none of these file groups.

        It depends on all of their buckets which one these keys go to.
        """
        slots = {slot for name in file_groups if (slot := halved_slot(name)) is not None}
        return tuple(
            path
            for path, numbers in sorted(self.numbers.items())
            if any(slots.isdisjoint(around(path, number)) for number in numbers)
        )


def touched_groups(
    dataset: DatasetDefinition,
    writes: Mapping[int, Sequence[StagedFile]],
    done_groups: Container[str] = frozenset(),
) -> WrittenGroups:
    """The file groups that a plan of grouped writes reads, without the `done_groups`; none without a key."""
    if not dataset.keyed:
        return WrittenGroups()
    segments = _segments_by_slot(writes)
    if not dataset.bucket.halves:
        names = (bucket_file_group(slot) for slot in sorted(segments))
        return WrittenGroups(names=tuple(name for name in names if name not in done_groups))
    by_path: dict[str, list[StagedSegment]] = {}
    for slot, parts in segments.items():
        by_path.setdefault(slot.partition_path, []).extend(parts)
    numbers_by_path = {
        path: numbers for path, parts in by_path.items() if (numbers := _numbers(parts)) is not None
    }
    few = {path: numbers for path, numbers in numbers_by_path.items() if len(numbers) <= _NUMBERS_MAX}
    slots = {slot for path, numbers in few.items() for number in numbers for slot in around(path, number)}
    names = (bucket_file_group(slot) for slot in sorted(slots))
    return WrittenGroups(
        names=tuple(name for name in names if name not in done_groups),
        partitions=tuple(sorted(by_path.keys() - few.keys())),
        numbers=few,
    )


def _numbers(segments: Iterable[StagedSegment]) -> frozenset[int] | None:
    """The numbers of the keys of these rows, where buckets are halved; None if they are not known."""
    batches = [each.file.batches[index] for each in segments for index in each.batch_indices]
    number_sets = [batch.numbers for batch in batches if batch.numbers is not None]
    return frozenset().union(*number_sets) if len(number_sets) == len(batches) else None


def plan_merge(
    dataset: DatasetDefinition,
    writes: Mapping[int, Sequence[StagedFile]],
    intents: Mapping[int, WriteIntent],
    live: Iterable[DataFile],
    *,
    scope: WriteScope | None = None,
    cluster: ClusterBy | None = None,
    done_groups: Collection[str] = frozenset(),
    beside: Iterable[str] = (),
    attempt: str,
    data_prefix: str,
    checks_lateness: bool = False,
    watermark: datetime | None = None,
) -> list[MergeTask]:
    """One task per file group that the rows go to or the scope covers, without the `done_groups`.

    `writes`: numbered in order of acceptance. `live`: the live files of the touched groups, and of all groups of open
    partitions; with a scope, of all groups. `beside`: file groups whose files are not in `live`, although they have
    some. `cluster`: the order of the rows in the new base files, None for that of the merge. `checks_lateness`: whether
    the rows are compared with the `watermark`.
    """
    segments = _segments_by_slot(writes)
    files = sorted(live, key=lambda file: (file.added_version or 0, file.path))
    if dataset.bucket.halves:
        work = _by_half(dataset, writes, intents, files, scope, {*done_groups, *beside})
    elif dataset.keyed:
        work = _by_bucket(dataset, segments, files, scope)
    elif scope is None:
        work = _appends(dataset, segments, attempt)
    elif any(_brings_rows(intent, dataset) for intent in intents.values()):
        work = _by_partition(dataset, segments, files, scope, attempt)
    else:
        work = _by_group(dataset, files, scope)
    return [
        MergeTask(
            dataset=dataset,
            slot=each.slot,
            file_group=each.file_group,
            files=each.files,
            segments=each.segments,
            # Only a single write has a scope. It also applies to groups without rows of the write.
            intents=dict(intents) if scope else {part.job: intents[part.job] for part in each.segments},
            attempt=attempt,
            data_prefix=data_prefix,
            scope=scope,
            cluster=cluster,
            checks_lateness=checks_lateness,
            watermark=watermark,
            planned_at=next((intent.committed_at for intent in intents.values()), None),
        )
        for each in work
        if each.file_group not in done_groups
    ]


def _brings_rows(intent: WriteIntent, dataset: DatasetDefinition) -> bool:
    """Whether a write with a scope has rows as well."""
    return intent.operation.replaces or matches_equal_rows(intent.operation, dataset)


class _PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one task."""

    slot: Slot
    file_group: str
    files: tuple[DataFile, ...] = ()
    segments: tuple[StagedSegment, ...] = ()


_Segments = Mapping[Slot, Sequence[StagedSegment]]


def _by_bucket(
    dataset: DatasetDefinition, segments: _Segments, live: Sequence[DataFile], scope: WriteScope | None
) -> list[_PlannedGroup]:
    """The buckets that rows go to, and those with a file that may have rows in scope, each with all its files."""
    slots = {bucket_file_group(slot): slot for slot in segments}
    files: dict[str, list[DataFile]] = {}
    for file in live:
        files.setdefault(file.file_group, []).append(file)
        if scope is not None and reaches(scope, dataset, file):
            slots.setdefault(file.file_group, bucket_slot(file.file_group))
    return [
        _PlannedGroup(
            slot=slots[group],
            file_group=group,
            files=tuple(files.get(group, ())),
            segments=tuple(segments.get(slots[group], ())),
        )
        for group in sorted(slots)
    ]


def _by_half(
    dataset: DatasetDefinition,
    writes: Mapping[int, Sequence[StagedFile]],
    intents: Mapping[int, WriteIntent],
    live: Sequence[DataFile],
    scope: WriteScope | None,
    beside: Collection[str],
) -> list[_PlannedGroup]:
    """The buckets that rows go to, and those with a file that may have rows in scope; full ones in parts."""
    files: dict[str, list[DataFile]] = {}
    for file in live:
        files.setdefault(file.file_group, []).append(file)
    groups_in_scope = {
        file.file_group for file in live if scope is not None and reaches(scope, dataset, file)
    }
    slots = [slot for name in {*files, *beside} if (slot := halved_slot(name)) is not None]
    staged_buckets = {
        slot: _staged_bucket(segments, intents) for slot, segments in _segments_by_slot(writes).items()
    }
    groups = list(halved_groups(dataset, staged_buckets, files, slots, groups_in_scope))
    segments = _segments_of(groups, writes)
    planned_groups = (
        _PlannedGroup(
            slot=group.slot,
            file_group=bucket_file_group(group.slot),
            files=tuple(group.files),
            segments=tuple(segments[group.slot]),
        )
        for group in groups
    )
    return sorted(planned_groups, key=lambda group: group.file_group)


def _staged_bucket(segments: Sequence[StagedSegment], intents: Mapping[int, WriteIntent]) -> StagedBucket:
    """The segments of one bucket. Rows that only delete add nothing to the table."""
    staying = [each for each in segments if intents[each.job].operation is not Operation.DELETE]
    return StagedBucket(
        rows=sum(each.rows for each in staying),
        size_bytes=sum(each.file.size_bytes * each.rows // max(each.file.rows, 1) for each in staying),
        numbers=_numbers(segments),
    )


def _segments_of(
    groups: Iterable[HalvedGroup], writes: Mapping[int, Sequence[StagedFile]]
) -> dict[Slot, list[StagedSegment]]:
    """The staged rows that each group reads, in order: one segment of a file, with the rows of several buckets."""
    readers: dict[Slot, list[Slot]] = {}
    segments: dict[Slot, list[StagedSegment]] = {}
    for group in groups:
        segments[group.slot] = []
        for slot in group.staged_slots:
            readers.setdefault(slot, []).append(group.slot)
    for job in sorted(writes):
        for file in writes[job]:
            indices: dict[Slot, list[int]] = {}
            for batch in file.batches:
                for slot in _readers_of(batch, readers.get(batch.slot, ())):
                    indices.setdefault(slot, []).append(batch.index)
            for slot, own in indices.items():
                segments[slot].append(StagedSegment(job=job, file=file, batch_indices=tuple(own)))
    return segments


def _readers_of(batch: StagedBatch, groups: Sequence[Slot]) -> Iterable[Slot]:
    """Those of the groups to which rows of the batch may go."""
    if batch.numbers is None or len(groups) == 1:
        return groups
    counts = {slot.of or 1 for slot in groups}
    buckets = {(number % of, of) for number in batch.numbers for of in counts}
    return [slot for slot in groups if (slot.bucket, slot.of) in buckets]


def _appends(dataset: DatasetDefinition, segments: _Segments, attempt: str) -> list[_PlannedGroup]:
    """Appended rows match no live rows: many rows go to several groups in parallel, unless each partition takes one
    file.
    """
    work = []
    for slot in sorted(segments):
        whole = dataset.bucket.shuffle_by_partition
        for number, part in enumerate([segments[slot]] if whole else _packed(segments[slot])):
            group = append_file_group(slot, f"{attempt}-{number}" if number else attempt)
            work.append(_PlannedGroup(slot=slot, file_group=group, segments=tuple(part)))
    return work


def _by_partition(
    dataset: DatasetDefinition, segments: _Segments, live: Sequence[DataFile], scope: WriteScope, attempt: str
) -> list[_PlannedGroup]:
    """Replaced or changed rows without a key: a new group per partition, with the old files in scope."""
    files: dict[Slot, list[DataFile]] = {}
    for file in live:
        if reaches(scope, dataset, file):
            files.setdefault(Slot(partition_path=file.slot.partition_path, bucket=0), []).append(file)
    return [
        _PlannedGroup(
            slot=slot,
            file_group=append_file_group(slot, attempt),
            files=tuple(files.get(slot, ())),
            segments=tuple(segments.get(slot, ())),
        )
        for slot in sorted({*segments, *files})
    ]


def _by_group(dataset: DatasetDefinition, live: Sequence[DataFile], scope: WriteScope) -> list[_PlannedGroup]:
    """Retracted rows without a key: each group by itself, with its files that may have such rows."""
    files: dict[str, list[DataFile]] = {}
    for file in live:
        if reaches(scope, dataset, file):
            files.setdefault(file.file_group, []).append(file)
    return [
        _PlannedGroup(slot=files[group][0].slot, file_group=group, files=tuple(files[group]))
        for group in sorted(files)
    ]


def reaches(scope: WriteScope, dataset: DatasetDefinition, file: DataFile) -> bool:
    """Whether the file may have rows in scope: false only if it certainly has no such row."""
    if not file.kind.holds_rows:
        return False
    path = file.slot.partition_path
    # Logs of groups with several partitions have no partition.
    if scope.partitions is not None and path and path not in scope.partitions:
        return False
    if scope.where is None:
        return True
    known_statistics = [partition_statistics(path, dataset.partition_by, dataset.schema)]
    # The resulting values of rows in a log are only known after the merge.
    if file.kind is FileKind.BASE:
        known_statistics.append(file.statistics)
    return all(
        may_match(scope.where, statistics, dataset.schema, file.row_count) for statistics in known_statistics
    )


def _segments_by_slot(writes: Mapping[int, Sequence[StagedFile]]) -> dict[Slot, list[StagedSegment]]:
    segments: dict[Slot, list[StagedSegment]] = {}
    for job in sorted(writes):
        for file in writes[job]:
            batches: dict[Slot, list[int]] = {}
            for batch in file.batches:
                batches.setdefault(batch.slot, []).append(batch.index)
            for slot, indices in batches.items():
                segment = StagedSegment(job=job, file=file, batch_indices=tuple(indices))
                segments.setdefault(slot, []).append(segment)
    return segments


def _packed(segments: Iterable[StagedSegment]) -> Iterator[list[StagedSegment]]:
    """The segments in order, in packs large enough for a task."""
    pack: list[StagedSegment] = []
    packed_bytes = 0.0
    for segment in segments:
        size_bytes = segment.file.size_bytes * segment.rows / max(segment.file.rows, 1)
        if pack and packed_bytes + size_bytes > APPEND_BYTES_MAX:
            yield pack
            pack, packed_bytes = [], 0.0
        pack.append(segment)
        packed_bytes += size_bytes
    if pack:
        yield pack
