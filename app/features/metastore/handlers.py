"""The reports of a dataset to a Hive metastore."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.metastore.service.reports import MetastoreReports
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads


class MetastoreReportResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The Hive table of a dataset, and the last report to it."""

    database: Annotated[str, msgspec.Meta(examples=["lake"])]
    """The database of the Hive table."""
    table: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The name of the Hive table."""
    version: int | None
    """The version that was reported last; null before the first report."""
    head: Annotated[int, msgspec.Meta(examples=[7])]
    """The latest version of the dataset."""
    reported_at: datetime | None
    """When that version was reported; null before the first report."""
    error: str | None
    """Why the last report failed; null if it did not."""
    failures: int
    """How many reports have failed in a row."""
    retry_at: datetime | None
    """When the next report is tried after a failure; null if none failed."""


@get(
    "/datasets/{dataset:str}/metastore",
    operation_id="get_metastore_report",
    summary="Get the last report to a Hive metastore",
    tags=["partitions"],
    opt=needs(KeyScope.READ),
)
async def get_metastore_report(
    path_dataset: Provided[Dataset], metastore_reports: Provided[MetastoreReports], threads: Provided[Threads]
) -> MetastoreReportResponse:
    """Returns how far the dataset was reported to the Hive table that its `services.metastore` names."""
    state = await threads.run(metastore_reports.state, path_dataset)
    return msgspec.convert(
        {**msgspec.structs.asdict(state), "head": path_dataset.version}, MetastoreReportResponse
    )
