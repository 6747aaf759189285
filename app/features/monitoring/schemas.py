"""The JSON of the overview."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from app.access.tenants.usage import HOURS_KEPT
from app.core.catalog.schemas import ListDatasetsOptions
from app.core.catalog.values import DatasetFilter, DatasetSummary
from app.features.monitoring.values import (
    DatasetNumbers,
    DatasetProblem,
    HourNumbers,
    StoredDataset,
    StoredSums,
)

DATASETS_MAX: Final = 100
"""The most datasets that are requested by their ids or names."""


class ReadOverviewOptions(ListDatasetsOptions, frozen=True, kw_only=True):
    """The options of `read_overview`."""

    dataset: Annotated[list[str], msgspec.Meta(max_length=DATASETS_MAX)] | None = None
    """The id or the name of a dataset; repeated: these datasets. One that does not exist is left out."""

    @property
    def selection(self) -> DatasetFilter:
        """The filter of the list."""
        references = None if self.dataset is None else frozenset(self.dataset)
        return msgspec.structs.replace(super().selection, references=references)


class DatasetOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in numbers. For a key that sees a part of it, all but the first six members are null."""

    dataset: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its name."""
    id: str
    """Its id."""
    is_view: bool
    """Whether it is the dataset of a view."""
    labels: Annotated[dict[str, str], msgspec.Meta(examples=[{"team": "ops"}])]
    """Its labels."""
    version: int
    """Its version."""
    committed_at: datetime | None
    """When that was committed; null before the first commit."""
    problems: list[DatasetProblem] | None
    """What is wrong with it; `[]` for a healthy dataset."""
    rows: int | None
    """Its rows, as of `sampled_at`. Where there are `logs`, these may add, change or delete rows."""
    deleted_rows: int | None
    """Rows in its files that deletion vectors delete."""
    files: int | None
    """Its data files."""
    logs: int | None
    """Those of them that are logs, which readers merge in."""
    size_bytes: int | None
    """The bytes of its data files."""
    sampled_at: datetime | None
    """When these numbers were counted: about a minute after the last commit; null before the first sample."""
    writes: int | None
    """Its writes in the last 24 hours, the current one included."""
    rows_in: int | None
    """The rows that these have inserted, updated or deleted."""
    consumers: int | None
    """The consumers of its feed."""
    lag: int | None
    """The changes that the consumer farthest behind has not committed; null without consumers."""
    farthest_consumer: Annotated[str, msgspec.Meta(examples=["billing"])] | None
    """The name of that consumer; null if none lacks a change."""
    quarantined: int | None
    """Its records in quarantine that were not redriven."""


class ReadOverviewHoursOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `read_overview_hours`."""

    dataset: Annotated[str, msgspec.Meta(examples=["orders"])] | None = None
    """The id or the name of a dataset; all datasets by default."""
    hours: Annotated[int, msgspec.Meta(ge=1, le=HOURS_KEPT)] = 24
    """The number of hours."""


class OverviewHours(msgspec.Struct, frozen=True, kw_only=True):
    """Writes by hour."""

    items: list[HourNumbers]
    """The hours, the oldest first, the current one last."""


class OverviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets in numbers, by name."""

    items: list[DatasetOverview]
    """The datasets of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ReadLargestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `list_stored_datasets`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """How many datasets are listed at most."""


class StoredDatasets(msgspec.Struct, frozen=True, kw_only=True):
    """The datasets of all tenants that store most."""

    items: list[StoredDataset]
    """The datasets, the largest first."""
    sums: StoredSums
    """What all tenants together store."""


_UNKNOWN: Final = dict.fromkeys(DatasetNumbers.__struct_fields__)


def dataset_overview(dataset: DatasetSummary, numbers: DatasetNumbers | None) -> DatasetOverview:
    """The JSON of a dataset. `numbers`: None for a reader that sees a part of it."""
    members = _UNKNOWN
    if numbers is not None:
        members = msgspec.structs.asdict(numbers) | {"problems": list(numbers.problems)}
    return DatasetOverview(
        dataset=dataset.name,
        id=dataset.id,
        is_view=dataset.is_view,
        labels=dataset.labels,
        version=dataset.version,
        committed_at=dataset.committed_at,
        **members,
    )
