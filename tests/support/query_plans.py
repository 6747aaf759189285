"""What a query reads, from the plan that Postgres has run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Select, text
from sqlalchemy.dialects import postgresql

_EXPLAIN = "EXPLAIN (ANALYZE, FORMAT JSON)"


def plan_of(connection: Connection, query: Select[Any]) -> dict[str, Any]:
    """The plan of a query whose parameters have values."""
    statement = query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})
    found = connection.exec_driver_sql(f"{_EXPLAIN} {statement}").scalar_one()
    return _root(found)


def plan_of_text(connection: Connection, statement: str, values: dict[str, Any]) -> dict[str, Any]:
    """The plan of a statement with these values of its parameters, which it is planned for."""
    connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_custom_plan")
    return _root(connection.execute(text(f"{_EXPLAIN} {statement}"), values).scalar_one())


def _root(explained: bytes | str) -> dict[str, Any]:
    [plan] = json.loads(explained)
    root: dict[str, Any] = plan["Plan"]
    return root


def scans(node: dict[str, Any], table: str) -> Iterator[dict[str, Any]]:
    """The parts of a plan that read the table."""
    if node.get("Relation Name") == table:
        yield node
    for part in node.get("Plans", []):
        yield from scans(part, table)


def rows_read(plan: dict[str, Any], table: str) -> float:
    """The rows of the table that the parts of a plan have read, whether they returned them or not."""
    return sum(
        (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        for scan in scans(plan, table)
    )
