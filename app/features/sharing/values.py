"""Shares, their recipients, and what a recipient sees."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from app.core.catalog.values import Dataset
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

SCHEMA: Final = "default"
"""The one schema that each share has."""
SHARE_TOKEN: Final = re.compile(r"hwr_[A-Za-z0-9_-]{43}")
"""The token of a recipient. It has not the form of an API key."""
SHARING_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
"""The name of a share or of a table in one. Clients split `share.schema.table` at the dots."""
DATASETS_MAX: Final = 1_000
"""Datasets of a share."""
OVERLAP_SECONDS: Final = 86_400
"""How long the token before is valid after a rotation, unless the request says otherwise."""
OVERLAP_SECONDS_MAX: Final = 30 * 86_400


class DeletedRows(str, Enum):
    """How a recipient without a filter or a mask gets a file of which rows are deleted."""

    RENDERED = "rendered"
    """Without these rows."""
    VECTOR = "vector"
    """As it is stored, with a deletion vector: the deleted rows are in the bytes until a compaction."""


class SharedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset of a share. `name`: its own, which a rename changes. `table`: its name in the share, which stays."""

    id: str
    name: str
    table: str


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A share of a tenant. `datasets`: by the name of the table. `revision` counts its changes."""

    id: str
    name: str
    deleted_rows: DeletedRows
    datasets: tuple[SharedDataset, ...]
    revision: int
    created_at: datetime


class NewShare(msgspec.Struct, frozen=True, kw_only=True):
    """A share to make, or to change one into. `tables`: the names of the tables, by the ids of the datasets."""

    name: str
    deleted_rows: DeletedRows
    tables: dict[str, str]


class RecipientGrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a recipient sees of a dataset, which is named by its id: a name may be given to another dataset."""

    dataset_id: str
    where: str | None = None
    mask: tuple[str, ...] = ()

    @property
    def access(self) -> RowAccess:
        """What the grant shows of its dataset."""
        return RowAccess(where=() if self.where is None else (self.where,), masked=self.mask)


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient of a share, without its tokens.

    `grants`: None for all of the share; else the other datasets do not exist for it. `previous_token_until`: until when
    the token before the present one is valid; None if there is none. `last_used_at`: exact to a minute.
    """

    id: str
    share_id: str
    name: str
    grants: tuple[RecipientGrant, ...] | None
    expires_at: datetime | None
    requests_per_second: int | None
    previous_token_until: datetime | None
    last_used_at: datetime | None
    created_at: datetime
    created_by: str | None
    revision: int


class NewRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient to make, or to change one into. `schemas`: those that its conditions were checked against, by the id
    of the dataset.
    """

    name: str
    grants: tuple[RecipientGrant, ...] | None
    expires_at: datetime | None
    requests_per_second: int | None
    schemas: dict[str, int] = {}


class IssuedRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient with a new token, which cannot be read again."""

    recipient: Recipient
    token: str

    def __repr__(self) -> str:
        return f"IssuedRecipient(recipient={self.recipient.id!r})"


class RecipientShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a recipient."""

    id: str
    name: str


class SharedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a recipient sees: a dataset, and what it sees of it at this moment.

    `schema`: that of Delta Sharing, which is `default`. `deleted_rows`: what the share says of files with deleted rows.
    """

    share_id: str
    share: str
    schema: str = SCHEMA
    name: str
    dataset: Dataset
    access: RowAccess
    deleted_rows: DeletedRows


class ChangeVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with changes: those at the offsets [first_offset, next_offset) of the feed."""

    version: int
    committed_at: datetime
    first_offset: int
    next_offset: int


def folded(name: str) -> str:
    """The form by which names of sharing are compared."""
    return name.lower()


def access_to(grants: Sequence[RecipientGrant] | None, dataset_id: str) -> RowAccess | None:
    """What a recipient with these grants sees of a dataset of its share; None if it does not exist for it."""
    if grants is None:
        return EVERYTHING
    return next((each.access for each in grants if each.dataset_id == dataset_id), None)


def new_share_token() -> str:
    """256 random bits behind a prefix that scanners for leaked secrets can recognise."""
    return f"hwr_{secrets.token_urlsafe(32)}"


def share_token_digest(token: str) -> bytes:
    """The stored form of a token. Its text is random and long, so a plain hash cannot be reversed."""
    return hashlib.sha256(token.encode()).digest()
