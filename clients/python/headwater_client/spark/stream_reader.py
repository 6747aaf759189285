"""Streaming reads of the feed: the offset of Spark is the position in the feed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headwater_client.spark.change_reader import (
    ChangesPartition,
    changes_of,
    head,
    ranges,
    starting_position,
)
from headwater_client.spark.options import ReadSettings

_POSITION = "position"


class ChangeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the feed in micro-batches, which never separate a -C from its +C."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._client = settings.connect()
        self._target: int | None = settings.until

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - PySpark's name, as those below
        """The position where a new query starts."""
        return {_POSITION: starting_position(self._client, self._settings)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`max_changes_per_trigger`, or no limit."""
        most = self._settings.max_changes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next micro-batch. Raises Problem `offset-ahead` if the feed is not that of the checkpoint."""
        first = start[_POSITION]
        end, _ = head(self._client, self._settings.path)
        if end < first:
            # The service describes what is wrong with the position.
            next(self._client.change_pages(self._settings.path, since=first, limit=1))
        if self._target is not None:
            end = min(end, self._target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return {_POSITION: self._after_pair(end) if end > first else first}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """The end of the feed."""
        return {_POSITION: head(self._client, self._settings.path)[0]}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends at what is now the end of the feed."""
        now, _ = head(self._client, self._settings.path)
        self._target = now if self._target is None else min(now, self._target)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The parts of a micro-batch. Raises Problem `offset-expired` if the feed no longer has its changes."""
        first = start[_POSITION]
        if first >= end[_POSITION]:
            return []
        page = next(self._client.change_pages(self._settings.path, since=first, limit=1))
        return ranges(first, end[_POSITION], page.earliest, self._settings.changes_per_task)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of a part."""
        if isinstance(partition, ChangesPartition):
            return changes_of(self._settings, self._schema, partition)
        return iter(())

    def stop(self) -> None:
        """Closes the connections."""
        self._client.close()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None}

    def _after_pair(self, position: int) -> int:
        """The position, or the one after it if that is between a -C and its +C."""
        page = next(self._client.change_pages(self._settings.path, since=position - 1, limit=1))
        return int(page.next_since)
