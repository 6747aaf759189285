"""The shapes of an input's columns, for writes with `create` or `merge_schema`: inferred before rows are decoded.

Text is inferred from its values, columnar input from its types. Malformed parts are skipped: decoding reports them.
What is inferred from a text decodes without loss, wherever the text is cut into parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from io import BytesIO
from itertools import chain, islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.flat_form import flat_form, index_levels
from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, open_parquet
from app.kernel.codecs.csv.csv_header import parse_header
from app.kernel.codecs.faults import Faults, mismatch, reader_faults, shown
from app.kernel.codecs.meta_on_read import META_INPUT_NAMES
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import READ_BYTES, ArrowReader, iter_tables, owned_lines
from app.kernel.codecs.value_parser import parse_json_array
from app.kernel.format.definition.schema_merge import columnar_shape
from app.kernel.format.errors import FieldError, MalformedBody, SchemaMismatch
from app.kernel.format.rows.change_schema import ChangeSchema, change_schema
from app.kernel.format.rows.formats import Format, Source
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.schema.schema import FIELDS_MAX, Field, Schema, name_fault
from app.kernel.format.schema.shapes import (
    NULLS,
    TEXTS,
    Cells,
    Integers,
    Nulls,
    Numbers,
    Objects,
    Shape,
    TooManyColumns,
    common_members,
    common_shape,
    number_type,
    uncelled,
)
from app.kernel.format.schema.value_shapes import Fraction, members_of, number_cells, shape_of_cells

NO_COLUMNS: Final = Schema(id=1, fields=())
"""The schema of rows of which nothing is known."""
CHANGES_OF_NO_COLUMNS: Final = change_schema(NO_COLUMNS, ())
"""The schema of changes to such rows."""
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_VALUE: Final = msgspec.json.Decoder(float_hook=Fraction)
# The records of a text that are taken together.
_ROWS: Final = 16_384
_INDEX_HINT: Final = "; pandas writes the index of a frame so, unless it is told index=False"
KIND_CELLS: Final = 1_000
"""The cells of a CSV column that determine its type where others are quarantined."""


def infer_shapes(
    form: Format,
    source: Source,
    split: Split,
    *,
    schema: Schema = NO_COLUMNS,
    limits: RowLimits = DEFAULT_LIMITS,
    outliers: bool = False,
) -> dict[str, Shape]:
    """The shapes of the columns of rows in a split, in order of first occurrence.

    `schema`: that of the input so far; under a ChangeSchema the rows are those of changes. `outliers`: whether rows
    that do not fit are left out, so that the first KIND_CELLS cells of a CSV column determine its kind. Raises
    SchemaMismatch for more columns than a dataset has fields, MalformedBody.
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
                return _flat(schema, _of_csv(source, limits, outliers=outliers))
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


def count_readable(form: Format, source: Source, *, changes: bool) -> int:
    """The number of rows of a text. Raises the error of the first record that cannot be read: MalformedBody,
    SchemaMismatch, RowTooLarge.

    For texts in which no column was found, so that all their records are without values or faulty.
    """
    source.seek(0)
    head = source.read(READ_BYTES)
    names = [""]
    if form is Format.CSV and not changes:
        names = list(dict.fromkeys(parse_header(head).names))
    fields = tuple(Field(id=number, name=name, type="string") for number, name in enumerate(names, 1))
    schema = Schema(id=1, fields=fields)
    try:
        tables = iter_tables(form, source, change_schema(schema, ()) if changes else schema)
        return sum(table.num_rows for table in tables)
    except (MalformedBody, SchemaMismatch) as error:
        hint = _hint(head) if form is Format.NDJSON else None
        if hint is None:
            raise
        raise MalformedBody(f"{hint}: {error.detail}", **error.facts) from None


def _hint(text: bytes) -> str | None:
    """What a text is that is no NDJSON."""
    start = text.lstrip(b" \t\r\n")
    if start.startswith(b"["):
        return "the body is a JSON array, and NDJSON is one object per line"
    if start.startswith(b"{") and not start.partition(b"\n")[0].rstrip().endswith(b"}"):
        return "the first line is not a whole object, and NDJSON is one object per line"
    return None


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
    levels = index_levels(columns)
    return {column.name: columnar_shape(column.type) for column in columns if column.name not in levels}


