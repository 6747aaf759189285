"""The words and signs of the SQL of views, and its errors."""

from __future__ import annotations

from typing import Final

from app.kernel.format.errors import InvalidView
from app.kernel.sql.language import Language

TEXT_BYTES_MAX: Final = 64 * 1024
_RESERVED: Final = frozenset(
    "ALL AND ANTI AS BETWEEN BY CASE CLUSTER CROSS DISTINCT DISTRIBUTE DIV ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH "
    "FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL ON OR "
    "ORDER OUTER OVER PIVOT QUALIFY REGEXP RIGHT RLIKE SELECT SEMI SORT TABLESAMPLE THEN TRUE UNION UNPIVOT USING WHEN "
    "WHERE WINDOW WITH".split()
)
_NO_ORDER: Final = "the rows of a view have no order"
_ONE_SELECT: Final = "a view is one SELECT"
_DISTRIBUTION: Final = "the engine determines how rows are distributed"
_PATTERNS: Final = "regular expressions may take unbounded time: use LIKE, instr, substring or split_part"
_REFUSED: Final = {
    **dict.fromkeys(("LIMIT", "FETCH", "OFFSET"), f"{_NO_ORDER}: filter by ROW_NUMBER() OVER (ORDER BY …)"),
    **dict.fromkeys(("ORDER", "SORT"), f"{_NO_ORDER}: ORDER BY belongs in OVER (…)"),
    **dict.fromkeys(("CLUSTER", "DISTRIBUTE"), _DISTRIBUTION),
    **dict.fromkeys(("RLIKE", "REGEXP"), _PATTERNS),
    "LATERAL": "LATERAL is not part of the SQL of views",
    "PIVOT": "PIVOT is not part of the SQL of views: use an aggregate with FILTER (WHERE …) for each column",
    "UNPIVOT": "UNPIVOT is not part of the SQL of views: use UNION ALL",
    "TABLESAMPLE": "a sample is different each time",
    "NATURAL": "the columns of a NATURAL join change with the schemas: use ON or USING",
    "WINDOW": "named windows are not part of the SQL of views: write each after its OVER",
    "VALUES": "VALUES is not part of the SQL of views: register a dataset for it",
    "ILIKE": "ILIKE is not part of the SQL of views: compare lower(…) LIKE",
    "/*+": "hints are not part of the SQL of views",
    ";": f"{_ONE_SELECT}, and this is a second statement",
    **dict.fromkeys(
        "ALTER ANALYZE CACHE CALL CREATE DELETE DESCRIBE DROP EXECUTE EXPLAIN GRANT INSERT MERGE OPTIMIZE REFRESH "
        "REPLACE SET SHOW TABLE TRUNCATE UPDATE USE VACUUM".split(),
        _ONE_SELECT,
    ),
}


def _error(message: str, at: int | None, expectation: str) -> InvalidView:
    return InvalidView(message, pointer="/sql", position=at, expected=expectation)


QUERIES: Final = Language(
    name="the SQL of views",
    subject="the SQL",
    summary="names in `backticks` or \"double quotes\", strings in 'single quotes', numbers and operators",
    error=_error,
    length_max=TEXT_BYTES_MAX,
    counts_bytes=True,
    signs=frozenset("<=> <> != <= >= == || - + * / % = < > ( ) , . ; [ ]".split()),
    name_quotes=frozenset('`"'),
    reserved_words=_RESERVED,
    literal_words=frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "X"}),
    is_operands=("NULL", "TRUE", "FALSE", "DISTINCT FROM"),
    refusals=_REFUSED,
)
