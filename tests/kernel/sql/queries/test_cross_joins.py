"""Joins that compare all pairs of rows: which ones a view needs a permission for."""

from __future__ import annotations

import pytest

from app.kernel.format.errors import InvalidView
from app.kernel.sql.queries import ViewPlan, bind_view, parse_view
from tests.support.view_inputs import DATASETS

LINES = "SELECT o.id, l.item FROM orders o "
THREE = "SELECT o.id FROM orders o, lines l, `eu.customers` c "


def bound(sql: str, *, allow_cross_join: bool = False) -> ViewPlan:
    return bind_view(parse_view(sql), DATASETS, allow_cross_join=allow_cross_join)


@pytest.mark.parametrize(
    "sql",
    [
        LINES + "CROSS JOIN lines l",
        LINES + ", lines l",
        LINES + ", lines l WHERE o.id > l.order_id",
        LINES + ", lines l WHERE o.id = 7 AND l.order_id = 7",
        LINES + ", lines l WHERE o.id = l.order_id OR o.n = l.count",
        LINES + ", lines l WHERE NOT (o.id = l.order_id)",
        LINES + "JOIN lines l ON TRUE",
        LINES + "JOIN lines l ON 1 = 1",
        LINES + "JOIN lines l ON o.id = o.n",
        LINES + "JOIN lines l ON o.id < l.order_id AND o.n > 0",
        LINES + "LEFT JOIN lines l ON l.order_id = 3",
        LINES + "FULL JOIN lines l ON o.id - l.order_id = 0",
        "SELECT o.id FROM orders o LEFT SEMI JOIN lines l ON o.id > l.order_id",
        "SELECT o.id FROM orders o LEFT ANTI JOIN lines l ON TRUE",
        THREE + "WHERE o.id = l.order_id",
        THREE + "WHERE o.id + l.order_id = length(c.name)",
        LINES + "JOIN (SELECT a.item, a.order_id FROM lines a, lines b) AS l ON l.order_id = o.id",
        "WITH p AS (SELECT a.item FROM lines a CROSS JOIN lines b) SELECT item FROM p",
        "SELECT id FROM orders WHERE n > (SELECT count(*) FROM lines a, lines b)",
        LINES + ", (SELECT count(*) AS item FROM lines GROUP BY order_id) l",
    ],
)
def test_join_of_all_pairs_needs_a_permission(sql: str) -> None:
    with pytest.raises(InvalidView, match=r"JOIN with .* compares every row of one side") as refusal:
        bound(sql)
    assert "allow_cross_join: true" in refusal.value.facts["expected"]
    assert refusal.value.facts["pointer"] == "/sql"
    assert bound(sql, allow_cross_join=True).sql


