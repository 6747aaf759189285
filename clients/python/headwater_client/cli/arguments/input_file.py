"""The rows that a command sends: their format, and a file that each attempt can read from its beginning."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple, cast

import msgspec

from headwater_client.cli.arguments.documents import name_of
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
_JSON_BYTES_MAX: Final = 256 * 1024 * 1024
# A row has fewer: a longer first line is the service's to refuse.
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_JSON_SPACE: Final = " \t\r\n"
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

    def lines(self) -> Iterator[bytes]:
        """The lines of text that are not empty. Raises CommandError."""
        with _opened(self.path, str(self.path), is_gzip=self.gzip) as content:
            yield from (line for line in content if line.strip())


@contextmanager
def rows_file(file: Path, chosen: InputFormat | None) -> Iterator[RowsFile]:
    """A file of rows; `-` is the standard input, of which a copy is kept until the write is accepted.

    The format is the chosen one, or that of the name, or of the first bytes. JSON that is no lines of objects, an array
    or objects over several lines, is sent as lines. Raises CommandError.
    """
    with tempfile.TemporaryDirectory(prefix="headwater-") as scratch:
        path = file
        if str(file) == "-":
            path = Path(scratch) / "rows"
            with path.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        begin = _beginning(path)
        is_gzip = begin.startswith(_GZIP)
        named = chosen or _named_format(file)
        kind = named or _recognized_format(file, begin)
        if kind == "json":
            kind = "ndjson"
            if not _is_lines(path, name_of(file), is_gzip=is_gzip):
                try:
                    path, is_gzip = (
                        _as_lines(path, name_of(file), Path(scratch) / "lines", is_gzip=is_gzip),
                        False,
                    )
                except NotJson:
                    # It may be lines of which the first is wrong: the service says so, or quarantines it.
                    if named is not None:
                        raise
        yield RowsFile(path, kind, is_gzip and kind in _TEXTS)


class NotJson(CommandError):
    """A file is no JSON of objects."""


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as content:
            return content.read(64)
    except FileNotFoundError:
        raise CommandError(f"{path}: there is no such file", ExitCode.USAGE) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", ExitCode.USAGE) from error


def _named_format(file: Path) -> InputFormat | None:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _recognized_format(file: Path, begin: bytes) -> InputFormat:
    for magic, kind in _MAGIC.items():
        if begin.startswith(magic):
            return kind
    text = begin.lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    if not text:
        return "ndjson"
    raise CommandError(
        f"{name_of(file)}: the format is not known by its name: state --format", ExitCode.USAGE
    )


@contextmanager
def _opened(path: Path, name: str, *, is_gzip: bool) -> Iterator[IO[bytes]]:
    try:
        with cast("IO[bytes]", gzip.GzipFile(path)) if is_gzip else path.open("rb") as content:
            yield content
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} cannot be decompressed: {error}", ExitCode.USAGE) from error


def _is_lines(path: Path, name: str, *, is_gzip: bool) -> bool:
    """Whether the first line is an object of its own, so that the file is lines of JSON."""
    with _opened(path, name, is_gzip=is_gzip) as content:
        first = b"\n"
        while first and not first.strip():
            first = content.readline(_LINE_BYTES_MAX)
    if not first or (len(first) == _LINE_BYTES_MAX and not first.lstrip().startswith(b"[")):
        return True
    try:
        msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _as_lines(path: Path, name: str, lines: Path, *, is_gzip: bool) -> Path:
    """The objects of a JSON array, or objects one after another, as lines."""
    with _opened(path, name, is_gzip=is_gzip) as content:
        text = content.read(_JSON_BYTES_MAX + 1)
    if len(text) > _JSON_BYTES_MAX:
        raise CommandError(
            f"JSON that is not one object a line is read as a whole, up to {_JSON_BYTES_MAX:,} bytes: make lines of "
            "it, such as by jq -c",
            ExitCode.USAGE,
        )
    try:
        rows = [msgspec.json.format(row, indent=-1) for row in _objects(text.removeprefix(codecs.BOM_UTF8))]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NotJson(
            f"{name}: expected JSON objects, in an array, one after another, or one a line: {error}",
            ExitCode.USAGE,
        ) from error
    lines.write_bytes(b"".join(row + b"\n" for row in rows))
    return lines


def _objects(content: bytes) -> Iterator[bytes]:
    """The texts of the members of an array, or of the values of which the content is a sequence. Raises ValueError."""
    if content.lstrip().startswith(b"["):
        yield from map(bytes, msgspec.json.decode(content, type=list[msgspec.Raw]))
        return
    text = content.decode()
    decoder, place = json.JSONDecoder(), _after_space(text, 0)
    while place < len(text):
        _, end = decoder.raw_decode(text, place)
        yield text[place:end].encode()
        place = _after_space(text, end)


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _JSON_SPACE:
        place += 1
    return place


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
