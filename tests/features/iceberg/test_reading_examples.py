"""The texts that a dataset shows to readers: names are quoted by the rules of each language."""

from __future__ import annotations

import ast

import duckdb
import pytest

from app.features.iceberg.reading_examples import API_KEY, PROFILE, SHARE, reading_examples

_URL = "https://data.example.com"
_NAMES = ("flights", "odd name", 'a "b" `c`', "it's", "back\\slash", "dot.ted", "Ünï")


def _codes(name: str) -> dict[str, tuple[str, str]]:
    return {each.engine: (each.language, each.code) for each in reading_examples(_URL, name)}


def test_each_engine_has_the_address_and_the_place_of_the_key() -> None:
    codes = _codes("flights")
    assert list(codes) == ["DuckDB", "PyIceberg", "Polars", "Spark", "Trino", "ClickHouse", "Daft", "pandas"]
    # Recipients of shares have a profile instead.
    assert f"{PROFILE}#{SHARE}.default.flights" in codes.pop("pandas")[1]
    for _, code in codes.values():
        assert f"{_URL}/iceberg" in code
        assert API_KEY in code
        assert "flights" in code


@pytest.mark.parametrize("name", _NAMES)
def test_python_names_the_table(name: str) -> None:
    programs = [code for language, code in _codes(name).values() if language == "python"]
    assert len(programs) == 4
    for program in programs:
        texts = {each.value for each in ast.walk(ast.parse(program)) if isinstance(each, ast.Constant)}
        assert texts & {name, f"{PROFILE}#{SHARE}.default.{name}"}


@pytest.mark.parametrize("name", _NAMES)
def test_sql_names_the_table(name: str) -> None:
    _, code = _codes(name)["DuckDB"]
    [*_, query] = duckdb.extract_statements(code)
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS headwater; CREATE SCHEMA headwater.headwater")
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE headwater.headwater.{quoted} AS SELECT 7 AS n")
        assert connection.execute(query).fetchall() == [(7,)]
