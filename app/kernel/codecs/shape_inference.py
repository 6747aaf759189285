"""The shapes of an input's columns, for writes with `merge_schema`: inferred before the rows are decoded.

Text is inferred from its values, columnar input from its types. Malformed parts are skipped: decoding reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from io import BytesIO
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.flat_form import flat_form
from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, open_parquet
from app.kernel.codecs.csv.csv_rows import parse_header
from app.kernel.codecs.faults import reader_faults
from app.kernel.codecs.meta_on_read import META_INPUT_NAMES
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import READ_BYTES, ArrowReader, iter_tables, owned_lines
from app.kernel.format.definition.schema_merge import columnar_shape
from app.kernel.format.errors import FieldError, SchemaMismatch
from app.kernel.format.rows.change_schema import ChangeSchema, change_schema
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
    common_members,
    common_shape,
    shape_of,
    text_shape,
)

NO_COLUMNS: Final = Schema(id=1, fields=())
"""The schema of rows of which nothing is known."""
CHANGES_OF_NO_COLUMNS: Final = change_schema(NO_COLUMNS, ())
"""The schema of changes to such rows."""
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_BOOLEAN: Final = "^(true|false)$"
_INTEGER: Final = "^[+-]?[0-9]{1,18}$"
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def infer_shapes(
    form: Format,
    source: Source,
    split: Split,
    *,
    schema: Schema = NO_COLUMNS,
    limits: RowLimits = DEFAULT_LIMITS,
) -> dict[str, Shape]:
    """The shapes of the columns of rows in a split, in order of first occurrence.

    `schema`: that of the input so far; under a ChangeSchema the rows are those of changes. Raises SchemaMismatch for
    more columns than a dataset has fields, MalformedBody.
    """
    changes = isinstance(schema, ChangeSchema)
    try:
        match form:
            case Format.NDJSON:
                return _rows_only(_of_ndjson(source, split, limits, changes=changes))
            case Format.JSON_ROWS:
                source.seek(0)
                return _rows_only(_of_texts(_elements(source.read()), changes=changes))
            case Format.CSV:
                return _flat(schema, _of_csv(source, limits))
            case Format.ARROW:
                columns = ArrowReader(source).schema
                with reader_faults("the names and types of the columns cannot be read"):
                    return _flat(schema, _of_columns(columns))
            case Format.PARQUET:
                file = open_parquet(source)
                with reader_faults("the Parquet file cannot be read"):
                    return _flat(schema, _of_columns(file.schema_arrow))
    except TooManyColumns as error:
        raise _too_many(error) from None


def infer_record_shapes(source: Source, split: Split, *, schema: Schema = NO_COLUMNS) -> dict[str, Shape]:
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
                    _rows_only(_of_texts([payload], changes=isinstance(schema, ChangeSchema)))
                    if header is None
                    else _flat(schema, _of_csv(BytesIO(header + b"\n" + payload)))
                )
                shape = common_shape(shape, Objects(members=members))
    except TooManyColumns as error:
        raise _too_many(error) from None
    return shape.members if isinstance(shape, Objects) else {}


def _rows_only(shapes: dict[str, Shape]) -> dict[str, Shape]:
    """The shapes but for those of meta columns."""
    return {name: shape for name, shape in shapes.items() if name not in META_INPUT_NAMES}


def _flat(schema: Schema, shapes: dict[str, Shape]) -> dict[str, Shape]:
    """The shapes of the columns of rows among those of the columns of an input."""
    form = flat_form(schema, header=list(shapes))
    if form.changes is None:
        return {name: shape for name, shape in shapes.items() if name not in form.system}
    op, *fields = form.columns.names()
    if form.in_envelope:
        rows = [shape.members for name in fields if isinstance(shape := shapes[name], Objects)]
        return reduce(common_members, rows, {})
    # A column that is called like a system column may be one of the rows, unless the input has those of the feed.
    beside = form.system if form.is_feed else frozenset()
    return {name: shape for name, shape in shapes.items() if name not in {op, form.before, *beside}}


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
