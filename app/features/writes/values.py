"""A write as the API has understood it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from app.core.catalog.values import Upload
from app.infra.files.received_body import StoredBody
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.definition.new_dataset import CreateWithRows
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a request, in memory or on storage."""

    content: bytes | StoredBody
    format: Format
    gzip: bool = False
    in_envelope: bool = False
    """Whether they are a member of a JSON body, with the options beside them; the body as a whole otherwise."""


class UploadReferences(msgspec.Struct, frozen=True, kw_only=True):
    """Earlier uploads, each to be read as `format`, in the order of their rows."""

    upload_ids: tuple[str, ...]
    format: Format
    gzip: bool = False


class UploadLink(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes of an upload are sent by PUT, with these headers, before a moment."""

    upload: Upload
    url: str
    headers: dict[str, str]
    expires_at: datetime


class IncomingWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A write as the API has understood it; without a source it brings no rows.

    `request_hash` covers everything that makes it that write, but not the `actor`. `rows_digest`: identifies the rows
    of a batch; None if they are not compared. `create`: the dataset to register if there is none.
    """

    operation: Operation
    options: WriteOptions = WriteOptions()
    source: Body | UploadReferences | None
    idempotency_key: str | None = None
    request_hash: str = ""
    rows_digest: str | None = None
    actor: str | None = None
    create: CreateWithRows | None = None


class NewPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a write goes that registers its dataset: the name of the path, and the id that the dataset will have."""

    tenant_id: str
    dataset_id: str
    name: str
