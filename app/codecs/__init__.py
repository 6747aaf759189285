"""Row codecs: request bodies to Arrow tables of a dataset's schema, and Arrow tables to JSON.

Decoding is strict and lossless: a value is taken exactly or refused with its row, field and reason.
    json_rows  csv_rows  conform    a body, or an Arrow table, as one table
    stream  splits                  the same formats step by step and in parts, for bodies of any size
    changelog_rows  flat_form       what a record or a column means, for rows that bring their op too
    gzip_stream                     Content-Encoding: gzip
    bad_records                     what becomes of records that do not fit
    encode                          tables and changes to JSON; import it by itself: only it needs polars
"""

from app.codecs.arrow.conform import conform
from app.codecs.csv.csv_rows import decode_csv
from app.codecs.gzip_stream import gunzip_stream
from app.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.codecs.record_errors import BadRecord, BadRecords
from app.codecs.splits import Split, plan_splits
from app.codecs.stream import iter_tables
from app.format.rows.formats import Format

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
