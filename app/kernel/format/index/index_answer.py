"""Whether a write must read a data file, according to the file's index."""

from __future__ import annotations

from enum import Enum


class FileAnswer(str, Enum):
    """Whether the file is read, and the reason. `scan_*`: the file has no index, so its keys are read. `merged`: the
    whole group is read, with its logs or because it is halved. `not_consulted`: the write does not look up old rows.
    """

    IN_SCOPE = "in_scope"
    OUT_OF_SCOPE = "out_of_scope"
    ONLY = "only_file"
    SMALL = "small_file"
    OF_BUCKET = "bucket"
    BLOOM_MAY_HOLD = "bloom_may_hold"
    BLOOM_HOLDS_NONE = "bloom_holds_none"
    RECORD_FOUND = "record_found"
    RECORD_FOUND_NONE = "record_found_none"
    SCAN_FOUND = "scan_found"
    SCAN_FOUND_NONE = "scan_found_none"
    MERGED = "merged"
    NOT_CONSULTED = "not_consulted"

    @property
    def read(self) -> bool:
        """Whether the file may have a row that is changed, or receives new rows."""
        return self not in _NOT_READ


_NOT_READ = (
    FileAnswer.OUT_OF_SCOPE,
    FileAnswer.BLOOM_HOLDS_NONE,
    FileAnswer.RECORD_FOUND_NONE,
    FileAnswer.SCAN_FOUND_NONE,
    FileAnswer.NOT_CONSULTED,
)
