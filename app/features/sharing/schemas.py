"""The JSON of shares and recipients: what requests send and what responses hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.params import PathParameter

from app.access.tenants.quotas import RequestRate
from app.features.sharing.service.recipients import GrantEntry, RecipientPatch, RecipientRequest
from app.features.sharing.service.shares import DatasetEntry, ShareRequest
from app.features.sharing.values import (
    DATASETS_MAX,
    OVERLAP_SECONDS,
    OVERLAP_SECONDS_MAX,
    SCHEMA,
    DeletedRows,
    IssuedRecipient,
    Recipient,
    Share,
)
from app.http.parameters.page_options import PageOptions
from app.kernel.sql.conditions.language import TEXT_CHARACTERS_MAX

_NAME_CHARACTERS_MAX = 255
_MASKED_MAX = 100

ShareReference: TypeAlias = Annotated[
    str, PathParameter(description="The id of a share, or its name in any capitals.")
]
RecipientReference: TypeAlias = Annotated[
    str, PathParameter(description="The id or the name of a recipient of the share.")
]
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=_NAME_CHARACTERS_MAX)]
_ShareName: TypeAlias = Annotated[_Name, msgspec.Meta(examples=["sales"])]
_RecipientName: TypeAlias = Annotated[_Name, msgspec.Meta(examples=["acme"])]
_Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class CreateSharedDataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset to share."""

    name: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The id or the name of the dataset."""
    alias: _Name | None = msgspec.field(default=None, name="as")
    """The name of its table in the share, where that of the dataset has a dot or another table has it; that of the
    dataset by default. A rename of the dataset does not change it.
    """


_SharedDatasets: TypeAlias = Annotated[tuple[CreateSharedDataset, ...], msgspec.Meta(max_length=DATASETS_MAX)]


class CreateShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A share to make."""

    name: _ShareName
    """Its name: letters, digits, `_` and `-`. Capitals do not make another name."""
    datasets: _SharedDatasets = ()
    """The datasets that it shares."""
    deleted_rows: DeletedRows = DeletedRows.RENDERED
    """What a recipient without a filter or a mask gets of a file of which rows are deleted: `rendered`, a file without
    these rows, or `vector`, the file as it is stored with a deletion vector.
    """


class UpdateShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a share to change; a member that is left out keeps its value."""

    name: _ShareName | msgspec.UnsetType = msgspec.UNSET
    """Its name, by which recipients address it."""
    datasets: _SharedDatasets | msgspec.UnsetType = msgspec.UNSET
    """All datasets that it shares, in place of those of before."""
    deleted_rows: DeletedRows | msgspec.UnsetType = msgspec.UNSET
    """What a recipient without a filter or a mask gets of a file of which rows are deleted."""


class SharedDatasetResponse(msgspec.Struct, frozen=True, kw_only=True, rename={"alias": "as"}):
    """A dataset of a share."""

    id: str
    """The id of the dataset."""
    name: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its present name."""
    alias: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The name of its table in the share."""
    table: Annotated[str, msgspec.Meta(examples=["sales.default.orders"])]
    """The table, as clients of Delta Sharing name it."""


class ShareResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A share."""

    id: str
    """Its id."""
    name: Annotated[str, msgspec.Meta(examples=["sales"])]
    """Its name."""
    datasets: list[SharedDatasetResponse]
    """The datasets that it shares, by the name of the table."""
    deleted_rows: DeletedRows
    """What a recipient without a filter or a mask gets of a file of which rows are deleted."""
    revision: int
    """The number of its changes, and its ETag."""
    created_at: datetime
    """When it was made."""


class SharePage(msgspec.Struct, frozen=True, kw_only=True):
    """Shares by name."""

    items: list[ShareResponse]
    """The shares of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ListSharesOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_shares`."""


class ListRecipientsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_recipients`."""


class RotateToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the token of a recipient is replaced."""

    overlap_seconds: Annotated[int, msgspec.Meta(ge=0, le=OVERLAP_SECONDS_MAX)] = OVERLAP_SECONDS
    """How long the token before stays valid, in seconds; 0 ends it at once."""


class CreateRecipientGrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a recipient sees of a dataset of the share."""

    dataset: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The id or the name of the dataset."""
    where: Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_CHARACTERS_MAX)] | None = None
    """A condition: only the rows for which it is true exist for the recipient."""
    mask: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MASKED_MAX)] = ()
    """The columns whose values the recipient does not see: they read as null."""


_Grants: TypeAlias = Annotated[
    tuple[CreateRecipientGrant, ...], msgspec.Meta(min_length=1, max_length=DATASETS_MAX)
]


class CreateRecipient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient to make."""

    name: _RecipientName
    """Its name, which no other recipient of the share has."""
    expires_at: _Time | None = None
    """When its tokens end; absent for never."""
    grants: _Grants | None = None
    """The datasets of the share that it sees, each with a filter and masks; absent for all of the share."""
    requests_per_second: RequestRate | None = None
    """How many requests per second it may send, beside the quota of the tenant."""


class UpdateRecipient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a recipient to change; a member that is left out keeps its value."""

    name: _RecipientName | msgspec.UnsetType = msgspec.UNSET
    """Its name."""
    expires_at: _Time | msgspec.UnsetType | None = msgspec.UNSET
    """When its tokens end; null for never."""
    grants: _Grants | msgspec.UnsetType | None = msgspec.UNSET
    """The datasets of the share that it sees; null for all of the share."""
    requests_per_second: RequestRate | msgspec.UnsetType | None = msgspec.UNSET
    """How many requests per second it may send; null for no limit of its own."""


class RecipientGrantResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipient sees of a dataset of the share."""

    dataset_id: str
    """The id of the dataset."""
    dataset: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its present name."""
    where: str | None
    """Only the rows for which this condition is true exist for the recipient; null for all rows."""
    mask: list[str]
    """The columns that read as null."""


class RecipientResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient of a share, without its tokens."""

    id: str
    """Its id, which the audit and the usage name as that of the key."""
    name: Annotated[str, msgspec.Meta(examples=["acme"])]
    """Its name."""
    share: Annotated[str, msgspec.Meta(examples=["sales"])]
    """The name of its share."""
    grants: list[RecipientGrantResponse] | None
    """The datasets of the share that it sees; null for all of the share."""
    expires_at: datetime | None
    """When its tokens end; null for never."""
    requests_per_second: int | None
    """How many requests per second it may send; null for no limit of its own."""
    previous_token_until: datetime | None
    """Until when the token before the present one is valid; null if there is none."""
    last_used_at: datetime | None
    """About when it was last active, to a minute; null if it was not."""
    created_at: datetime
    """When it was made."""
    created_by: str | None
    """The id of the key, or of the subject of the token, that made it."""
    revision: int
    """The number of its changes, and its ETag."""


class SharingProfile(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={
        "credentials_version": "shareCredentialsVersion",
        "bearer_token": "bearerToken",
        "expiration_time": "expirationTime",
    },
):
    """The profile file of a recipient, which clients of Delta Sharing read."""

    credentials_version: int
    """The version of the format: 1."""
    endpoint: Annotated[str, msgspec.Meta(examples=["https://lake.example.com/delta-sharing"])]
    """The address of the service."""
    bearer_token: Annotated[str, msgspec.Meta(examples=["hwr_…"])]
    """The token. It is only in this response."""
    expiration_time: datetime | None = None
    """When the token ends; absent for never."""


class RecipientWithProfile(RecipientResponse, frozen=True, kw_only=True):
    """A recipient with its new token."""

    profile: SharingProfile
    """The profile file, to be saved and given to the recipient. It is only in this response."""


class RecipientPage(msgspec.Struct, frozen=True, kw_only=True):
    """The recipients of a share by name."""

    items: list[RecipientResponse]
    """The recipients of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


def share_path(share: Share) -> str:
    """The path of a share."""
    return f"/shares/{share.id}"


def share_response(share: Share) -> ShareResponse:
    """The response for a share."""
    return ShareResponse(
        id=share.id,
        name=share.name,
        datasets=[
            SharedDatasetResponse(
                id=each.id,
                name=each.name,
                alias=each.table,
                table=f"{share.name}.{SCHEMA}.{each.table}",
            )
            for each in share.datasets
        ],
        deleted_rows=share.deleted_rows,
        revision=share.revision,
        created_at=share.created_at,
    )


def recipient_response(share: Share, recipient: Recipient) -> RecipientResponse:
    """The response for a recipient."""
    return RecipientResponse(**_members(share, recipient))


def issued_response(share: Share, issued: IssuedRecipient, public_url: str) -> RecipientWithProfile:
    """The response for a recipient with a new token. `public_url`: the address of the service."""
    return RecipientWithProfile(
        **_members(share, issued.recipient),
        profile=SharingProfile(
            credentials_version=1,
            endpoint=f"{public_url}/delta-sharing",
            bearer_token=issued.token,
            expiration_time=issued.recipient.expires_at,
        ),
    )


def new_share(data: CreateShare) -> ShareRequest:
    """What a request says of a new share."""
    return ShareRequest(data.name, _entries(data.datasets), data.deleted_rows)


def share_change(data: UpdateShare) -> ShareRequest:
    """What a request changes of a share."""
    return ShareRequest(
        None if isinstance(data.name, msgspec.UnsetType) else data.name,
        None if isinstance(data.datasets, msgspec.UnsetType) else _entries(data.datasets),
        None if isinstance(data.deleted_rows, msgspec.UnsetType) else data.deleted_rows,
    )


def new_recipient(data: CreateRecipient) -> RecipientRequest:
    """What a request says of a new recipient."""
    grants = None if data.grants is None else _grants(data.grants)
    return RecipientRequest(data.name, grants, data.expires_at, data.requests_per_second)


def recipient_change(data: UpdateRecipient) -> RecipientPatch:
    """What a request changes of a recipient."""
    grants = data.grants
    return RecipientPatch(
        name=data.name,
        grants=grants if grants is None or isinstance(grants, msgspec.UnsetType) else _grants(grants),
        expires_at=data.expires_at,
        requests_per_second=data.requests_per_second,
    )


def _entries(datasets: Sequence[CreateSharedDataset]) -> list[DatasetEntry]:
    return [DatasetEntry(each.name, each.alias) for each in datasets]


def _grants(grants: Sequence[CreateRecipientGrant]) -> list[GrantEntry]:
    return [GrantEntry(each.dataset, each.where, each.mask) for each in grants]


def _members(share: Share, recipient: Recipient) -> dict[str, Any]:
    members = msgspec.structs.asdict(recipient)
    del members["share_id"]
    names = {each.id: each.name for each in share.datasets}
    grants = None
    if recipient.grants is not None:
        grants = [
            RecipientGrantResponse(
                dataset_id=each.dataset_id,
                dataset=names[each.dataset_id],
                where=each.where,
                mask=list(each.mask),
            )
            for each in recipient.grants
            if each.dataset_id in names
        ]
    return {**members, "share": share.name, "grants": grants}
