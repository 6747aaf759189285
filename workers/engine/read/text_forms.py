"""The text encodings of rows and changes in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from app.codecs.csv.encode_csv import csv_header, encode_csv
from app.files.export_file import TextForm
from app.format.file_format import FileFormat


def rows_text(format_: FileFormat, schema: pa.Schema) -> TextForm | None:
    """The text encoding of rows; None for binary formats."""
    match format_:
        case FileFormat.CSV:
            return TextForm(encode=encode_csv, header=csv_header(schema))
        case FileFormat.NDJSON | FileFormat.JSON:
            # It imports polars, which the processes of all other tasks do not need.
            from workers.engine.read import export_texts  # noqa: PLC0415

            if format_ is FileFormat.NDJSON:
                return TextForm(encode=export_texts.encode_rows)
            return TextForm(encode=export_texts.encode_members, header=b"[", separator=b",", trailer=b"]")
        case _:
            return None


def changes_text(symbols: Sequence[str], names: Mapping[str, str]) -> TextForm:
    """Changes as NDJSON. `symbols`: the text of each op. `names`: of the members, by column."""
    from workers.engine.read import export_texts  # noqa: PLC0415

    return TextForm(encode=partial(export_texts.encode_changes, symbols=symbols, names=names))
