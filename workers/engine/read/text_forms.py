"""The text encodings of rows and changes in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from app.infra.files.export_file import TextForm
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.codecs.json.encode import encode_changes_json, encode_rows_json, encode_rows_ndjson
from app.kernel.format.file_format import FileFormat


def rows_text(format_: FileFormat, schema: pa.Schema) -> TextForm | None:
    """The text encoding of rows; None for binary formats."""
    match format_:
        case FileFormat.CSV:
            return TextForm(encode=encode_csv, header=csv_header(schema))
        case FileFormat.NDJSON:
            return TextForm(encode=encode_rows_ndjson)
        case FileFormat.JSON:
            return TextForm(encode=_members, header=b"[", separator=b",", trailer=b"]")
        case _:
            return None


def changes_text(symbols: Sequence[str], names: Mapping[str, str]) -> TextForm:
    """Changes as NDJSON. `symbols`: the text of each op. `names`: of the members, by column."""
    return TextForm(encode=partial(encode_changes_json, as_ndjson=True, symbols=symbols, names=names))


def _members(rows: pa.Table) -> bytes:
    """The members of a JSON array, without its brackets."""
    return encode_rows_json(rows)[1:-1]
