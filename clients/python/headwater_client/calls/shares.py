"""Shares: datasets for readers outside of the tenant, and the recipients who read them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from headwater_client.models import (
    CreateRecipient,
    CreateRecipientGrant,
    CreateShare,
    CreateSharedDataset,
    Recipient,
    RecipientPage,
    RecipientWithProfile,
    Share,
    SharePage,
)
from headwater_client.transport.connection import Connection, decoded
from headwater_client.transport.pages import JSON

AnyShare = Share | str
"""A share, specified by its value, its id or its name."""
AnyRecipient = Recipient | RecipientWithProfile | str
"""A recipient of a share, specified by its value, its id or its name."""


class ShareCalls(Connection):
    """Makes and manages shares and their recipients."""

    async def create_share(
        self,
        name: str,
        datasets: Sequence[CreateSharedDataset | str],
        *,
        deleted_rows: Literal["rendered", "vector"] = "rendered",
        idempotency_key: str | None = None,
    ) -> Share:
        """Makes a share of datasets, each by its name, or with another name for its table."""
        entries = [CreateSharedDataset(name=each) if isinstance(each, str) else each for each in datasets]
        new = CreateShare(name=name, datasets=tuple(entries), deleted_rows=deleted_rows)
        return decoded(Share, await self._create("/shares", new, idempotency_key))

    async def get_share(self, share: AnyShare) -> Share:
        """The current state of a share."""
        return decoded(Share, await self._get(_path(share)))

    def shares(self) -> AsyncGenerator[Share, None]:
        """The tenant's shares by name."""
        return self._items("/shares", SharePage, {})

    async def change_share(self, share: AnyShare, *, revision: int | None = None, **members: Any) -> Share:
        """Changes `name`, `datasets` or `deleted_rows`.

        `revision` is the revision for which the change was made; by default that of the value `share`, or the current
        one. Raises Problem `precondition-failed` if the share is at another revision.
        """
        if revision is None:
            revision = (await self.get_share(share) if isinstance(share, str) else share).revision
        return decoded(Share, await self._change(_path(share), members, f'"{revision}"'))

    async def delete_share(self, share: AnyShare) -> None:
        """Deletes a share and its recipients, whose tokens end at once."""
        await self._send("DELETE", _path(share))

    async def create_recipient(
        self,
        share: AnyShare,
        name: str,
        *,
        grants: Sequence[CreateRecipientGrant] | None = None,
        expires_at: datetime | None = None,
        requests_per_second: int | None = None,
        idempotency_key: str | None = None,
    ) -> RecipientWithProfile:
        """Makes a recipient of a share, of all of it or of what the grants show. Only this reply has the `profile`."""
        new = CreateRecipient(
            name=name,
            grants=None if grants is None else tuple(grants),
            expires_at=expires_at,
            requests_per_second=requests_per_second,
        )
        path = f"{_path(share)}/recipients"
        return decoded(RecipientWithProfile, await self._create(path, new, idempotency_key))

    async def get_recipient(self, share: AnyShare, recipient: AnyRecipient) -> Recipient:
        """The current state of a recipient, without its token."""
        return decoded(Recipient, await self._get(_recipient_path(share, recipient)))

    def recipients(self, share: AnyShare) -> AsyncGenerator[Recipient, None]:
        """The recipients of a share by name."""
        return self._items(f"{_path(share)}/recipients", RecipientPage, {})

    async def change_recipient(
        self, share: AnyShare, recipient: AnyRecipient, *, revision: int | None = None, **members: Any
    ) -> Recipient:
        """Changes `name`, `grants`, `expires_at` or `requests_per_second`, at once. `revision`: see `change_share`."""
        if revision is None:
            current = await self.get_recipient(share, recipient) if isinstance(recipient, str) else recipient
            revision = current.revision
        path = _recipient_path(share, recipient)
        return decoded(Recipient, await self._change(path, members, f'"{revision}"'))

    async def rotate_recipient_token(
        self, share: AnyShare, recipient: AnyRecipient, *, overlap_seconds: int = 86_400
    ) -> RecipientWithProfile:
        """Makes another token. The one before stays valid for the overlap, in seconds; with 0 it ends at once."""
        path = f"{_recipient_path(share, recipient)}/rotate-token"
        body = msgspec.json.encode({"overlap_seconds": overlap_seconds})
        answer = await self._send("POST", path, body=body, headers={"Content-Type": JSON})
        return decoded(RecipientWithProfile, answer)

    async def delete_recipient(self, share: AnyShare, recipient: AnyRecipient) -> None:
        """Deletes a recipient, whose tokens and links end at once."""
        await self._send("DELETE", _recipient_path(share, recipient))


def _path(share: AnyShare) -> str:
    name = share if isinstance(share, str) else share.id
    return f"/shares/{quote(name, safe='')}"


def _recipient_path(share: AnyShare, recipient: AnyRecipient) -> str:
    name = recipient if isinstance(recipient, str) else recipient.id
    return f"{_path(share)}/recipients/{quote(name, safe='')}"
