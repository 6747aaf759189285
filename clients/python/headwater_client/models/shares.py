"""Values of shares. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

DeletedRows = Literal["rendered", "vector"]
"""How a recipient without a filter or a mask gets a file of which rows are deleted."""


class CreateRecipient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient to make."""

    name: str
    """Its name, which no other recipient of the share has."""
    expires_at: datetime | None = None
    """When its tokens end; absent for never."""
    grants: tuple[CreateRecipientGrant, ...] | None = None
    """The datasets of the share that it sees, each with a filter and masks; absent for all of the share."""
    requests_per_second: int | None = None
    """How many requests per second it may send, beside the quota of the tenant."""


class CreateRecipientGrant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a recipient sees of a dataset of the share."""

    dataset: str
    """The id or the name of the dataset."""
    where: str | None = None
    """A condition: only the rows for which it is true exist for the recipient."""
    mask: tuple[str, ...] = ()
    """The columns whose values the recipient does not see: they read as null."""


class CreateShare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A share to make."""

    name: str
    """Its name: letters, digits, `_` and `-`. Capitals do not make another name."""
    datasets: tuple[CreateSharedDataset, ...] = ()
    """The datasets that it shares."""
    deleted_rows: DeletedRows | None = None
    """What a recipient without a filter or a mask gets of a file of which rows are deleted: `rendered`, a file without
    these rows, or `vector`, the file as it is stored with a deletion vector.
    """


class CreateSharedDataset(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"as_": "as"}
):
    """A dataset to share."""

    name: str
    """The id or the name of the dataset."""
    as_: str | None = None
    """The name of its table in the share, where that of the dataset has a dot or another table has it; that of the
    dataset by default. A rename of the dataset does not change it.
    """


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient of a share, without its tokens."""

    id: str
    """Its id, which the audit and the usage name as that of the key."""
    name: str
    """Its name."""
    share: str
    """The name of its share."""
    grants: tuple[RecipientGrant, ...] | None
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


class RecipientGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipient sees of a dataset of the share."""

    dataset_id: str
    """The id of the dataset."""
    dataset: str
    """Its present name."""
    where: str | None
    """Only the rows for which this condition is true exist for the recipient; null for all rows."""
    mask: tuple[str, ...]
    """The columns that read as null."""


class RecipientPage(msgspec.Struct, frozen=True, kw_only=True):
    """The recipients of a share by name."""

    items: tuple[Recipient, ...]
    """The recipients of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class RecipientWithProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient with its new token."""

    id: str
    """Its id, which the audit and the usage name as that of the key."""
    name: str
    """Its name."""
    share: str
    """The name of its share."""
    grants: tuple[RecipientGrant, ...] | None
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
    profile: SharingProfile
    """The profile file, to be saved and given to the recipient. It is only in this response."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A share."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    datasets: tuple[SharedDataset, ...]
    """The datasets that it shares, by the name of the table."""
    deleted_rows: str
    """What a recipient without a filter or a mask gets of a file of which rows are deleted."""
    revision: int
    """The number of its changes, and its ETag."""
    created_at: datetime
    """When it was made."""


class SharePage(msgspec.Struct, frozen=True, kw_only=True):
    """Shares by name."""

    items: tuple[Share, ...]
    """The shares of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class SharedDataset(msgspec.Struct, frozen=True, kw_only=True, rename={"as_": "as"}):
    """A dataset of a share."""

    id: str
    """The id of the dataset."""
    name: str
    """Its present name."""
    as_: str
    """The name of its table in the share."""
    table: str
    """The table, as clients of Delta Sharing name it."""


class SharingProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile file of a recipient, which clients of Delta Sharing read."""

    shareCredentialsVersion: int
    """The version of the format: 1."""
    endpoint: str
    """The address of the service."""
    bearerToken: str
    """The token. It is only in this response."""
    expirationTime: datetime | None = None
    """When the token ends; absent for never."""
