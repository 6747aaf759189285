"""Reading the table: small snapshot pages, at any version."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
import pyarrow as pa

from app.lake.dataset import DatasetDefinition
from app.lake.errors import FieldError, InvalidRequest
from app.lake.evolution import under_schema
from app.lake.file_group import DataFile
from app.services.model import Dataset, RowPage
from app.services.ports import FileReader, Timeline
from app.services.projection import projection


class _Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a walk over a version stands: the rows of the version's files, in order of path, one after another."""

    version: int
    row: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadTable:
    """Pages of a dataset's rows."""

    timeline: Timeline
    reader: FileReader

    def page(
        self,
        dataset: Dataset,
        *,
        version: int | None,
        as_of: datetime | None,
        columns: Sequence[str] | None,
        limit: int,
        page_token: str | None,
    ) -> RowPage:
        """At most `limit` rows. The first page fixes the version, which its token carries on.

        Rows come in no particular order, the same on every walk over a version. Raises InvalidRequest, CorruptFile.
        """
        position = self._start(dataset, version, as_of, page_token)
        schema = projection(self._definition(dataset, position.version).schema, columns)
        files = self.timeline.live_files(dataset.tenant_id, dataset.id, position.version, None)
        rows = self._read(files, schema.to_arrow(), position.row, limit)
        reached = position.row + rows.num_rows
        more = reached < sum(file.row_count for file in files)
        token = _encode(_Position(version=position.version, row=reached)) if more else None
        return RowPage(rows=rows, version=position.version, schema_id=schema.id, next_page_token=token)

    def _definition(self, dataset: Dataset, version: int) -> DatasetDefinition:
        """The dataset under the schema that it had at a version: a look back shows the columns that there were."""
        latest = dataset.definition
        if version == dataset.version or latest.schema.id == 1:
            return latest
        return under_schema(latest, self.timeline.schema_at(dataset.tenant_id, dataset.id, version))

    def _start(
        self, dataset: Dataset, version: int | None, as_of: datetime | None, page_token: str | None
    ) -> _Position:
        if page_token is not None:
            position = _decode(page_token)
            if position.version > dataset.version or version not in (None, position.version):
                raise _bad_token()
            return position
        if version is not None and as_of is not None:
            raise InvalidRequest(
                "give version or as_of, not both", [FieldError(pointer="/as_of", detail="drop it")]
            )
        if as_of is not None:
            version = self.timeline.version_at(dataset.tenant_id, dataset.id, as_of)
        if version is not None and not 0 <= version <= dataset.version:
            detail = f"expected 0–{dataset.version}, the dataset's version"
            raise InvalidRequest(
                f"there is no version {version}",
                [FieldError(pointer="/version", detail=detail)],
                head=dataset.version,
            )
        return _Position(version=dataset.version if version is None else version, row=0)

    def _read(self, files: Sequence[DataFile], schema: pa.Schema, first_row: int, limit: int) -> pa.Table:
        tables = [schema.empty_table()]
        skip, wanted = first_row, limit
        for file in files:
            if wanted == 0:
                break
            if skip >= file.row_count:
                skip -= file.row_count
                continue
            tables.append(self.reader.read_slice(file, schema, skip, min(wanted, file.row_count - skip)))
            wanted -= tables[-1].num_rows
            skip = 0
        return pa.concat_tables(tables)


def _encode(position: _Position) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(position)).decode()


def _decode(token: str) -> _Position:
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(token), type=_Position)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise _bad_token() from error


def _bad_token() -> InvalidRequest:
    detail = "expected the next_page_token of an earlier page of this dataset, with the same version"
    return InvalidRequest("the page token is not valid", [FieldError(pointer="/page_token", detail=detail)])
