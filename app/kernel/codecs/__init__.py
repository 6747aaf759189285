"""Row codecs: request bodies to Arrow tables of a dataset's schema, and Arrow tables to text.

Decoding is strict and lossless: a value is converted exactly, or reported with its row, field and reason.

    json, csv, arrow                one package per family of formats, with decoders and encoders
    stream, splits, gzip_stream     the same formats step by step and in parts, for bodies of any size
    parts                           the memory for what a reader of Arrow and Parquet decodes at once
    compiled, value_parser          one schema to fast decoders; one value at a time, with a message for every fault
    faults, record_errors, records  what is wrong with rows; reject the input or quarantine; redriven records
    not_json                        the value because of which a text is no JSON, such as NaN
    shape_inference                 the column types of an input that brings its schema
    meta_on_read                    the meta columns that a reader may request

>>> import io
>>> from app.kernel.codecs import Format, iter_tables
>>> from app.kernel.format.schema.schema import Field, Schema
>>> schema = Schema(id=1, fields=(Field(id=1, name="id", type="int64"),))
>>> [table.num_rows for table in iter_tables(Format.NDJSON, io.BytesIO(b'{"id": 1}'), schema)]
[1]
"""

from app.kernel.codecs.arrow.conform import conform
from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.splits import Split, plan_splits
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.rows.formats import Format

__all__ = [
    "BadRecord",
    "BadRecords",
    "Format",
    "Split",
    "conform",
    "decode_csv",
    "decode_json_rows",
    "decode_ndjson",
    "gunzip_stream",
    "iter_tables",
    "plan_splits",
]
