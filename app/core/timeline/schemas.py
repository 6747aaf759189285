"""The JSON of timelines, and the options of their list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from app.core.timeline.instants import InstantEntry, InstantFilter, InstantRecord
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.parameters.query_parameters import INT64_MAX
from app.http.problems import fault_document
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.instant import Action, InstantState

_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]


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
    version: _Version | None = None
    """The instants of this version only: what made it, and the savepoints and tags that name it."""
    from_version: _Version | None = None
    """The instants of this version and later ones; those that made no version are left out."""
    to_version: _Version | None = None
    """The instants of this version and earlier ones; those that made no version are left out."""


def instant_filter(options: ReadTimelineOptions) -> InstantFilter:
    """The instants that the options select. Raises InvalidRequest."""
    first, last = options.from_version, options.to_version
    if options.version is not None and (first, last) != (None, None):
        detail = "not together with from_version or to_version; remove it"
        raise InvalidRequest(f"version: {detail}", [FieldError(pointer="/version", detail=detail)])
    if first is not None and last is not None and first > last:
        detail = f"expected at most {last}, which is to_version"
        raise InvalidRequest(f"from_version: {detail}", [FieldError(pointer="/from_version", detail=detail)])
    return InstantFilter(
        actions=None if options.action is None else tuple(options.action),
        states=None if options.state is None else tuple(options.state),
        since=options.since_time,
        until=options.until_time,
        from_version=first if options.version is None else options.version,
        to_version=last if options.version is None else options.version,
    )


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