@pytest.mark.parametrize(
    "sql",
    [
        LINES + "JOIN lines l ON o.id = l.order_id",
        LINES + "JOIN lines l ON o.n > 0 AND (o.paid AND upper(o.customer) = l.item)",
        LINES + "JOIN lines l ON o.id <=> l.order_id",
        LINES + ", lines l WHERE o.id = l.order_id",
        LINES + "CROSS JOIN lines l WHERE l.order_id = o.id * 2 + 1",
        LINES + "JOIN lines l ON o.id % 16 = l.count",
        LINES + "JOIN lines l ON CAST(o.id AS STRING) = lower(trim(l.item))",
        LINES + "JOIN lines l ON concat_ws('-', o.customer, upper(o.place.city)) = l.item || '-'",
        LINES + "JOIN lines l ON o.n % 2 = l.count % 2 AND concat('a', o.customer) = 'a' || l.item",
        LINES + "JOIN lines l ON coalesce(o.customer, '') = coalesce(l.item, '')",
        LINES + "JOIN lines l ON o.place.city = l.item",
        LINES + "JOIN lines l ON o.counts['n'] = abs(l.count)",
        "SELECT a.id FROM orders a JOIN orders b ON CAST(a.at AS DATE) = CAST(b.seen AS DATE)",
        "SELECT a.id FROM orders a JOIN orders b ON date_trunc('hour', a.at) = date_trunc('hour', b.at)",
        LINES + "JOIN lines l ON md5(o.customer) = md5(l.item)",
        "SELECT price FROM orders JOIN lines USING (price)",
        "SELECT price FROM orders FULL JOIN lines USING (price) FULL JOIN lines AS more USING (price)",
        "SELECT o.id FROM orders o LEFT SEMI JOIN lines l ON o.id = l.order_id",
        THREE + "WHERE o.customer = c.name AND c.name = l.item",
        THREE + "WHERE o.id = l.order_id AND concat(o.customer, l.item) = c.name",
        LINES + "CROSS JOIN (SELECT max(item) AS item FROM lines) l",
        "WITH l AS (SELECT max(item) AS item FROM lines) SELECT o.id, l.item FROM orders o, l",
        "SELECT a.id FROM (SELECT max(n) AS n FROM orders) m, orders a, orders b WHERE a.n = m.n AND m.n = b.n",
        "SELECT id FROM orders",
        LINES + "JOIN (SELECT *, lower(item) AS c FROM lines) l ON lower(o.customer) = l.c",
        LINES + "JOIN (SELECT *, count % 16 AS c FROM lines) l ON o.n = l.c",
        LINES + "JOIN (SELECT order_id AS c, min(item) AS item FROM lines GROUP BY order_id) l ON l.c = o.id",
        LINES + "JOIN (SELECT min(order_id) AS c, item FROM lines GROUP BY item) l ON l.c % 2 = o.id",
        LINES + "JOIN (SELECT count(*) AS c, item FROM lines GROUP BY item) l ON l.c = o.n",
        "WITH a AS (SELECT year(day) AS y, month(day) AS m, sum(n) AS n FROM orders GROUP BY y, m) "
        "SELECT a.n FROM a JOIN a AS b ON a.y = b.y AND a.m = b.m",
        "WITH a AS (SELECT DISTINCT n % 2 AS c FROM orders) SELECT a.c FROM a JOIN a AS b ON a.c = b.c",
        "WITH a AS (SELECT n % 2 AS c FROM orders UNION SELECT count % 2 FROM lines) "
        "SELECT c FROM a JOIN a AS b USING (c)",
        # A table of constants in the text.
        "SELECT o.id, d.name FROM orders o JOIN (SELECT 1 AS c, 'a' AS name UNION ALL SELECT 2, 'b') d ON o.n = d.c",
        "SELECT o.id FROM orders o JOIN (SELECT 1 AS c) d ON o.n = d.c",
        "WITH a AS (SELECT *, row_number() OVER (ORDER BY at) AS c FROM orders) "
        "SELECT a.id FROM a JOIN a AS b ON a.c = b.c - 1",
        "WITH a AS (SELECT id, lag(id) OVER (ORDER BY at) AS c FROM orders) "
        "SELECT a.id FROM a JOIN a AS b ON a.c = b.c",
        # The data decide how many pairs are equal, not the rule.
        LINES + "JOIN lines l ON o.id % 1 = l.order_id % 1",
        LINES + "JOIN lines l ON o.id * 0 <=> l.order_id * 0",
        LINES + "JOIN lines l ON left(o.customer, 0) = left(l.item, 0)",
        LINES + "JOIN lines l ON length(lower(o.customer)) = length(l.item)",
        LINES + "JOIN lines l ON concat('x', left(o.customer, 0)) = concat('x', left(l.item, 0))",
        LINES + "JOIN lines l ON coalesce('x', o.customer) = coalesce('x', l.item)",
        LINES + "JOIN lines l ON CAST(o.id AS BOOLEAN) = CAST(l.order_id AS BOOLEAN)",
        LINES + "JOIN lines l ON (o.id > 0) = (l.order_id > 0)",
        LINES + "JOIN lines l ON CASE WHEN o.id > 0 THEN 1 END = CASE WHEN l.order_id > 0 THEN 1 END",
        LINES + "JOIN (SELECT item, 7 AS c FROM lines) l ON o.id = l.c",
        LINES + "JOIN (SELECT item, c FROM (SELECT *, 7 AS c FROM lines) x) l ON o.id = l.c",
        LINES + "JOIN (SELECT *, max(order_id) OVER () AS c FROM lines) l ON o.n % 2 = l.c",
        LINES + "JOIN (SELECT *, (SELECT max(n) FROM orders) AS c FROM lines) l ON o.n = l.c",
        LINES + "JOIN (SELECT 7 AS c, item FROM lines UNION ALL SELECT 8, item FROM lines) l ON o.n = l.c",
        LINES + "JOIN (SELECT item, count % 1 AS c FROM lines) l ON o.id % 1 = l.c",
        "WITH a AS (SELECT id, id % 1 AS c FROM orders), b AS (SELECT x.c AS d, x.id FROM a x) "
        "SELECT a.id FROM a JOIN b ON a.c = b.d",
        "WITH a AS (SELECT id, id > 0 AS c FROM orders) SELECT c FROM a JOIN a AS b USING (c)",
        "WITH a (id, c) AS (SELECT id, 7 FROM orders) SELECT c FROM a JOIN a AS b USING (c)",
        "WITH a AS (SELECT id, c FROM (SELECT id, n % 2 AS c FROM orders) x GROUP BY id, c) "
        "SELECT a.id FROM a JOIN a AS b ON a.c = b.c",
        "WITH a AS (SELECT DISTINCT id, n % 2 AS c FROM orders) SELECT a.id FROM a JOIN a AS b ON a.c = b.c",
        "WITH a AS (SELECT id, row_number() OVER (PARTITION BY id ORDER BY n) AS c FROM orders) "
        "SELECT a.id FROM a JOIN a AS b ON a.c = b.c",
    ],
)
def test_join_with_an_equality_needs_no_permission(sql: str) -> None:
    assert bound(sql).sql


def test_many_equalities_are_checked_in_reasonable_time() -> None:
    names = [f"l{number}" for number in range(40)]
    ties = [f"{one}.order_id + {two}.order_id = l0.order_id" for one in names for two in names]
    tables = ", ".join(f"lines {name}" for name in names)
    sql = f"SELECT l0.item FROM {tables} WHERE {' AND '.join(ties[:600])}"
    with pytest.raises(InvalidView, match="compares every row"):
        bound(sql)


def test_refused_join_is_named_by_its_place() -> None:
    sql = LINES + "JOIN lines l ON o.id = l.order_id LEFT JOIN `eu.customers` c ON c.vip"
    with pytest.raises(InvalidView, match='the LEFT JOIN with "c" compares') as refusal:
        bound(sql)
    assert sql[refusal.value.facts["position"] :].startswith("`eu.customers`")
