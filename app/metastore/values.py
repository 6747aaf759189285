"""What is asked of a Hive metastore, and what is remembered of reports to it."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Protocol

import msgspec

from app.metastore.report import HiveReport, HiveTable


class Metastore(Protocol):
    """A Hive metastore."""

    def reported(self, table: HiveTable) -> int | None:
        """The version of the dataset that was reported last; None if there is no table yet.

        Raises MetastoreRefused, also for a table that is not this dataset's.
        """
        ...

    def report(self, report: HiveReport, *, seconds_max: float) -> int | None:
        """Makes the table, and its partitions one after another, what the report says, and notes the version last.

        Telling the same again changes nothing. Returns how many of the partitions it came to in that time: if that is
        not all, the version is not noted. None if the table had to be made anew, so that partitions are missing that
        were told of before. Raises MetastoreRefused.
        """
        ...


class TouchedPartitions(Protocol):
    """Which partitions had files come or go."""

    def touched(self, tenant_id: str, dataset_id: str, since: int, until: int) -> set[str] | None:
        """Those of versions (since, until] by path; None if versions from there on are not kept, so nobody knows."""
        ...


METASTORE_RECONCILER: Final = "metastore"
"""The name of the reconciler that reports datasets."""


class MetastoreState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a dataset was reported: what its keeper remembers.

    `error`: why it is behind, with how many `failures` in a row; it is tried again at `retry_at`. `begun`: all of its
    partitions are being told of since that version, and those up to the path `after` have been.
    """

    database: str
    table: str
    version: int | None = None
    reported_at: datetime | None = None
    error: str | None = None
    failures: int = 0
    retry_at: datetime | None = None
    begun: int | None = None
    after: str | None = None
