"""Arrow tables to CSV: RFC 4180, UTF-8, lines ended by LF, with a header line of the names of the columns.

Null is an empty cell without quotes, the empty string one with (""). Strings, timestamps and binary (base64) are always
quoted; lists, structs and maps are JSON inside the cell. The decoder of this package reads the same values.
"""

from __future__ import annotations

import csv
import io
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv

from app.kernel.codecs.json.objects import to_objects
from app.kernel.format.schema.types import stored_type

_OPTIONS: Final = pacsv.WriteOptions(include_header=False)


def csv_header(schema: pa.Schema) -> bytes:
    """The header line."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(schema.names)
    return line.getvalue().encode()


def encode_csv(table: pa.Table) -> bytes:
    """The rows, a record each, without a header line."""
    # Arrow's CSV writer writes memory that it has not set for a chunk without rows, which may have values of others.
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    if not batches:
        return b""
    columns = [
        pa.chunked_array([_plain(batch.column(at)) for batch in batches]) for at in range(table.num_columns)
    ]
    out = pa.BufferOutputStream()
    # Without a header the names are not written, and need not differ.
    pacsv.write_csv(pa.Table.from_arrays(columns, [str(at) for at in range(len(columns))]), out, _OPTIONS)
    return bytes(out.getvalue().to_pybytes())


def _plain(array: pa.Array) -> pa.Array:
    """The array in a type that Arrow's CSV writer writes in the documented form."""
    kind = array.type
    if pa.types.is_nested(kind):
        texts = [None if each is None else msgspec.json.encode(each).decode() for each in to_objects(array)]
        return pa.array(texts, pa.large_string())
    flat = stored_type(kind)
    return array if flat is None or not flat.csv_as_text else flat.texts(array)
