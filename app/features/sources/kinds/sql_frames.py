"""Frames from the process that reads a database to this one: values, rows, and an error or the end."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from app.features.sources.kinds.sql_dialect import ERRORS, DatabaseOutOfReach, Line
from app.infra.outbound.bounds import ReplyTooLarge
from app.infra.outbound.foreign import foreign_text

_T = TypeVar("_T")

_VALUE, _ROW, _ROW_WITH_WATERMARK, _ERROR, _END = b"vrwe."
# The kind, and the bytes of the watermark and of the content.
_HEAD: Final = struct.Struct("=BII")
_FLUSH_SECONDS: Final = 1.0


class FrameWriter:
    """Writes frames. A row waits for further ones, and no longer than until the first one after a second."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._flushed = time.monotonic()

    def value(self, value: Any) -> None:
        """Writes a value of JSON."""
        self._write(_VALUE, msgspec.json.encode(value))
        self._stream.flush()

    def row(self, row: Line) -> None:
        """Writes a row."""
        line, watermark = row
        if watermark is None:
            self._write(_ROW, line)
        else:
            self._write(_ROW_WITH_WATERMARK, line, watermark.encode())
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._stream.flush()
            self._flushed = time.monotonic()

    def end(self, error: Exception | None = None) -> None:
        """Writes the end, or the error of a session."""
        if error is None:
            self._write(_END, b"")
        else:
            self._write(_ERROR, msgspec.json.encode((type(error).__name__, str(error))))
        self._stream.flush()

    def _write(self, kind: int, content: bytes, watermark: bytes = b"") -> None:
        self._stream.write(_HEAD.pack(kind, len(watermark), len(content)) + watermark)
        self._stream.write(content)


class FrameReader:
    """Reads frames. All methods raise the errors of a session; a frame of more bytes raises ReplyTooLarge."""

    def __init__(self, stream: BinaryIO, bytes_max: int) -> None:
        self._stream = stream
        self._bytes_max = bytes_max

    def value(self, type_: type[_T]) -> _T:
        """The value that is next."""
        kind, content, _ = self._frame()
        if kind != _VALUE:
            raise DatabaseOutOfReach(f"the process that reads it has sent {kind} instead of a value")
        return msgspec.json.decode(content, type=type_)

    def rows(self) -> Iterator[Line]:
        """The rows up to the end."""
        while True:
            kind, content, watermark = self._frame()
            if kind == _ROW_WITH_WATERMARK:
                yield content, watermark.decode()
            elif kind == _ROW:
                yield content, None
            else:
                return

    def _frame(self) -> tuple[int, bytes, bytes]:
        kind, watermark_bytes, content_bytes = _HEAD.unpack(self._read(_HEAD.size))
        if watermark_bytes + content_bytes > self._bytes_max:
            raise ReplyTooLarge(f"one has {watermark_bytes + content_bytes} bytes")
        watermark, content = self._read(watermark_bytes), self._read(content_bytes)
        if kind == _ERROR:
            name, text = msgspec.json.decode(content, type=tuple[str, str])
            raise ERRORS.get(name, DatabaseOutOfReach)(foreign_text(text))
        return kind, content, watermark

    def _read(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) < size:
            raise DatabaseOutOfReach("the process that reads it was killed, or could not be started")
        return content
