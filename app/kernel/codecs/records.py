"""Quarantined records that are redriven: a Parquet file with the bytes of each.

`payload` has a record, `header` the header line that names the cells of a CSV record, null for a JSON record. Each
record is parsed separately, so that a faulty record cannot affect the next one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from itertools import groupby
from typing import Final

import pyarrow as pa

from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, open_parquet
from app.kernel.codecs.csv.csv_header import read_header
from app.kernel.codecs.csv.csv_records import is_record
from app.kernel.codecs.csv.csv_rows import Records
from app.kernel.codecs.faults import Faults, Origin, malformed_row, reader_faults
from app.kernel.codecs.json.json_rows import iter_text_tables
from app.kernel.codecs.record_errors import BadRecords, RecordErrors, checked_rows, record_errors_for
from app.kernel.codecs.splits import Split
from app.kernel.format.rows.formats import Source
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.schema.schema import Schema

RECORD_FIELDS: Final = (("payload", pa.binary()), ("header", pa.binary()))


def iter_record_tables(
    source: Source,
    schema: Schema,
    *,
    split: Split,
    pointer: str = "/rows",
    bad_records: BadRecords | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    ignored_fields: set[str] | None = None,
) -> Generator[pa.Table]:
    """The rows of the records in a split, in order, in tables of the schema's columns, and `_hw_kept` where
    changes keep fields; no table without rows.

    Records are numbered in the whole file. `bad_records`: receives those that do not fit. `ignored_fields`: receives
    the names of unknown fields, which are ignored where they are null. Raises SchemaMismatch, MalformedBody,
    BodyTooLarge, RowTooLarge, TooManyRows.
    """
    record_errors = record_errors_for(bad_records, pointer, limits, ignored_fields)
    return checked_rows(_tables(source, schema, split, record_errors), record_errors)


def _tables(source: Source, schema: Schema, split: Split, record_errors: RecordErrors) -> Iterator[pa.Table]:
    file = open_parquet(source)
    with reader_faults("the file of records cannot be read"):
        groups = range(file.metadata.num_row_groups) if split.row_groups is None else split.row_groups
    for row, batch in iter_row_groups(source, file, groups):
        payloads = batch.column("payload").to_pylist()
        headers = batch.column("header").to_pylist()
        for header, run in groupby(range(batch.num_rows), headers.__getitem__):
            numbers = list(run)
            texts = [payloads[number] for number in numbers]
            first = row + numbers[0]
            if header is None:
                yield from iter_text_tables(texts, first, schema, record_errors)
            else:
                yield from _csv_tables(header, texts, first, schema, record_errors)
            record_errors.raise_if_rejected()


def _csv_tables(
    header: bytes, texts: list[bytes], first: int, schema: Schema, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    parsed_header = read_header(header + b"\n", schema)
    records = Records(
        header=parsed_header, schema=schema, record_errors=record_errors, origin=Origin(row=first)
    )
    number = 0
    for sound, run in groupby(texts, partial(is_record, blank_lines=len(parsed_header.names) == 1)):
        run_texts = list(run)
        records.origin = Origin(row=first + number)
        if sound:
            yield from records.tables(b"".join(text + b"\n" for text in run_texts), last=True)
        else:
            for offset, text in enumerate(run_texts):
                _refuse(header, text, first + number + offset, record_errors)
        number += len(run_texts)


def _refuse(header: bytes, text: bytes, row: int, record_errors: RecordErrors) -> None:
    reason = "not one CSV record: a quotation mark is out of place, or a line ends outside quotes"
    faults = Faults()
    faults.add("", reason)
    unreadable = malformed_row(Origin(row=row), reason, 0, text)
    record_errors.add(row, faults, partial(bytes, text), header=header, unreadable=unreadable)
