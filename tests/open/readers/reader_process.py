"""The loop of a reader's process: a request is a line of JSON, and its rows are a file of Arrow.

The programs of this folder run in an environment of their own, in which nothing of this repository is.
A request has `uri`, `token`, `warehouse`, `table`, `version` (null: the latest), `where` and `columns` (null: all),
`options` for this reader, and `out`, the path of the file. The answer is a line with the number of `rows`, or the
`error` of the engine.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa

Request = dict[str, Any]
# Spark adds all that called it.
_ERROR_CHARACTERS_MAX = 2_000


def serve(read: Callable[[Request], pa.Table]) -> None:
    """Answers requests until the input ends. What an engine prints goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(_answer(read, json.loads(line))) + "\n")
        answers.flush()


def _answer(read: Callable[[Request], pa.Table], request: Request) -> dict[str, Any]:
    try:
        rows = read(request)
        with pa.ipc.new_file(request["out"], rows.schema) as file:
            file.write_table(rows)
    except BaseException as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS_MAX]}
    return {"rows": rows.num_rows}


def quoted(name: str, mark: str = '"') -> str:
    """An identifier of SQL."""
    return mark + name.replace(mark, mark * 2) + mark


def selection(request: Request, mark: str = '"') -> str:
    """The list of columns of a query."""
    columns = request["columns"]
    return "*" if columns is None else ", ".join(quoted(name, mark) for name in columns)


def condition(request: Request) -> str:
    """The end of a query."""
    return f" WHERE {request['where']}" if request["where"] else ""


def s3_properties(properties: dict[str, str]) -> dict[str, str]:
    """What a table names of the facade for objects, and the keys for it."""
    return {name: value for name, value in properties.items() if name.startswith("s3.")}
