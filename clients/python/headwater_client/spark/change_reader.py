"""Reads of the feed: each task of Spark reads a range of positions, in pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headwater_client.client import Headwater
from headwater_client.models import Dataset
from headwater_client.spark.arrow_types import arrow_schema, conforming
from headwater_client.spark.options import ReadSettings

SYSTEM_COLUMNS = 6
"""The number of columns of the feed itself, which come first: offset, op, times, version, corrected offset."""


@dataclass
class ChangesPartition(InputPartition):
    """The changes with offsets from `first` to before `end`, of a feed that is kept from `earliest` on."""

    first: int
    end: int
    earliest: int


def ranges(first: int, end: int, earliest: int, size: int) -> list[InputPartition]:
    """Partitions of `size` changes."""
    return [ChangesPartition(start, min(start + size, end), earliest) for start in range(first, end, size)]


def starting_position(headwater: Headwater, settings: ReadSettings) -> int:
    """The position of the first change to read. Raises Problem."""
    start = settings.given("since", "since_version", "since_time") or {"since": 0}
    if isinstance(start.get("since"), int):
        return int(start["since"])
    page = next(headwater.change_pages(settings.path, limit=1, **start))
    return int(page.next_since) - len(page.changes)


def head(headwater: Headwater, dataset: Dataset | str) -> tuple[int, int]:
    """The position after the last change, and that of the first that is kept."""
    page = next(headwater.change_pages(dataset, since="now", limit=1))
    return int(page.next_since), page.earliest


class ChangeReader(DataSourceReader):
    """Reads a range of the feed. `until`: the end of the feed when the data frame was made, if that is known."""

    def __init__(self, settings: ReadSettings, schema: StructType, until: int | None) -> None:
        self._settings = settings
        self._schema = schema
        self._until = until

    def partitions(self) -> list[InputPartition]:
        """Raises Problem."""
        settings = self._settings
        with settings.connect() as headwater:
            first = starting_position(headwater, settings)
            now, earliest = head(headwater, settings.path)
            end = min(each for each in (settings.until, self._until, now) if each is not None)
            if first < earliest or first > now:
                # The service describes what is wrong with the position.
                next(headwater.change_pages(settings.path, since=first, limit=1))
        return ranges(first, end, earliest, settings.changes_per_task)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of a partition, in order."""
        if isinstance(partition, ChangesPartition):
            return changes_of(self._settings, self._schema, partition)
        return iter(())


def changes_of(
    settings: ReadSettings, schema: StructType, partition: ChangesPartition
) -> Iterator[pa.RecordBatch]:
    """The changes of a range, in order. Raises Problem."""
    wanted = arrow_schema(schema)
    # The range may begin or end between a -C and its +C. The service keeps the two together, so the neighbours of the
    # range are requested, too, and left out here.
    since = max(partition.first - 1, partition.earliest)
    with settings.connect() as headwater:
        now, _ = head(headwater, settings.path)
        pages = headwater.change_tables(
            settings.path,
            since=since,
            until=min(partition.end + 1, now),
            columns=settings.columns,
            where=settings.where,
            partitions=settings.partitions,
        )
        for page in pages:
            table = page.to_arrow()
            # The column of the offset is the first, whatever the dataset calls it.
            offset = table.column(0)
            within = pc.and_(pc.greater_equal(offset, partition.first), pc.less(offset, partition.end))
            yield from conforming(iter(table.filter(within).to_batches()), wanted)
