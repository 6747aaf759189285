"""The columns of a dataset that is not registered yet, from the beginning of its first input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import Final

import msgspec

from app.kernel.codecs.faults import reader_faults
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.shape_inference import (
    CHANGES_OF_NO_COLUMNS,
    NO_COLUMNS,
    count_readable,
    infer_shapes,
)
from app.kernel.codecs.splits import plan_splits
from app.kernel.codecs.stream import ARROW_FILE_MAGIC, ARROW_FILE_START, is_arrow_file
from app.kernel.format.errors import MalformedBody
from app.kernel.format.rows.formats import Format, Source
from app.kernel.format.schema.shapes import Nulls, Shape, common_members

SAMPLE_BYTES_MAX: Final = 16 * 1024 * 1024
"""The bytes of a text that is inferred from as a whole, and of the metadata of columnar input."""
_SPLIT_BYTES: Final = 4 * 1024 * 1024
_SPLITS_MAX: Final = 4
_EXPANDED_BYTES_MAX: Final = 4 * SAMPLE_BYTES_MAX
# Their columns are known once the whole text is read.
_WHOLE: Final = (Format.JSON_ROWS, Format.CSV)
_TEXTS: Final = (*_WHOLE, Format.NDJSON)
_MAGIC_BYTES: Final = 4
# The second one is that of encrypted files.
_PARQUET_ENDS: Final = (b"PAR1", b"PARE")
# Before the length of the metadata of an Arrow message, unless the stream is of a release before 0.15.
_CONTINUATION: Final = b"\xff\xff\xff\xff"


class ColumnSample(msgspec.Struct, frozen=True, kw_only=True):
    """The shapes of columns, and whether they are those of the whole input. `empty`: whether it is a text that was read
    to its end without a record.
    """

    shapes: dict[str, Shape]
    whole: bool
    empty: bool = False


class SampleTooLarge(ValueError):
    """A text of a format that is inferred from as a whole has more than `SAMPLE_BYTES_MAX` bytes."""


def sample_columns(
    form: Format,
    source: Source,
    size_bytes: int,
    *,
    gzip: bool = False,
    changes: bool = False,
    outliers: bool = False,
    strict: bool = False,
) -> ColumnSample:
    """The columns of columnar input and of smaller texts, and those in the beginning of larger NDJSON.

    `changes`: whether the rows are those of changes. `outliers`: see `infer_shapes`. `strict`: a text without columns
    is refused for its first record that cannot be read. Raises SampleTooLarge, MalformedBody, BodyTooLarge,
    SchemaMismatch, RowTooLarge.
    """
    schema = CHANGES_OF_NO_COLUMNS if changes else NO_COLUMNS
    complete = True
    if gzip:
        source, complete = _expanded(form, source)
        size_bytes = source.seek(0, 2)
    if form in _WHOLE and size_bytes > SAMPLE_BYTES_MAX:
        raise SampleTooLarge
    _check_metadata(form, source)
    splits = plan_splits(form, source, size_bytes, _SPLIT_BYTES)
    # The columns of every row group of a Parquet file are the same.
    some = splits[: _SPLITS_MAX if form is Format.NDJSON else 1]
    shapes: dict[str, Shape] = {}
    for split in some:
        shapes = common_members(shapes, infer_shapes(form, source, split, schema=schema, outliers=outliers))
    empty = False
    if strict and form in _TEXTS and all(isinstance(shape, Nulls) for shape in shapes.values()):
        empty = not count_readable(form, source, changes=changes)
    whole = form is not Format.NDJSON or (complete and len(some) == len(splits))
    return ColumnSample(shapes=shapes, whole=whole, empty=empty)


def _expanded(form: Format, source: Source) -> tuple[BytesIO, bool]:
    """The uncompressed bytes, and whether they are all: the beginning of NDJSON will do."""
    text = bytearray()
    source.seek(0)
    for chunk in gunzip_stream(_chunks(source), expanded_bytes_max=_EXPANDED_BYTES_MAX):
        text += chunk
        if form is Format.NDJSON and len(text) > SAMPLE_BYTES_MAX:
            return BytesIO(bytes(text)), False
    return BytesIO(bytes(text)), True


def _chunks(source: Source) -> Iterator[bytes]:
    return iter(partial(source.read, _SPLIT_BYTES), b"")


def _check_metadata(form: Format, source: Source) -> None:
    """Raises MalformedBody for columnar input whose metadata, which is read as a whole, is larger than any sample, and
    for Arrow that does not have the bytes which its metadata needs.
    """
    match form:
        case Format.ARROW:
            _check_arrow(source)
        case Format.PARQUET:
            size = source.seek(0, 2)
            source.seek(max(size - 2 * _MAGIC_BYTES, 0))
            with reader_faults("the Parquet file cannot be read"):
                end = source.read(2 * _MAGIC_BYTES)
            # Without the end mark the reader refuses the file, and reads no metadata.
            if end[_MAGIC_BYTES:] in _PARQUET_ENDS:
                _check_size(int.from_bytes(end[:_MAGIC_BYTES], "little"))


def _check_arrow(source: Source) -> None:
    """The metadata are the first message, in a file as in a stream."""
    is_file = is_arrow_file(source)
    kind = f"the Arrow {'file' if is_file else 'stream'}"
    size = source.seek(0, 2)
    with reader_faults(f"{kind} cannot be read"):
        if is_file:
            source.seek(max(size - len(ARROW_FILE_MAGIC), 0))
            if source.read() != ARROW_FILE_MAGIC:
                raise MalformedBody(f"{kind} is truncated: its end is missing")
        source.seek(ARROW_FILE_START if is_file else 0)
        length = source.read(_MAGIC_BYTES)
        if length == _CONTINUATION:
            length = source.read(_MAGIC_BYTES)
    announced, left = int.from_bytes(length, "little"), size - source.tell()
    if announced > left:
        raise MalformedBody(
            f"{kind} cannot be read: its first message has {announced} bytes by its header, but {left} follow; it is "
            "truncated, or in another format"
        )
    _check_size(announced)


def _check_size(metadata_bytes: int) -> None:
    if metadata_bytes > SAMPLE_BYTES_MAX:
        raise MalformedBody(f"the description of the columns has more than {SAMPLE_BYTES_MAX} bytes")
