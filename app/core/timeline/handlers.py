"""The timeline of a dataset."""

from __future__ import annotations

from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.timeline.schemas import InstantPage, ReadTimelineOptions, instant_filter, instant_response
from app.core.timeline.service.read_timeline import ReadTimeline
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads


@get(
    "/datasets/{dataset:str}/timeline",
    operation_id="read_timeline",
    summary="Read the timeline",
    tags=["timeline"],
    opt=needs(KeyScope.READ),
)
async def read_timeline(
    options: Provided[ReadTimelineOptions],
    path_dataset: Provided[Dataset],
    granted_datasets: Provided[GrantedDatasets],
    read_timeline: Provided[ReadTimeline],
    threads: Provided[Threads],
) -> InstantPage:
    """Lists every attempt to change the dataset, the latest request first: waiting, running, completed, rolled back.

    Archived instants are included.
    """
    page = await threads.run(
        read_timeline.shown,
        granted_datasets,
        path_dataset,
        instant_filter(options),
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return InstantPage(items=[instant_response(each) for each in page.items], next_page_token=page.next_token)
