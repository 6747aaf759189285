"""Runs an example of a document: its rows are its last result, or `rows` where it is Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa
from reader_process import Request, serve


def _statements(text: str) -> list[str]:
    return [each for each in text.split(";\n") if each.strip()]


def _duckdb(text: str) -> pa.Table:
    connection = import_module("duckdb_reader").connection
    for statement in _statements(text):
        found = connection().execute(statement)
    return found.to_arrow_table()


def _clickhouse(text: str) -> pa.Table:
    chdb = import_module("chdb_reader")
    *before, last = _statements(text)
    for statement in before:
        chdb.session().query(statement)
    rows: pa.Table = chdb.arrow(last.rstrip().rstrip(";"))
    return rows


def _spark(text: str) -> pa.Table:
    session = import_module("spark_reader").session
    for statement in _statements(text):
        name, is_setting, value = statement.removeprefix("SET ").partition("=")
        if is_setting and statement.startswith("SET "):
            session().conf.set(name, value)
        else:
            found = session().sql(statement.rstrip().rstrip(";"))
    return found.toArrow()


def _python(text: str) -> pa.Table:
    names: dict[str, Any] = {}
    exec(text, names)
    rows = names["rows"]
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)


_LANGUAGES: dict[str, Callable[[str], pa.Table]] = {
    "duckdb": _duckdb,
    "clickhouse": _clickhouse,
    "spark": _spark,
    "python": _python,
}


def read(request: Request) -> pa.Table:
    """The rows of an example, which is the option `text`; its language is the option `language`."""
    options = request["options"]
    return _LANGUAGES[options["language"]](options["text"])


if __name__ == "__main__":
    sys.argv[1:] = [each for each in sys.argv[1:] if each.endswith(".jar")]
    serve(read)
