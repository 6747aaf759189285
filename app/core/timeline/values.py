"""Values of the commit transaction: commits to publish, and their outcomes."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final, NamedTuple

import msgspec

from app.core.jobs.values import Claim
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.errors import Fault
from app.kernel.format.file_group import DataFile
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.quarantine import QuarantineFile

WINNER_VERSION: Final = "winner_version"
"""The member of the result of a write with the version after which it was planned again the last time."""


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a commit for one of its jobs. `quarantine_files`: its bad records. `result`: that of the job.

    `metadata`: that of the write, if it has some. `timings`: of its stages before it was claimed.
    """

    claim: Claim
    instant_id: str
    counts: RowCounts
    quarantine_files: tuple[QuarantineFile, ...] = ()
    result: dict[str, Any] | None = None
    metadata: dict[str, str] | None = None
    timings: dict[str, int] | None = None


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer's position in a feed, to be moved from `since` to `next_since` as part of a commit.

    `schema_id`: the schema under which the feed was read.
    """

    dataset_id: str
    name: str
    since: int
    next_since: int
    schema_id: int


class SourceItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source reads once, such as a file. `fingerprint`: what can be known of its content without
    reading it. `checksum`: of its content. `error`: why it was left out, if it was.
    """

    name: str
    fingerprint: str
    checksum: str = ""
    size_bytes: int = 0
    error: Fault | None = None


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a source after a round, which its commit records. `since`: the number of rounds before it.

    `position`: JSON whose members the kind of the source defines. `items`: what the round has read of what is read
    once. `due_seconds`: the pause before the next round.
    """

    source_id: str
    since: int
    position: dict[str, Any]
    items: tuple[SourceItem, ...] = ()
    due_seconds: float = 0.0


class NewCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit to publish: planned at `read_version`, for the jobs in `outcomes`, all or nothing.

    `scope` (of a write that runs by itself) is what it has read beyond the file groups of its messages: any later
    change in it is a conflict. `expected_version`: the head must be there. `definition`: what the dataset becomes,
    where the commit evolves its schema. `advances`: which changes of other feeds the rows were made of. `checkpoint`:
    how far the source of the rows was read. `ends_partitions`: the partitions that it changes are done with it.
    `batch_tags`: its version is tagged as that of a batch, and this number of such tags is kept; None for no tag.
    `timings`: of the stages before it, in milliseconds; `began`: when the stage of the commit began, by
    `time.perf_counter`; `replans`: how often it was planned again; `winner_version`: after which other version the last
    time, None if that is not known.
    """

    dataset_id: str
    action: Action
    read_version: int
    schema_id: int
    outcomes: tuple[JobOutcome, ...]
    messages: tuple[CommitMessage, ...]
    scope: WriteScope | None = None
    expected_version: int | None = None
    definition: DatasetDefinition | None = None
    advances: tuple[Advance, ...] = ()
    checkpoint: Checkpoint | None = None
    ends_partitions: bool = False
    batch_tags: int | None = None
    timings: dict[str, int] = {}
    began: float | None = None
    replans: int = 0
    winner_version: int | None = None


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The commit is durable at `version`; it added the changes [first_offset, next_offset).

    `more`: writes of the dataset waited when it was published. Not read again if the response to COMMIT was lost.
    """

    version: int
    first_offset: int
    next_offset: int
    more: bool = False


class GroupFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of some file groups, all of each, ordered by group and path. `more`: other groups follow."""

    files: list[DataFile]
    more: bool


class FileCounts(NamedTuple):
    """Of the base files that some commits wrote, and of one part of them: how many there are at a version, the greatest
    version that one of them is valid since, their checksum, and the same of those that have deleted rows. `first`:
    where the commits begin. `commit`: the last of them with files.
    """

    first: int
    part: int
    commit: int
    files: int
    latest: int
    checksum: int
    vectors: int
    latest_vector: int
    vectors_checksum: int


class FileBlock(NamedTuple):
    """The base files that the commits [first, end) wrote; of their `parts`, a power of two, only one."""

    first: int
    end: int
    part: int = 0
    parts: int = 1


class ValidFile(NamedTuple):
    """A file at a version, and when that ends; None if it has not been removed. `hash`: of its path, in 32 bits.

    `checksum`: of what identifies its row, in 64 bits. That of several files is the exclusive or of theirs.
    """

    file: DataFile
    removed_version: int | None
    hash: int
    checksum: int

    def is_in(self, block: FileBlock) -> bool:
        """Whether the file belongs to the block."""
        inside = block.first <= (self.file.written_version or 0) < block.end
        return inside and self.hash & (block.parts - 1) == block.part


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was published: only the claims of the jobs `valid_ids` are still valid."""

    valid_ids: frozenset[str]


class Overtaken(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was published: another commit took in the changes of a feed, or the rounds of a source, from `since` on
    first, or the schema of the feed has changed since it was read.

    `dataset_id`: among commits published together, the dataset whose commit it is.
    """

    dataset_id: str
    since: int


class Winner(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that a refused write lost to: its instant, its version, and who requested it.

    `actor`: the id of the API key or subject; None for the service itself. `file_groups`: some of those that changed or
    that have rows, ordered by name. `file_group_count`: their number.
    """

    instant_id: str
    version: int
    actor: str | None
    actor_name: str | None
    file_groups: tuple[str, ...] = ()
    file_group_count: int = 0


class WritesRunning(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was published: a table service yields to this number of running groups of writes."""

    groups: int


class PendingWrites(msgspec.Struct, frozen=True, kw_only=True):
    """The writes that wait in files of their own until a compaction merges them.

    `spans`: the versions at which some wait, as the first and the one after the last (None: the head has some), apart
    from each other and in order. `compactions`: the versions of compactions, in order.
    """

    spans: tuple[tuple[int, int | None], ...] = ()
    compactions: tuple[int, ...] = ()

    def compacted_version(self, version: int) -> int | None:
        """The last compaction up to a version at which writes wait, 0 for none; None if none wait at the version."""
        at = bisect_right(self.spans, version, key=lambda span: span[0])
        end = self.spans[at - 1][1] if at else version
        if end is not None and version >= end:
            return None
        place = bisect_right(self.compactions, version)
        return self.compactions[place - 1] if place else 0

    def properties(self, version: int) -> dict[str, str]:
        """What open tables say of a version at which writes wait: it has the rows as of the last compaction."""
        compaction = self.compacted_version(version)
        if compaction is None:
            return {}
        return {"headwater.read": "read_optimized", "headwater.compacted-version": str(compaction)}


def keeps_pending(definition: DatasetDefinition) -> bool:
    """Whether writes may wait in files of their own until a compaction merges them."""
    return not definition.looks_up or definition.bucket.mode is BucketMode.POSTPONE


def changed_range(
    counts: RowCounts, first_offset: int, next_offset: int
) -> tuple[int, int] | tuple[None, None]:
    """First and last offset of the commit for a job that changed rows; nothing for one that did not."""
    if counts.inserted + counts.updated + counts.deleted == 0 or first_offset == next_offset:
        return None, None
    return first_offset, next_offset - 1
