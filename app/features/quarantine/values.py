"""Values of the quarantine: ranges and parts of its files."""

from __future__ import annotations

from datetime import datetime

import msgspec

from app.kernel.format.quarantine import QuarantineFile


class RecordRange(msgspec.Struct, frozen=True, kw_only=True):
    """`count` records of a quarantine file, from row `first` of it on."""

    path: str
    first: int
    count: int


class QuarantinePart(msgspec.Struct, frozen=True, kw_only=True):
    """`count` records of a quarantine file, from row `first` of it on, and the state of each.

    `number`: the file's own, in the order in which files came. `redriven`: by row, the job that redrove a record.
    """

    file: QuarantineFile
    number: int
    job_id: str
    written_at: datetime
    first: int
    count: int
    redriven: dict[int, str]
