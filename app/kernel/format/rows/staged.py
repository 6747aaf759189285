"""Staged input as values: what is stored of a write before a task merges it. `staging` makes such files."""

from __future__ import annotations

import msgspec

from app.kernel.format.file_group import Slot
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.shapes import Shape


class StagedBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part number `index` of a staged file: `rows` rows of one slot, a record batch of a file that is stored.

    `numbers`: where buckets are halved, the distinct numbers of its keys modulo HALVED_MAX, ascending; None if they are
    many.
    """

    slot: Slot
    index: int
    rows: int
    numbers: tuple[int, ...] | None = None


class StagedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable validated rows: an Arrow IPC file at `path`, or, of a small write, `content`.

    `content`: an Arrow IPC stream of one record batch with the parts one after another. Such rows are kept with their
    job and go to tasks by value; their `path` is only a name.
    `first_row`: the number of the write's rows in files before it; positions in the file are relative to it.
    `partitions`: those of the rows of an overwrite, where the slots do not have them.
    """

    path: str
    size_bytes: int
    checksum: str
    rows: int
    batches: tuple[StagedBatch, ...]
    first_row: int = 0
    partitions: tuple[str, ...] = ()
    content: bytes | None = None


class RowRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows of an input that were read from consecutive places, up to the next run.

    `first_row`: the number of the first one in the input. `number`: that of its place, as an offset of a topic.
    `place`: what numbers count, for errors: `partition 0 of topic 'orders'`; empty for rows whose place is not known.
    """

    first_row: int
    number: int
    place: str

    def names(self, row: int) -> str:
        """The message that a row of the run was read from, in words."""
        return f"message {self.number + row - self.first_row} of {self.place}"


class RawInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes on storage that a worker decodes: a large body or an upload.

    `records`: a Parquet file of records that were quarantined before, each as it was sent. `origin`: what the bytes
    were read from, for the errors of a source. `shapes`: of the columns, if they are known without the rows. `runs`:
    where the rows of NDJSON were read, in order, as far as that is known. `others`: further files whose rows follow, in
    order; these have no others.
    """

    path: str
    size_bytes: int
    checksum: str
    format: Format
    gzip: bool = False
    records: bool = False
    origin: str = ""
    shapes: dict[str, Shape] | None = None
    runs: tuple[RowRun, ...] = ()
    others: tuple[RawInput, ...] = ()

    @property
    def parts(self) -> tuple[RawInput, ...]:
        """All files, in the order of their rows, each without others."""
        return (msgspec.structs.replace(self, others=()), *self.others)
