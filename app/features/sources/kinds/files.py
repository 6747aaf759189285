"""Kind `files`: the files below a folder or a prefix, each once, in the order of their names.

A file is read once for each content: the ledger has its name, size and time of change, and its checksum. The position
counts the files; where a round starts follows from the ledger alone, so files may arrive under any name.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from fnmatch import fnmatchcase
from time import time_ns
from typing import Annotated, Any, BinaryIO, Final

import msgspec

from app.core.timeline.values import SourceItem
from app.features.sources.kinds.configs import checked_config, refused_config
from app.features.sources.kinds.folders import SETTING, FoundFile, open_folder
from app.features.sources.ports import (
    Ledger,
    Output,
    Part,
    PartRead,
    Place,
    Position,
    RoundLimits,
    RoundPlan,
    SourceEnvironment,
    SourceLag,
)
from app.features.sources.values import refused_source
from app.infra.files.folders.admitted import RefusedPath, admitted_root
from app.infra.kafka.errors import SourceUnavailable
from app.kernel.codecs.messages.avro_file import AvroFile
from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema
from app.kernel.codecs.messages.records import json_line
from app.kernel.format.errors import FieldError
from app.kernel.format.rows.formats import Format

_GZIP: Final = 16 + zlib.MAX_WBITS
_EXCERPT_BYTES: Final = 1024
_STEP_BYTES: Final = 4 * 1024 * 1024
_NAMES_MAX: Final = 10_000
_SECOND_NS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BLANKS: Final = b" \t\r\n\xef\xbb\xbf"


class FileFormatName(str, Enum):
    """The formats of files. `json` is an array of objects, or objects one after another, each on a line.

    `avro` is an object container file; its records are read as lines of JSON.
    """

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    AVRO = "avro"


class FilesStart(str, Enum):
    """All files are read."""

    EARLIEST = "earliest"


class FilesStartAt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Files with later names than one, or that were written at a time or later."""

    after: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)] | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def admits(self, file: FoundFile) -> bool:
        """Whether the file is read."""
        if self.after is not None:
            return file.name > self.after
        if self.time is None:
            return True
        return file.modified_ns // 1_000 >= (self.time - _EPOCH) // timedelta(microseconds=1)


_COMPRESSED_INSIDE: Final = (FileFormatName.PARQUET, FileFormatName.ARROW, FileFormatName.AVRO)


class FilesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source of files. `pattern`: a glob that the name of a file must match, without its folder.

    `start`: which files are left out for ever.
    """

    path: str
    format: FileFormatName
    pattern: str = "*"
    start: FilesStart | FilesStartAt = FilesStart.EARLIEST
    gzip: bool = False


class Files:
    """See the module."""

    needs = "a file with a row"
    secrets: frozenset[str] = frozenset()
    in_task = True

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        files_config = checked_config(config, FilesConfig)
        try:
            admitted_root(files_config.path, environment.roots, SETTING)
        except RefusedPath as reason:
            raise refused_source("/config/path", str(reason)) from None
        if files_config.gzip and files_config.format in _COMPRESSED_INSIDE:
            detail = f"{files_config.format.value} files are compressed inside"
            raise refused_config(FieldError(pointer="/config/gzip", detail=detail))
        if isinstance(files_config.start, FilesStartAt) and (files_config.start.after is None) == (
            files_config.start.time is None
        ):
            raise refused_config(FieldError(pointer="/config/start", detail="expected either after or time"))
        complete_config: dict[str, Any] = msgspec.to_builtins(files_config)
        return complete_config

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        unread = self._unread(place, ledger)
        files: list[FoundFile] = []
        size_bytes = 0
        for file in unread[: limits.items]:
            size_bytes += file.size_bytes
            if files and size_bytes > limits.bytes:
                break
            files.append(file)
        if not files:
            return None
        return RoundPlan(
            parts=tuple(
                Part(content={"name": file.name, "fingerprint": file.fingerprint}, size_bytes=file.size_bytes)
                for file in files
            ),
            position={"files": position.get("files", 0) + len(files), "last": files[-1].name},
            more=len(unread) > len(files),
        )

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`. A file that has changed since it was listed is left to a later round."""
        del limits
        config = msgspec.convert(place.config, FilesConfig)
        name, fingerprint = part.content["name"], part.content["fingerprint"]
        try:
            with open_folder(config.path, place.environment.roots).open(name) as (file, stream):
                if file.fingerprint != fingerprint:
                    return PartRead()
                read = _transcoded if config.format is FileFormatName.AVRO else _copied
                return read(stream, file, config, output)
        except FileNotFoundError:
            return PartRead()

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """See `SourceKind.lag`."""
        del position
        unread = self._unread(place, ledger)
        oldest_ns = min((file.modified_ns for file in unread), default=None)
        return SourceLag(
            items=len(unread),
            bytes=sum(file.size_bytes for file in unread),
            seconds=0.0 if oldest_ns is None else max(0.0, (time_ns() - oldest_ns) / _SECOND_NS),
        )

    def committed(self, place: Place, position: Position) -> None:
        """Nothing else monitors folders."""

    def _unread(self, place: Place, ledger: Ledger) -> list[FoundFile]:
        config = msgspec.convert(place.config, FilesConfig)
        files = [
            file
            for file in open_folder(config.path, place.environment.roots).files()
            if fnmatchcase(file.name.rpartition("/")[2], config.pattern)
            and (config.start is FilesStart.EARLIEST or config.start.admits(file))
        ]
        unread_files: list[FoundFile] = []
        for first in range(0, len(files), _NAMES_MAX):
            some = files[first : first + _NAMES_MAX]
            unread = ledger.unread([(file.name, file.fingerprint) for file in some])
            unread_files += [file for file in some if (file.name, file.fingerprint) in unread]
        return unread_files


def _copied(stream: BinaryIO, file: FoundFile, config: FilesConfig, output: Output) -> PartRead:
    item = SourceItem(name=file.name, fingerprint=file.fingerprint)
    first = stream.read(_STEP_BYTES)
    if not first:
        return PartRead(items=(item,))
    form, size_bytes = _format_of(config, first), 0
    with output.body(form, f"file {file.name}", gzip=config.gzip, item=item) as body:
        while first:
            body.write(first)
            size_bytes += len(first)
            first = stream.read(_STEP_BYTES)
        if size_bytes != file.size_bytes:
            raise SourceUnavailable(f"file {file.name} is being written", item=file.name)
    return PartRead()


def _transcoded(stream: BinaryIO, file: FoundFile, config: FilesConfig, output: Output) -> PartRead:
    """The records of a file of Avro, as lines. Those that cannot be rows are rejected."""
    del config
    item = SourceItem(name=file.name, fingerprint=file.fingerprint)
    rows = 0
    columns: dict[str, str] = {}
    try:
        records = AvroFile(stream)
        with output.body(Format.NDJSON, f"file {file.name}", item=item, columns=columns) as body:
            columns.update({name: column.type for name, column in records.members.items()})
            for number, (payload, record) in enumerate(records.records()):
                if isinstance(record, BadMessage):
                    output.reject(payload, f"record {number} of file {file.name}: {record}", number)
                else:
                    rows += 1
                    body.write(json_line(record) + b"\n")
    except (BadMessage, UnsupportedSchema) as error:
        return PartRead(items=(output.reject_item(item, f"file {file.name}: {error}"),))
    # Without a body, nothing else records that the file was read.
    return PartRead(items=() if rows else (item,))


def _format_of(config: FilesConfig, first: bytes) -> Format:
    if config.format is not FileFormatName.JSON:
        return Format(config.format.value)
    if config.gzip:
        with suppress(zlib.error):
            first = zlib.decompressobj(_GZIP).decompress(first, _EXCERPT_BYTES)
    return Format.JSON_ROWS if first.lstrip(_BLANKS).startswith(b"[") else Format.NDJSON
