"""The ports of reports to a Hive metastore, and the state that is kept between reports."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Protocol

import msgspec

from app.features.metastore.report import HiveReport, HiveTable
from app.features.overview.values import PartitionRecord


class Metastore(Protocol):
    """A Hive metastore."""

    def reported(self, table: HiveTable) -> int | None:
        """The version of the dataset that was reported last; None if the table does not exist.

        Raises MetastoreRefused, also if another dataset owns the table.
        """
        ...

    def report(self, report: HiveReport, *, seconds_max: float) -> int | None:
        """Updates the table, then its partitions one by one, to the report, and records the version last.

        It is idempotent. Returns how many of the partitions it updated in that time: if not all, the version is not
        recorded. None if the table had to be created again, so partitions that were reported before are missing.
        Raises MetastoreRefused.
        """
        ...


class PartitionIndex(Protocol):
    """The partitions of a version, as far as the catalogue knows them."""

    def partitions(
        self, tenant_id: str, dataset_id: str, version: int, *, skip: int, limit: int
    ) -> list[PartitionRecord]:
        """Up to `limit` partitions by path, after the first `skip`."""
        ...


class TouchedPartitions(Protocol):
    """Which partitions had files added or removed."""

    def touched(self, tenant_id: str, dataset_id: str, since: int, until: int) -> set[str] | None:
        """Those of versions (since, until] by path; None if one of these versions is no longer kept."""
        ...


METASTORE_RECONCILER: Final = "metastore"
"""The name of the reconciler that reports datasets."""


class MetastoreState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a dataset's reports, which the reconciler keeps.

    `error`: why the last report failed; `failures`: how many failed in a row; `retry_at`: when the next is tried.
    `begun`: the version as of which all partitions are being reported; those up to the path `after` have been.
    `waits_since`: the time of the first commit that is not reported, while a dataset that is written to is waited for.
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
    waits_since: datetime | None = None
