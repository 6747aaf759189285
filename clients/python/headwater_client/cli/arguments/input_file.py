"""The rows that a command sends: their format, and a file that each attempt can read from its beginning."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.models import Format

InputFormat = Literal["ndjson", "json", "csv", "arrow", "parquet"]
_SUFFIXES: Final[dict[str, InputFormat]] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".csv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
}
_MAGIC: Final[dict[bytes, InputFormat]] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}
_GZIP: Final = b"\x1f\x8b"
_ARRAY_BYTES_MAX: Final = 256 * 1024 * 1024
_TEXTS: Final = ("ndjson", "csv")


class RowsFile(NamedTuple):
    """A file of rows, as it is sent."""

    path: Path
    format: Format
    gzip: bool

    @property
    def has_lines(self) -> bool:
        """Whether each line is a row."""
        return self.format in _TEXTS and not self.gzip


@contextmanager
def rows_file(file: Path, chosen: InputFormat | None) -> Iterator[RowsFile]:
    """A file of rows; `-` is the standard input, of which a copy is kept until the write is accepted.

    The format is the chosen one, or that of the name, or of the first bytes. A JSON array is sent as lines. Raises
    CommandError.
    """
    with tempfile.TemporaryDirectory(prefix="headwater-") as scratch:
        path = file
        if str(file) == "-":
            path = Path(scratch) / "rows"
            with path.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        begin = _beginning(path)
        is_gzip = begin.startswith(_GZIP)
        kind = chosen or _format(file, begin)
        if kind == "json":
            if is_gzip:
                raise CommandError("a JSON array cannot be compressed: send lines of JSON", ExitCode.USAGE)
            path = _as_lines(path, Path(scratch) / "lines")
            kind = "ndjson"
        yield RowsFile(path, kind, is_gzip and kind in _TEXTS)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as content:
            return content.read(64)
    except FileNotFoundError:
        raise CommandError(f"{path}: there is no such file", ExitCode.USAGE) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", ExitCode.USAGE) from error


def _format(file: Path, begin: bytes) -> InputFormat:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    for magic, kind in _MAGIC.items():
        if begin.startswith(magic):
            return kind
    text = begin.lstrip()
    if text.startswith(b"{") or not text:
        return "ndjson"
    if text.startswith(b"["):
        return "json"
    raise CommandError(f"{file}: the format is not known by its name: state --format", ExitCode.USAGE)


def _as_lines(path: Path, lines: Path) -> Path:
    """The objects of a JSON array as lines."""
    if path.stat().st_size > _ARRAY_BYTES_MAX:
        raise CommandError(
            f"a JSON array is read as a whole, up to {_ARRAY_BYTES_MAX:,} bytes: send lines of JSON",
            ExitCode.USAGE,
        )
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not a JSON array: {error}", ExitCode.USAGE) from error
    with lines.open("wb") as file:
        for row in rows:
            file.write(msgspec.json.format(bytes(row), indent=-1) + b"\n")
    return lines


class WatchedFile:
    """A file that is sent, with a function that gets the bytes as they are read, and None when it is opened again."""

    def __init__(self, path: Path, watch: Callable[[bytes | None], None]) -> None:
        self._path = path
        self._watch = watch

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """The file, from its beginning."""
        del mode
        self._watch(None)
        return _Watched(self._path, self._watch)

    def stat(self) -> os.stat_result:
        """The facts of the file."""
        return self._path.stat()


class _Watched(io.FileIO):
    def __init__(self, path: Path, watch: Callable[[bytes | None], None]) -> None:
        super().__init__(path, "rb")
        self._watch = watch

    def read(self, size: int | None = -1) -> Any:
        found = super().read(-1 if size is None else size)
        self._watch(found)
        return found
