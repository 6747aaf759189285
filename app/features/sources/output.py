"""Where a kind of source writes what it reads: bodies on the storage of the dataset, and rejected records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import BinaryIO, Self, cast

import msgspec

from app.core.jobs.errors import EngineStopped
from app.core.timeline.values import SourceItem
from app.features.sources.ports import Fetched, FetchedBody, PartRead
from app.infra.files.checksums import HashingSink
from app.infra.files.quarantine_file import QuarantineFileStore, QuarantineSink
from app.infra.files.storage import Storage
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.format.definition.schema_merge import typed_shape
from app.kernel.format.errors import Fault, FieldError, MalformedBody
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput, RowRun
from app.kernel.format.schema.shapes import Shape, common_members
from app.kernel.format.schema.types import parse_type


def _always() -> bool:
    return True


class FetchOutput(AbstractContextManager["FetchOutput"]):
    """The `Output` of one call of `fetch`."""

    def __init__(
        self, storage: Storage, prefix: str, quarantine: str | None, is_live: Callable[[], bool] = _always
    ) -> None:
        """`prefix`: of the paths of bodies. `quarantine`: that of the file of rejected records; None to reject none.

        `is_live`: whether the round was not cancelled.
        """
        self._storage = storage
        self._prefix = prefix
        self._quarantine = quarantine
        self._is_live = is_live
        self._bodies: list[FetchedBody] = []
        self._columns: dict[str, Shape] = {}
        self._rejection: str | None = None
        self._open = ExitStack()
        self._sink: QuarantineSink | None = None
        self._records: BadRecords | None = None

    @contextmanager
    def body(
        self,
        form: Format,
        origin: str,
        *,
        gzip: bool = False,
        item: SourceItem | None = None,
        columns: Mapping[str, str | Shape] | None = None,
        runs: list[RowRun] | None = None,
    ) -> Iterator[BinaryIO]:
        """See `Output.body`."""
        path = f"{self._prefix}-{len(self._bodies):05d}.body"
        with self._storage.create(path) as file:
            sink = HashingSink(file)
            yield cast("BinaryIO", sink)
        if sink.size_bytes == 0:
            self._storage.delete([path])
            self._columns = common_members(self._columns, _shapes(columns or {}))
            return
        raw = RawInput(
            path=path,
            size_bytes=sink.size_bytes,
            checksum=sink.checksum,
            format=form,
            gzip=gzip,
            origin=origin,
            shapes=None if not columns else _shapes(columns),
            runs=tuple(runs or ()),
        )
        if item is not None:
            item = msgspec.structs.replace(item, checksum=sink.checksum, size_bytes=sink.size_bytes)
        self._bodies.append(FetchedBody(raw=raw, item=item))

    def check(self) -> None:
        """See `Output.check`."""
        if not self._is_live():
            raise EngineStopped("the round was cancelled, or its source deleted")

    def reject(self, payload: bytes, detail: str, position: int) -> None:
        """See `Output.reject`."""
        if self._quarantine is None:
            raise MalformedBody(detail)
        self._rejection = self._rejection or detail
        if self._records is None:
            store = QuarantineFileStore(self._storage)
            self._sink = self._open.enter_context(store.sink(f"{self._quarantine}.parquet"))
            self._records = BadRecords(write=self._sink.write)
        fault = FieldError(pointer="", detail=detail)
        self._records.put(BadRecord(position=position, errors=(fault,), payload=payload))

    def reject_item(self, item: SourceItem, detail: str) -> SourceItem:
        """See `Output.reject_item`."""
        error = MalformedBody(detail)
        if self._quarantine is None:
            raise error
        self._rejection = self._rejection or detail
        return msgspec.structs.replace(item, error=Fault.of(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._records is not None and kind is None:
            self._records.close()
        self._open.__exit__(kind, error, trace)

    def fetched(self, part: PartRead) -> Fetched:
        """What was written and read. Called once the output is left."""
        quarantine_file = None if self._sink is None else self._sink.file
        return Fetched(
            bodies=tuple(self._bodies),
            position=part.position,
            items=part.items,
            quarantine_files=() if quarantine_file is None else (quarantine_file,),
            columns=self._columns,
            rejection=self._rejection,
        )


def _shapes(columns: Mapping[str, str | Shape]) -> dict[str, Shape]:
    """The shapes of columns of these types."""
    return {
        name: typed_shape(parse_type(column)) if isinstance(column, str) else column
        for name, column in columns.items()
    }
