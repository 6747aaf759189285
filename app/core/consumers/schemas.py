"""The JSON of consumers: what requests send and what responses hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final
from urllib.parse import quote

import msgspec

from app.core.changes.position_parameters import (
    NextPosition,
    ReaderPosition,
    SinceTime,
    SinceVersion,
    position_value,
    reader_start_of,
)
from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.consumers.values import ConsumerChange, ConsumerLease, ConsumerStatus, MaxLag
from app.http.parameters.page_options import PageOptions
from app.http.parameters.resource_names import DatasetIdentity
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED
from app.kernel.sql.conditions.row_access import RowAccess

_LEASE_SECONDS_MAX: Final = 3_600
_PATH: Final = "/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"

Member = Annotated[str, msgspec.Meta(examples=["worker-1"])]
Token = Annotated[str, msgspec.Meta(examples=["6440f3b1a2c00-1"])]


class PutConsumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A consumer to create, or the change of one: the position that it commits, its bounds, or both.

    At most one of `offset`, `since_version` and `since_time` is set; a new consumer needs one.
    """

    offset: ReaderPosition | None = None
    """The position: what is before it is processed. It goes forward, unless `reset`. `snapshot` is the first row of the
    latest version, after whose rows the changes after it follow.
    """
    since_version: SinceVersion | None = None
    """The position of the first change that was committed at this version or later."""
    since_time: SinceTime | None = None
    """The position of the first change that was committed at this time or later."""
    max_lag: MaxLag | msgspec.UnsetType | None = msgspec.UNSET
    """How far behind the head the consumer may be and still keep the changes after its position; null for no limit."""
    reset: bool = False
    """Whether the position may go back."""
    lease: Annotated[str, msgspec.Meta(examples=["6440f3b1a2c00-1"])] | None = None
    """The token of the lease under which the position is committed."""


class CreateLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member that leases a consumer."""

    member: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=255,
            pattern=rf"^[^\x00-\x1f]*{PATTERN_END}",
            examples=["worker-1"],
            extra_json_schema={EXPECTED: "a string of 1–255 characters without control characters"},
        ),
    ]
    """The name of the member."""
    seconds: Annotated[int, msgspec.Meta(ge=1, le=_LEASE_SECONDS_MAX, examples=[60])]
    """How long the lease lasts."""
    token: Token | None = None
    """The token of the lease to extend."""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer is behind the head."""

    changes: Annotated[int, msgspec.Meta(examples=[25])]
    """How many changes it has not committed."""
    seconds: Annotated[float, msgspec.Meta(examples=[1.5])]
    """The age of the oldest of them."""


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The member that leases the consumer."""

    member: Member
    """The name of the member."""
    until: datetime
    """When the lease ends, unless it is extended."""


class ConsumerLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a consumer's resources."""

    self_: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/consumers/warehouse"])]
    """The consumer."""
    dataset: Annotated[str, msgspec.Meta(examples=[_PATH])]
    """Its dataset."""
    changes: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/changes?consumer=warehouse"])]
    """The feed from its position on."""


class FeedConsumerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer: a position in the feed of a dataset. The changes before it are processed."""

    name: Annotated[str, msgspec.Meta(examples=["warehouse"])]
    """Its name."""
    dataset: DatasetIdentity
    """The dataset."""
    kind: ConsumerKind
    """What moves the position: `reader` for one that clients commit, the others are moved by the service."""
    revision: int
    """Counts the changes of the consumer; its ETag."""
    offset: NextPosition
    """The position."""
    head: Annotated[int, msgspec.Meta(examples=[145])]
    """The end of the feed."""
    earliest: Annotated[int, msgspec.Meta(examples=[0])]
    """The first offset that can still be read."""
    lag: Lag | None
    """How far the position is behind the head; null for a key that sees a part of the dataset, since it would count
    hidden changes.
    """
    max_lag: MaxLag | None
    """How far behind the head it may be and still keep the changes after its position; null for no limit."""
    expired: Annotated[bool, msgspec.Meta(examples=[False])]
    """Whether changes that it has not committed are gone."""
    lease: LeaseHolder | None
    """The member that leases it; null for none."""
    created_at: datetime
    """When it was created."""
    moved_at: datetime
    """When its position last changed."""
    links: ConsumerLinks
    """The paths of its resources."""


class ConsumerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Consumers by name."""

    items: list[FeedConsumerResponse]
    """The consumers of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of a consumer."""

    token: Token
    """The token that the member sends with its commits."""
    until: datetime
    """When the lease ends, unless it is extended."""
    offset: NextPosition
    """The position at which the member continues."""
    revision: int
    """The revision of the consumer; its ETag."""


class ListConsumersOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_consumers`."""


def consumer_change(data: PutConsumer) -> ConsumerChange:
    """The change that a request makes. Raises InvalidRequest."""
    return ConsumerChange(
        offset=reader_start_of(data.offset, data.since_version, data.since_time, name="offset"),
        max_lag=data.max_lag,
        reset=data.reset,
        lease=data.lease,
    )


def consumer_response(
    status: ConsumerStatus, dataset: DatasetIdentity, access: RowAccess
) -> FeedConsumerResponse:
    """The JSON of a consumer, for a reader with this access to the dataset."""
    consumer, bounds = status.consumer, status.bounds
    path = f"/datasets/{dataset.id}"
    name = quote(consumer.name, safe="")
    return FeedConsumerResponse(
        name=consumer.name,
        dataset=dataset,
        kind=consumer.kind,
        revision=consumer.revision,
        offset=position_value(consumer.place),
        head=bounds.next_offset,
        earliest=bounds.earliest,
        lag=None
        if access.restricted
        else Lag(changes=status.behind_changes, seconds=round(status.behind_seconds, 3)),
        max_lag=_max_lag(consumer),
        expired=status.expired,
        lease=_holder(status),
        created_at=consumer.created_at,
        moved_at=consumer.moved_at,
        links=ConsumerLinks(
            self_=f"{path}/consumers/{name}", dataset=path, changes=f"{path}/changes?consumer={name}"
        ),
    )


def lease_response(lease: ConsumerLease) -> LeaseResponse:
    """The JSON of a lease."""
    return LeaseResponse(
        token=lease.token, until=lease.until, offset=position_value(lease.position), revision=lease.revision
    )


def _max_lag(consumer: Consumer) -> MaxLag | None:
    if consumer.max_lag_rows is None and consumer.max_lag_seconds is None:
        return None
    return MaxLag(changes=consumer.max_lag_rows, seconds=consumer.max_lag_seconds)


def _holder(status: ConsumerStatus) -> LeaseHolder | None:
    consumer = status.consumer
    # The worker that serves a follower is not shown.
    if consumer.kind is not ConsumerKind.READER or consumer.member is None or consumer.lease_until is None:
        return None
    if status.lease_seconds <= 0:
        return None
    return LeaseHolder(member=consumer.member, until=consumer.lease_until)
