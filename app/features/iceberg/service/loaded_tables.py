"""Loads tables: their metadata, and keys for their files."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec

from app.access.tenants.values import Principal
from app.features.iceberg.service.manifests import SnapshotManifests
from app.features.iceberg.service.rendered_tables import RenderedTable, RenderedTables
from app.features.iceberg.service.response_pieces import Piece
from app.features.iceberg.values import NAMESPACE, SnapshotSelection
from app.features.objects.ports import ServedTable
from app.features.objects.service.keys import TableKeys
from app.features.objects.values import REGION, VendedKey, table_location
from app.kernel.sql.conditions.row_access import access_digest

_TAG: Final = re.compile(r'(?:W/)?"([0-9a-f]{32})-([0-9]{1,12})"')


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRequest:
    """A request for a table. `url`: the address under which the client reaches the service, without a slash at its end.

    `entity_tags`: what the client has of it already, as If-None-Match states it.
    """

    principal: Principal
    url: str
    selection: SnapshotSelection = SnapshotSelection.LATEST
    entity_tags: str = ""


class LoadedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is sent. `pieces`: of the body; none if the client has it already, with keys that still last."""

    entity_tag: str
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedTables:
    """Loads tables."""

    tables: RenderedTables
    manifests: SnapshotManifests
    keys: TableKeys

    def load(self, table: ServedTable, request: TableRequest) -> LoadedTable:
        """The table and a key for its files. Of one that is seen in part, the files of the head are rendered before.

        Raises TableNotCarried, Forbidden, RestrictedGrant, GrantNotApplicable, RenderingUnderWay, Unavailable.
        """
        now = datetime.now(UTC)
        key = self.keys.issue(request.principal, table.dataset, table.variant, now)
        document = self.tables.render(table, request.selection)
        self.manifests.prepare(table)
        state = _state(document, table, request)
        if tag := _lasting_tag(request.entity_tags, state, (key.expires_at - now) / 2 + now):
            return LoadedTable(entity_tag=tag)
        location = table_location(table.dataset.id, table.variant)
        head = msgspec.json.encode({"metadata-location": f"{location}/{document.metadata_path}"})
        tail = msgspec.json.encode(
            {
                "config": _config(table, request, key),
                "storage-credentials": [{"prefix": location, "config": _key_config(request, key)}],
            }
        )
        return LoadedTable(
            entity_tag=f'"{state}-{int(key.expires_at.timestamp())}"',
            pieces=(
                Piece.of(head[:-1] + b',"metadata":'),
                document.metadata,
                Piece.of(b"," + tail[1:] + b"\n"),
            ),
        )

    def credentials(self, table: ServedTable, request: TableRequest) -> dict[str, dict[str, str]]:
        """A fresh key for the files of the table, by the prefix of their addresses.

        Raises Forbidden, RestrictedGrant, Unavailable.
        """
        dataset, variant = table.dataset, table.variant
        key = self.keys.issue(request.principal, dataset, variant, datetime.now(UTC))
        return {table_location(dataset.id, variant): _key_config(request, key)}


def _state(document: RenderedTable, table: ServedTable, request: TableRequest) -> str:
    """A digest of all that a response has beside the key, and of whose key it is."""
    principal = request.principal
    facts = (
        document.name.digest,
        table.variant,
        access_digest(table.access).hex(),
        request.url,
        principal.tenant_id,
        principal.actor,
        principal.grants,
        sorted(principal.scopes),
    )
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:32]


def _lasting_tag(entity_tags: str, state: str, until: datetime) -> str | None:
    """The tag of this state whose key is valid beyond `until`, if the client has it."""
    for tag in _TAG.finditer(entity_tags):
        if tag[1] == state and int(tag[2]) >= until.timestamp():
            return f'"{tag[1]}-{tag[2]}"'
    return None


def _config(table: ServedTable, request: TableRequest, key: VendedKey) -> dict[str, str]:
    name = quote(table.dataset.definition.name, safe="")
    return {
        **_key_config(request, key),
        "client.refresh-credentials-enabled": "true",
        # Relative to the address of the catalogue, as clients reach it.
        "client.refresh-credentials-endpoint": (
            f"v1/{table.variant}/namespaces/{NAMESPACE}/tables/{name}/credentials"
        ),
    }


def _key_config(request: TableRequest, key: VendedKey) -> dict[str, str]:
    config = {
        # ClickHouse takes a path for the bucket, and doubles it without the slash.
        "s3.endpoint": f"{request.url}/",
        "s3.path-style-access": "true",
        "s3.region": REGION,
        "client.region": REGION,
        "s3.access-key-id": key.access_key_id,
        "s3.secret-access-key": key.secret_access_key,
        "s3.session-token-expires-at-ms": str(int(key.expires_at.timestamp()) * 1_000),
    }
    return config if key.session_token is None else config | {"s3.session-token": key.session_token}
