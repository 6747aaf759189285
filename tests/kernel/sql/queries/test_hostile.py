"""No text of a view does harm: it is a view, or refused at once."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.errors import InvalidView
from app.kernel.sql.queries import bind_view, parse_view, to_spark_sql
from app.kernel.sql.queries.language import TEXT_BYTES_MAX
from tests.support.examples import examples
from tests.support.view_inputs import DATASETS, planned

DEEP = 5_000
SECONDS_MAX = 5
HOSTILE = {
    "parentheses": f"SELECT {'(' * DEEP}1{')' * DEEP} AS x FROM orders",
    "open parentheses": f"SELECT {'(' * DEEP}",
    "tables in parentheses": f"SELECT id FROM {'(' * DEEP}orders{')' * DEEP}",
    "queries in parentheses": f"{'(' * DEEP}SELECT id FROM orders{')' * DEEP}",
    "NOT": f"SELECT {'NOT ' * DEEP}paid AS x FROM orders",
    "signs": f"SELECT {'- ' * DEEP}n AS x FROM orders",
    "sums": f"SELECT n{' + n' * DEEP} AS x FROM orders",
    "comparisons": f"SELECT n{' = n' * DEEP} AS x FROM orders",
    "functions": f"SELECT {'upper(' * DEEP}customer{')' * DEEP} AS x FROM orders",
    "CASE": f"SELECT {'CASE WHEN paid THEN ' * DEEP}n{' END' * DEEP} AS x FROM orders",
    "open CASE": "SELECT " + "CASE WHEN " * DEEP,
    "elements": f"SELECT tags{'[0]' * DEEP} AS x FROM orders",
    "members": f"SELECT place{'.at' * DEEP} AS x FROM orders",
    "casts": f"SELECT {'CAST(' * DEEP}n{' AS int)' * DEEP} AS x FROM orders",
    "types": f"SELECT CAST(n AS {'list<' * DEEP}int{'>' * DEEP}) AS x FROM orders",
    "parentheses of types": f"SELECT CAST(n AS {'(' * DEEP}",
    "joins": f"SELECT a.id FROM orders a{' JOIN lines' * DEEP}",
    "cross joins": f"SELECT 1 AS x FROM orders{', lines' * DEEP}",
    "unions": "SELECT id FROM orders" + " UNION ALL SELECT id FROM orders" * 1_000,
    "queries in queries": "SELECT id FROM (" * 1_000 + "orders",
    "WITH in WITH": "WITH a AS (" * DEEP,
    "EXISTS": "SELECT id FROM orders WHERE " + "EXISTS (SELECT 1 FROM orders WHERE " * 1_000,
    "windows": f"SELECT {'sum(' * DEEP}n{') OVER ()' * DEEP} AS x FROM orders",
    "blanks": "SELECT" + " " * 50_000 + "id",
    "comments": "SELECT" + "/**/" * 10_000 + "id",
    "open comments": "/*" * 30_000,
    "quotes": "'" * 60_001,
    "backticks": "`" * 60_001,
    "digits": f"SELECT {'1' * 60_000} AS x FROM orders",
    "dots": f"SELECT {'.' * 60_000}",
    "WITH that doubles": "WITH a0 AS (SELECT id FROM orders)"
    + "".join(f", a{n} AS (SELECT x.id FROM a{n - 1} x JOIN a{n - 1} y ON true)" for n in range(1, 30))
    + " SELECT id FROM a29",
    "stars that double": "WITH a0 AS (SELECT n AS c FROM orders)"
    + "".join(f", a{n} AS (SELECT x.*, y.* FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 30))
    + " SELECT c FROM a29",
    "queries in WHERE that double": "WITH a0 AS (SELECT id FROM orders)"
    + "".join(
        f", a{n} AS (SELECT id FROM orders WHERE id IN (SELECT id FROM a{n - 1}) AND id IN (SELECT id FROM a{n - 1}))"
        for n in range(1, 30)
    )
    + " SELECT id FROM a29",
    "aliases of long expressions": f"SELECT {'n + ' * 100}n AS x, max({'n * ' * 100}n) AS y FROM orders GROUP BY 1 "
    f"HAVING {' OR '.join(['y = 1'] * 5_000)}",
    "orders of wide rows": f"SELECT {', '.join(f'ntile(2) OVER (ORDER BY n) AS x{n}' for n in range(1_000))} FROM wide",
    "groups": f"SELECT {'n + ' * 100}customer AS x FROM orders GROUP BY {', '.join(['1'] * 10_000)}",
    "bytes": f"SELECT id FROM orders -- {'é' * (TEXT_BYTES_MAX // 2)}",
    "datasets": "SELECT 1 AS x FROM " + ", ".join(f"t{n}" for n in range(17)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_quickly(name: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidView):
        planned(HOSTILE[name])
    assert time.process_time() - began < SECONDS_MAX


WORDS = """
SELECT FROM WHERE GROUP BY HAVING QUALIFY WITH AS DISTINCT ALL JOIN LEFT RIGHT FULL CROSS SEMI ANTI ON USING UNION
INTERSECT EXCEPT AND OR NOT IN IS NULL LIKE ESCAPE BETWEEN EXISTS CASE WHEN THEN ELSE END CAST TRY_CAST OVER
PARTITION ORDER ROWS RANGE PRECEDING UNBOUNDED CURRENT ROW FILTER INTERVAL DAY DATE TIMESTAMP X TRUE DIV EXTRACT
orders lines o id n customer price tags counts place city at day paid count sum upper coalesce row_number int string
( ) ( ) , , . * + - / % = <> < <=> || [ ] 1 2 0 1.5 1e3 'a' '2026-01-01' `n` `eu.customers` ; -- /* ${ : ? @ é 😀
"""
PIECES = st.sampled_from(WORDS.split())
QUERIES = st.lists(PIECES, min_size=1, max_size=25).map(" ".join)
SEEDED = st.tuples(
    st.sampled_from(
        [
            "SELECT {} FROM orders",
            "SELECT id FROM orders WHERE {}",
            "SELECT {} AS x, count(*) AS c FROM orders GROUP BY 1",
            "SELECT id FROM orders {}",
            "WITH a AS (SELECT {} AS x FROM orders) SELECT x FROM a",
            "SELECT sum(n) OVER ({}) AS x FROM orders",
        ]
    ),
    st.lists(PIECES, min_size=1, max_size=8).map(" ".join),
).map(lambda parts: parts[0].format(parts[1]))


@given(st.one_of(QUERIES, SEEDED, st.text(max_size=60)))
@settings(max_examples=examples(600), deadline=None)
def test_any_text_is_a_view_or_refused(sql: str) -> None:
    try:
        parsed = parse_view(sql)
        if not set(parsed.inputs) <= set(DATASETS):
            return
        plan = bind_view(parsed, DATASETS)
    except InvalidView as error:
        position = error.facts["position"]
        assert position is None or 0 <= position <= len(sql)
        return
    written = to_spark_sql(plan, dict.fromkeys(plan.inputs, "relation"))
    assert "${" not in written
