"""delta-sharing with pandas. The warehouse is the format of answers: `auto`, `delta` or `parquet`.

Option `changes`: the first version of the changes to read, in place of the rows; `until`: the last one. A shared table
is named `share.schema.table`. Data frames keep the types of Arrow, where pandas would make real numbers of whole ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import Any

import delta_sharing
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
from delta_sharing import reader
from reader_process import Request, serve

_FORMATS = {"auto": None, "delta": True, "parquet": False}


class _Rows:
    """What the library takes for a table of pyarrow, or for a dataset of files."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @classmethod
    def from_batches(cls, batches: pa.RecordBatchReader) -> _Rows:
        return cls(pa.Table.from_batches(batches))

    @classmethod
    def of_files(cls, **source: Any) -> _Rows:
        return cls(pyarrow.dataset.dataset(**source).to_table())

    def to_table(self) -> _Rows:
        return self

    def to_pandas(self, **_: Any) -> pd.DataFrame:
        return self._table.to_pandas(types_mapper=pd.ArrowDtype)


reader.pa = SimpleNamespace(Table=_Rows)
reader.dataset = _Rows.of_files


def read(request: Request) -> pa.Table:
    """The rows of a table, or its changes."""
    profile = {"shareCredentialsVersion": 1, "endpoint": request["uri"], "bearerToken": request["token"]}
    options, how = request["options"], _FORMATS[request["warehouse"]]
    with NamedTemporaryFile("w", suffix=".share") as file:
        file.write(json.dumps(profile))
        file.flush()
        url = f"{Path(file.name)}#{request['table']}"
        if "changes" in options:
            found = delta_sharing.load_table_changes_as_pandas(
                url,
                starting_version=options["changes"],
                ending_version=options.get("until"),
                use_delta_format=how,
            )
        else:
            found = delta_sharing.load_as_pandas(url, version=request["version"], use_delta_format=how)
    return pa.Table.from_pandas(found, preserve_index=False)


if __name__ == "__main__":
    serve(read)
