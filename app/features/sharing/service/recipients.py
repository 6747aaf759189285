"""The recipients of shares, as a tenant manages them: their grants, and their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from app.access.tenants.values import Principal
from app.core.catalog.ports import DatasetLookup
from app.features.sharing.errors import InvalidShare
from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.values import (
    IssuedRecipient,
    NewRecipient,
    Recipient,
    RecipientGrant,
    Share,
    new_share_token,
)
from app.infra.identifiers import new_id
from app.kernel.format.errors import FieldError, InvalidFilter
from app.kernel.format.identifiers import is_uuid
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import Page
from app.kernel.sql.conditions.parse import parse_filter


class GrantEntry(NamedTuple):
    """A grant as a request states it. `dataset`: the id or the name of a dataset of the share."""

    dataset: str
    where: str | None
    mask: tuple[str, ...]


class RecipientRequest(NamedTuple):
    """What a request says of a recipient. `grants`: None for all of the share."""

    name: str
    grants: Sequence[GrantEntry] | None
    expires_at: datetime | None
    requests_per_second: int | None


class RecipientPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a request changes of a recipient; what is unset stays."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    grants: Sequence[GrantEntry] | msgspec.UnsetType | None = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    requests_per_second: int | msgspec.UnsetType | None = msgspec.UNSET


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipients:
    """The recipients of the shares of tenants."""

    catalog: DatasetLookup
    shares: ShareStore
    store: ShareRecipientStore

    def create(
        self, principal: Principal, share: str, request: RecipientRequest
    ) -> tuple[Share, IssuedRecipient]:
        """A recipient with its token, which is not returned again, and its share.

        A principal with grants must state those of the recipient: without, it would see what the share gets later.

        Raises NotFound, InvalidShare, RecipientExists, SchemaChanged, QuotaExceeded.
        """
        tenant_id = principal.tenant_id
        its_share = self.shares.get(tenant_id, share)
        _check_name(request.name)
        _check_end(request.expires_at)
        _check_reach(principal, request.grants)
        grants, schemas = self._grants(tenant_id, its_share, request.grants)
        new = NewRecipient(
            name=request.name,
            grants=grants,
            expires_at=request.expires_at,
            requests_per_second=request.requests_per_second,
            schemas=schemas,
        )
        token = new_share_token()
        recipient = self.store.add(tenant_id, its_share.id, new_id(), new, token, created_by=principal.actor)
        return its_share, IssuedRecipient(recipient=recipient, token=token)

    def get(self, tenant_id: str, share: str, recipient: str) -> tuple[Share, Recipient]:
        """The recipient of this id or name, and its share. Raises NotFound."""
        its_share = self.shares.get(tenant_id, share)
        return its_share, self.store.get(tenant_id, its_share.id, recipient)

    def list(
        self, tenant_id: str, share: str, *, page_size: int, page_token: str | None
    ) -> tuple[Share, Page]:
        """The share, and Recipient items of it by name. Raises NotFound, InvalidRequest."""
        its_share = self.shares.get(tenant_id, share)
        return its_share, self.store.list(tenant_id, its_share.id, page_size=page_size, page_token=page_token)

    def change(
        self, principal: Principal, share: str, recipient: str, patch: RecipientPatch, *, revision: int
    ) -> tuple[Share, Recipient]:
        """Changes a recipient that must be at `revision` still, also for the links that it has.

        Raises NotFound, PreconditionFailed, InvalidShare, RecipientExists, SchemaChanged.
        """
        tenant_id = principal.tenant_id
        its_share, before = self.get(tenant_id, share, recipient)
        name = before.name
        if not isinstance(patch.name, msgspec.UnsetType):
            name = patch.name
            _check_name(name)
        grants, schemas = before.grants, dict[str, int]()
        if not isinstance(patch.grants, msgspec.UnsetType):
            _check_reach(principal, patch.grants)
            grants, schemas = self._grants(tenant_id, its_share, patch.grants)
        expires_at = before.expires_at
        if not isinstance(patch.expires_at, msgspec.UnsetType):
            expires_at = patch.expires_at
            _check_end(expires_at)
        rate = before.requests_per_second
        if not isinstance(patch.requests_per_second, msgspec.UnsetType):
            rate = patch.requests_per_second
        new = NewRecipient(
            name=name, grants=grants, expires_at=expires_at, requests_per_second=rate, schemas=schemas
        )
        return its_share, self.store.change(tenant_id, its_share.id, before.id, new, revision=revision)

    def rotate(
        self, principal: Principal, share: str, recipient: str, *, overlap_seconds: int
    ) -> tuple[Share, IssuedRecipient]:
        """Another token. The one before is valid for the overlap in seconds, and for 0 it ends.

        Raises NotFound, RecipientExpired, Forbidden if the recipient may come to see more than the principal.
        """
        its_share, token = self.shares.get(principal.tenant_id, share), new_share_token()
        changed_recipient = self.store.rotate(
            principal.tenant_id,
            its_share.id,
            recipient,
            token,
            overlap_seconds=overlap_seconds,
            only_with_grants=principal.grants is not None,
        )
        return its_share, IssuedRecipient(recipient=changed_recipient, token=token)

    def delete(self, tenant_id: str, share: str, recipient: str, *, revision: int | None) -> None:
        """Deletes a recipient, whose tokens end at once. Raises NotFound, PreconditionFailed."""
        its_share = self.shares.get(tenant_id, share)
        self.store.delete(tenant_id, its_share.id, recipient, revision=revision)

    def _grants(
        self, tenant_id: str, share: Share, entries: Sequence[GrantEntry] | None
    ) -> tuple[tuple[RecipientGrant, ...] | None, dict[str, int]]:
        """The grants, and the schemas that they were checked against by the id of the dataset. Raises InvalidShare."""
        if entries is None:
            return None, {}
        grants: dict[str, RecipientGrant] = {}
        schemas, errors = dict[str, int](), list[FieldError]()
        for number, entry in enumerate(entries):
            at = f"/grants/{number}"
            dataset_id = next(
                (each.id for each in share.datasets if entry.dataset in (each.id, each.name)), None
            )
            if dataset_id is None:
                detail = "expected the id or the name of a dataset of the share"
                errors.append(FieldError(pointer=f"{at}/dataset", detail=detail))
                continue
            if dataset_id in grants:
                detail = "expected one grant for each dataset"
                errors.append(FieldError(pointer=f"{at}/dataset", detail=detail))
                continue
            grants[dataset_id] = RecipientGrant(dataset_id=dataset_id, where=entry.where, mask=entry.mask)
            if grants[dataset_id].access.restricted:
                schema = self.catalog.get(tenant_id, dataset_id).definition.schema
                schemas[dataset_id] = schema.id
                errors += _faults(entry, schema, at)
        if errors:
            raise InvalidShare.of(errors)
        return tuple(grants.values()), schemas


def _faults(entry: GrantEntry, schema: Schema, at: str) -> list[FieldError]:
    """What of a grant does not fit the schema of its dataset."""
    errors = []
    if entry.where is not None:
        try:
            parse_filter(entry.where, schema)
        except InvalidFilter as error:
            errors.append(FieldError(pointer=f"{at}/where", detail=error.detail))
    names = set(schema.names())
    for number, column in enumerate(entry.mask):
        detail = None
        if column not in names:
            detail = "expected a column of the dataset"
        elif column in entry.mask[:number]:
            detail = "expected each column once"
        if detail is not None:
            errors.append(FieldError(pointer=f"{at}/mask/{number}", detail=detail))
    return errors


def _check_name(name: str) -> None:
    """Raises InvalidShare."""
    detail = None
    if not name.strip() or not name.isprintable():
        detail = "expected a text without control characters that is not blank"
    elif is_uuid(name):
        detail = "expected a name that has not the form of an id"
    elif "/" in name or name in (".", ".."):
        detail = "expected a name without `/` that is not `.` or `..`: it is a part of the recipient's path"
    if detail is not None:
        raise InvalidShare.of([FieldError(pointer="/name", detail=detail)])


def _check_end(expires_at: datetime | None) -> None:
    """Raises InvalidShare."""
    if expires_at is not None and expires_at <= datetime.now(UTC):
        detail = "expected a time in the future: delete a recipient to end it now"
        raise InvalidShare.of([FieldError(pointer="/expires_at", detail=detail)])


def _check_reach(principal: Principal, grants: Sequence[GrantEntry] | None) -> None:
    """Raises InvalidShare for a recipient that may come to see more than the principal."""
    if grants is None and principal.grants is not None:
        detail = (
            "expected the datasets that the recipient sees: without grants it would see what is added to the share "
            "later, too, and this key has grants itself"
        )
        raise InvalidShare.of([FieldError(pointer="/grants", detail=detail)])