def _elements(raw: bytes) -> Iterable[bytes]:
    try:
        return map(bytes, _ARRAY.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return _readable_elements(raw)


def _readable_elements(raw: bytes) -> Iterable[bytes]:
    """The elements of a text that msgspec rejects as an array, up to the first place where it is no JSON."""
    with suppress(json.JSONDecodeError, RecursionError, TypeError):
        for _, element in parse_json_array(raw.decode("utf-8", "surrogateescape")):
            yield element.encode("utf-8", "surrogateescape")


def _of_ndjson(source: Source, split: Split, limits: RowLimits, *, changes: bool) -> dict[str, Shape]:
    start, end = split.byte_range or (0, source.seek(0, 2))
    size = source.seek(0, 2)
    shape: Shape = NULLS
    for _, text in owned_lines(source, start, min(end, size), limits.row_bytes_max):
        shape = common_shape(shape, Objects(members=_of_texts(text.split(b"\n"), changes=changes)))
    return shape.members if isinstance(shape, Objects) else {}


def _of_texts(texts: Iterable[bytes], *, changes: bool) -> dict[str, Shape]:
    shape: Shape = Objects(members={})
    records = map(_parsed, texts)
    while batch := list(islice(records, _ROWS)):
        rows = chain.from_iterable(map(_rows_of, batch)) if changes else batch
        members = members_of(row for row in rows if isinstance(row, dict))
        shape = common_shape(shape, Objects(members=members))
    return shape.members if isinstance(shape, Objects) else {}


def _rows_of(record: Any) -> Iterable[Any]:
    """The possible rows in the record of a change: of the feed's form, or of an envelope, which may be a payload."""
    if isinstance(record, dict) and "payload" in record:
        record = record["payload"]
    return [record.get(name) for name in _ROW_MEMBERS] if isinstance(record, dict) else ()


_ROW_MEMBERS: Final = ("row", "before", "after")


def _parsed(text: bytes) -> Any:
    try:
        return _VALUE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_csv(
    source: Source, limits: RowLimits = DEFAULT_LIMITS, *, outliers: bool = False
) -> dict[str, Shape]:
    source.seek(0)
    header = parse_header(source.read(READ_BYTES))
    if header.other_separator is not None:
        mismatch("/rows", header.other_separator)
    names = list(dict.fromkeys(header.names))
    if len(names) > FIELDS_MAX:
        raise TooManyColumns(f"the header line names more than {FIELDS_MAX} fields")
    fields = tuple(Field(id=number, name=name, type="string") for number, name in enumerate(names, 1))
    columns = {name: _KindOfFirst() if outliers else _KindOfAll() for name in names}
    bad_records = BadRecords(write=_drop)
    schema = Schema(id=1, fields=fields)
    for table in iter_tables(Format.CSV, source, schema, bad_records=bad_records, limits=limits):
        for name, column in columns.items():
            column.add(table.column(name).drop_null())
    shapes = {name: column.shape for name, column in columns.items()}
    _check_names(header.names, shapes)
    return shapes


def _check_names(names: Sequence[str], shapes: Mapping[str, Shape]) -> None:
    """Raises SchemaMismatch for columns with values whose names no fields have."""
    faults = Faults()
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if isinstance(shapes[name], Nulls):
            continue
        place = f"column {number} of the header line"
        if reason := name_fault(name):
            hint = "" if name or number > 1 else _INDEX_HINT
            faults.add("/rows", f"{place} {reason}{hint}")
        earlier = numbers.setdefault(name.casefold(), number)
        if names[earlier - 1] != name:
            faults.add(
                "/rows",
                f"{place}: {shown(name)} differs only by case from {shown(names[earlier - 1])}, the name of column "
                f"{earlier}",
            )
        if faults.full:
            break
    faults.raise_if_any()


def _drop(_: Sequence[BadRecord]) -> None:
    """Drops bad records: they are reported when the rows are decoded."""


@dataclass(slots=True)
class _KindOfAll:
    """A column of CSV whose type holds all cells."""

    shape: Shape = NULLS

    def add(self, cells: pa.ChunkedArray) -> None:
        """Adds cells that are not null."""
        if self.shape != _ANY_CELLS:
            self.shape = common_shape(self.shape, _of_cells(cells))


@dataclass(slots=True)
class _KindOfFirst:
    """A column of CSV in which the first cells determine whether it has numbers, times or others.

    All numbers determine the type of a column of numbers; other cells of it are errors of their rows.
    """

    first: Shape = NULLS
    later: Shape = NULLS
    missing: int = KIND_CELLS

    def add(self, cells: pa.ChunkedArray) -> None:
        """Adds cells that are not null."""
        first, later = cells.slice(0, self.missing), cells.slice(self.missing)
        self.missing -= len(first)
        self.first = common_shape(self.first, _of_cells(first))
        if len(later) and isinstance(uncelled(self.first), Integers | Numbers):
            self.later = common_shape(self.later, _celled(number_cells(pc.unique(later))))

    @property
    def shape(self) -> Shape:
        shape = common_shape(self.first, self.later)
        inner, first = uncelled(shape), uncelled(self.first)
        if not isinstance(inner, Integers | Numbers):
            return shape
        if inner.beyond and isinstance(first, Integers | Numbers) and not first.beyond:
            inner = msgspec.structs.replace(inner, beyond=False)
        return self.first if number_type(inner) is None else Cells(shape=inner)


_ANY_CELLS: Final = Cells(shape=TEXTS)


def _of_cells(cells: pa.ChunkedArray) -> Shape:
    return _celled(pc.unique(cells))


def _celled(distinct: pa.Array) -> Shape:
    return Cells(shape=shape_of_cells(distinct)) if len(distinct) else NULLS
