"""The shapes of an input's columns, for writes with `merge_schema`: inferred before the rows are decoded.

Text is inferred from its values, columnar input from its types. Malformed parts are skipped: decoding reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, open_parquet
from app.kernel.codecs.csv.csv_rows import parse_header
from app.kernel.codecs.faults import reader_faults
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import READ_BYTES, iter_tables, owned_lines
from app.kernel.format.definition.schema_merge import columnar_shape
from app.kernel.format.errors import FieldError, SchemaMismatch
from app.kernel.format.rows.formats import Format, Source
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.schema.schema import FIELDS_MAX, Field, Schema
from app.kernel.format.schema.shapes import (
    NULLS,
    Booleans,
    Integers,
    Numbers,
    Objects,
    Shape,
    Texts,
    TooManyColumns,
    common_shape,
    shape_of,
    text_shape,
)

_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_BOOLEAN: Final = "^(true|false)$"
_INTEGER: Final = "^[+-]?[0-9]{1,18}$"
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def infer_shapes(
    form: Format,
    source: Source,
    split: Split,
    *,
    op_columns: tuple[str, ...] = (),
    limits: RowLimits = DEFAULT_LIMITS,
) -> dict[str, Shape]:
    """The shapes of the columns in a split, in order of first occurrence.

    `op_columns`: for changes, what the column with the op may be called; in JSON their rows are members of records.
    Raises SchemaMismatch for more columns than a dataset has fields, MalformedBody.
    """
    try:
        match form:
            case Format.NDJSON:
                return _of_ndjson(source, split, limits, changes=bool(op_columns))
            case Format.JSON_ROWS:
                source.seek(0)
                return _of_texts(_elements(source.read()), changes=bool(op_columns))
            case Format.CSV:
                return _without(op_columns, _of_csv(source, limits))
            case Format.ARROW:
                source.seek(0)
                with reader_faults("the Arrow stream cannot be read"):
                    return _without(op_columns, _of_columns(pa.ipc.open_stream(source).schema))
            case Format.PARQUET:
                file = open_parquet(source)
                with reader_faults("the Parquet file cannot be read"):
                    return _without(op_columns, _of_columns(file.schema_arrow))
    except TooManyColumns as error:
        raise _too_many(error) from None


def infer_record_shapes(
    source: Source, split: Split, *, op_columns: tuple[str, ...] = ()
) -> dict[str, Shape]:
    """The shapes of the columns of redriven records, as `infer_shapes` for an input."""
    file = open_parquet(source)
    shape: Shape = NULLS
    with reader_faults("the file of records cannot be read"):
        groups = range(file.metadata.num_row_groups) if split.row_groups is None else split.row_groups
    try:
        for _, batch in iter_row_groups(source, file, groups):
            records = zip(
                batch.column("header").to_pylist(), batch.column("payload").to_pylist(), strict=True
            )
            for header, payload in records:
                members = (
                    _of_texts([payload], changes=bool(op_columns))
                    if header is None
                    else _without(op_columns, _of_csv(BytesIO(header + b"\n" + payload)))
                )
                shape = common_shape(shape, Objects(members=members))
    except TooManyColumns as error:
        raise _too_many(error) from None
    return shape.members if isinstance(shape, Objects) else {}


def _without(names: tuple[str, ...], shapes: dict[str, Shape]) -> dict[str, Shape]:
    """The shapes but for that of the first of the names which is there."""
    first = next((name for name in names if name in shapes), None)
    return {name: shape for name, shape in shapes.items() if name != first}


def _too_many(error: TooManyColumns) -> SchemaMismatch:
    return SchemaMismatch(str(error), [FieldError(pointer="/rows", detail=str(error))])


def _of_columns(columns: pa.Schema) -> dict[str, Shape]:
    return {column.name: columnar_shape(column.type) for column in columns}


def _elements(raw: bytes) -> Iterable[bytes]:
    try:
        return map(bytes, _ARRAY.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return ()


def _of_ndjson(source: Source, split: Split, limits: RowLimits, *, changes: bool) -> dict[str, Shape]:
    start, end = split.byte_range or (0, source.seek(0, 2))
    size = source.seek(0, 2)
    shape: Shape = NULLS
    for _, text in owned_lines(source, start, min(end, size), limits.row_bytes_max):
        shape = common_shape(shape, Objects(members=_of_texts(text.split(b"\n"), changes=changes)))
    return shape.members if isinstance(shape, Objects) else {}


def _of_texts(texts: Iterable[bytes], *, changes: bool) -> dict[str, Shape]:
    shape: Shape = Objects(members={})
    for text in texts:
        record = _parsed(text)
        for row in _rows_of(record) if changes else (record,):
            if isinstance(row, dict):
                shape = common_shape(shape, shape_of(row))
    return shape.members if isinstance(shape, Objects) else {}


def _rows_of(record: Any) -> Iterable[Any]:
    """The possible rows in the record of a change: of the feed's form, or of an envelope, which may be a payload."""
    if isinstance(record, dict) and "payload" in record:
        record = record["payload"]
    return [record.get(name) for name in _ROW_MEMBERS] if isinstance(record, dict) else ()


_ROW_MEMBERS: Final = ("row", "before", "after")


def _parsed(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_csv(source: Source, limits: RowLimits = DEFAULT_LIMITS) -> dict[str, Shape]:
    source.seek(0)
    names = list(dict.fromkeys(parse_header(source.read(READ_BYTES)).names))
    if len(names) > FIELDS_MAX:
        raise TooManyColumns(f"the header line names more than {FIELDS_MAX} fields")
    fields = tuple(Field(id=number, name=name, type="string") for number, name in enumerate(names, 1))
    shapes: dict[str, Shape] = dict.fromkeys(names, NULLS)
    bad_records = BadRecords(write=_drop)
    schema = Schema(id=1, fields=fields)
    for table in iter_tables(Format.CSV, source, schema, bad_records=bad_records, limits=limits):
        for name in names:
            shapes[name] = common_shape(shapes[name], _of_cells(table.column(name)))
    return shapes


def _drop(_: Sequence[BadRecord]) -> None:
    """Drops bad records: they are reported when the rows are decoded."""


def _of_cells(cells: pa.ChunkedArray) -> Shape:
    """The shape of CSV cells; null cells are ignored."""
    distinct = pc.unique(cells.drop_null())
    if len(distinct) == 0:
        return NULLS
    if _all(distinct, _BOOLEAN):
        return Booleans()
    if _all(distinct, _INTEGER):
        numbers = pc.cast(distinct, pa.int64())
        return Integers(low=pc.min(numbers).as_py(), high=pc.max(numbers).as_py())
    if _all(distinct, _NUMBER):
        return Numbers()
    shape: Shape = NULLS
    for text in distinct.to_pylist():
        shape = common_shape(shape, text_shape(text))
        if isinstance(shape, Texts) and not (shape.days or shape.times):
            break
    return shape


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
