"""The JSON of timelines, and the options of their list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.core.timeline.instants import InstantEntry, InstantRecord
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.problems import fault_document
from app.kernel.format.instant import Action, InstantState


class ReadTimelineOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `read_timeline`."""

    action: list[Action] | None = None
    """The instants that do this only; repeated, one of these."""
    state: list[InstantState] | None = None
    """The instants in this state only; repeated, in one of these."""
    since_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: what was requested then or later."""
    until_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: what was requested before."""


class InstantResponse(InstantEntry, frozen=True, kw_only=True):
    """An entry of a timeline: an attempt to change the dataset."""

    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why it failed; null unless it did."""


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: list[InstantResponse]
    """The instants of this page; fewer than `page_size` where many archived ones had to be passed over."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


def instant_response(record: InstantRecord) -> InstantResponse:
    """The JSON of a timeline entry."""
    values = msgspec.structs.asdict(record)
    return InstantResponse(
        **values | {"error": None if record.error is None else fault_document(record.error)}
    )
