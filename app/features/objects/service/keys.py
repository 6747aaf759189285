"""Keys for one table: derived from a secret of the deployment, so that nothing is stored for a key.

The access key id states what the key is for, and the secret is its HMAC: a client that changes the id knows no secret
for it.
"""

from __future__ import annotations

import hmac
import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec

from app.access.errors import scope_missing
from app.access.tenants.values import Actor, ActorKind, KeyScope, Principal
from app.core.catalog.values import Dataset
from app.features.objects.errors import KeyRefusal, TableKeyRefused
from app.features.objects.service.secrets import KnownSecrets
from app.features.objects.values import SHARE, SHARE_VECTORS, VARIANTS, VendedKey
from app.kernel.format.errors import RestrictedGrant
from app.kernel.sql.conditions.row_access import access_digest

_VERSION: Final = 2
# Version, variant, generation, kind of the actor; expiry; tenant, dataset, actor; digests of the name and the access.
_LAYOUT: Final = struct.Struct(">BBIBI16s16s16s8s8s")
# Their places are parts of keys.
_KEY_VARIANTS: Final = (*VARIANTS, SHARE, SHARE_VECTORS)
_KINDS: Final = (ActorKind.KEY, ActorKind.TOKEN, ActorKind.RECIPIENT)
_DIGEST_BYTES: Final = 8
# Those that are read and derived once, of the latest.
_KEYS_MAX: Final = 1_024
_PREFIX: Final = "HW"
_ID: Final = re.compile(r"HW([A-Za-z0-9_-]{100})")
_FORM: Final = "the access key is none of this service: get one with the table"


class TableKey(msgspec.Struct, frozen=True, kw_only=True):
    """What an access key id states. `expires_at`: in seconds since the epoch.

    `actor_id`: of what `kind` says. `name_digest`: of the name that the dataset had when the key was made. `access`:
    the `access_digest` of what its owner saw of it then.
    """

    generation: int
    variant: str
    expires_at: int
    tenant_id: str
    dataset_id: str
    actor_id: str
    kind: ActorKind
    name_digest: bytes
    access: bytes

    @property
    def actor(self) -> Actor:
        """Whose key it is."""
        token_ends = self.expires_at if self.kind is ActorKind.TOKEN else None
        return Actor(tenant_id=self.tenant_id, id=self.actor_id, kind=self.kind, token_ends=token_ends)

    @property
    def access_key_id(self) -> str:
        """The text of the key: at most 128 characters, none of which is `/`."""
        packed = _LAYOUT.pack(
            _VERSION,
            _KEY_VARIANTS.index(self.variant),
            self.generation,
            _KINDS.index(self.kind),
            self.expires_at,
            UUID(self.tenant_id).bytes,
            UUID(self.dataset_id).bytes,
            UUID(self.actor_id).bytes,
            self.name_digest,
            self.access,
        )
        return _PREFIX + _text(packed)

    def names(self, dataset: Dataset) -> bool:
        """Whether the dataset still has the name with which the key was made."""
        return hmac.compare_digest(self.name_digest, _name_digest(dataset))


@lru_cache(maxsize=_KEYS_MAX)
def table_key(access_key_id: str) -> TableKey:
    """The key with this id, which proves nothing yet. Raises TableKeyRefused for a text that is no id of a key."""
    id_match = _ID.fullmatch(access_key_id)
    if id_match is None:
        raise TableKeyRefused(KeyRefusal.UNKNOWN_KEY, _FORM)
    version, variant, generation, kind, expires_at, tenant, dataset, actor, name_digest, access = (
        _LAYOUT.unpack(urlsafe_b64decode(id_match[1]))
    )
    if version != _VERSION or variant >= len(_KEY_VARIANTS) or kind >= len(_KINDS):
        raise TableKeyRefused(KeyRefusal.UNKNOWN_KEY, _FORM)
    return TableKey(
        generation=generation,
        variant=_KEY_VARIANTS[variant],
        expires_at=expires_at,
        tenant_id=str(UUID(bytes=tenant)),
        dataset_id=str(UUID(bytes=dataset)),
        actor_id=str(UUID(bytes=actor)),
        kind=_KINDS[kind],
        name_digest=name_digest,
        access=access,
    )


@lru_cache(maxsize=_KEYS_MAX)
def secret_of(access_key_id: str, deployment_secret: bytes) -> str:
    """The secret access key of a key."""
    return _text(hmac.digest(deployment_secret, b"table key:" + access_key_id.encode(), sha256))


def session_token_of(access_key_id: str) -> str:
    """The session token of a key. It adds nothing to the signature: clients that renew keys expect one."""
    return f"{access_key_id}.t"


def may_load(principal: Principal, name: str) -> bool:
    """Whether the principal may get keys for the table of a dataset.

    A token that sees a part gets none: a request for a file has only the id of its subject, and what it may see is in
    the token.
    """
    if KeyScope.READ not in principal.scopes_on(name):
        return False
    return principal.kind is not ActorKind.TOKEN or not principal.access(name).restricted


@dataclass(frozen=True, kw_only=True, slots=True)
class TableKeys:
    """Makes keys. `seconds`: for how long a key can be used."""

    secrets: KnownSecrets
    seconds: float

    def issue(self, principal: Principal, dataset: Dataset, variant: str, now: datetime) -> VendedKey:
        """A key for the files of a table, which ends with the credential of the principal at the latest.

        `variant`: one of `VARIANTS`, `SHARE` or `SHARE_VECTORS`. Raises Forbidden, Unavailable, RestrictedGrant; see
        `may_load`.
        """
        name = dataset.definition.name
        if KeyScope.READ not in principal.scopes_on(name):
            raise scope_missing(KeyScope.READ.value)
        access = principal.access(name)
        if not may_load(principal, name):
            raise RestrictedGrant(
                f"this token sees a part of {name!r} only, and tokens get no keys for files of parts: use an API key "
                "with the same `where` and `mask`",
                dataset=name,
            )
        generation, deployment_secret = self.secrets.latest()
        key = TableKey(
            generation=generation,
            variant=variant,
            expires_at=int(min(self._ends(principal, now)).timestamp()),
            tenant_id=principal.tenant_id,
            dataset_id=dataset.id,
            actor_id=principal.actor,
            kind=principal.kind,
            name_digest=_name_digest(dataset),
            access=access_digest(access),
        )
        return VendedKey(
            access_key_id=key.access_key_id,
            secret_access_key=secret_of(key.access_key_id, deployment_secret),
            session_token=session_token_of(key.access_key_id),
            expires_at=datetime.fromtimestamp(key.expires_at, UTC),
        )

    def _ends(self, principal: Principal, now: datetime) -> list[datetime]:
        token_end = None if principal.token is None else principal.token.expires_at
        ends = (now + timedelta(seconds=self.seconds), token_end, principal.expires_at)
        return [end for end in ends if end is not None]


def _name_digest(dataset: Dataset) -> bytes:
    return sha256(dataset.definition.name.encode()).digest()[:_DIGEST_BYTES]


def _text(packed: bytes) -> str:
    return urlsafe_b64encode(packed).decode().rstrip("=")
