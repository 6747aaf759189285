"""What is no view, and that it is refused where the fault is."""

from __future__ import annotations

from contextlib import suppress

import pytest

from app.kernel.format.errors import InvalidView
from app.kernel.sql.expression_parser import PATTERN_CHARACTERS_MAX
from app.kernel.sql.queries.functions.functions import FUNCTIONS, REFUSED_FUNCTIONS, Role
from tests.support.view_inputs import DATASETS, planned


def refused(sql: str) -> InvalidView:
    with pytest.raises(InvalidView) as error:
        planned(sql)
    assert set(error.value.facts) == {"pointer", "position", "expected"}
    assert error.value.facts["pointer"] == "/sql"
    return error.value


@pytest.mark.parametrize(
    ("sql", "place", "reason"),
    [
        ("", "", "ends too early"),
        ("-- nothing", "", "ends too early"),
        ("SELECT", "", "ends too early"),
        ("SELECT id FROM", "", "ends too early"),
        ("SELECT id FROM orders WHERE", "", "ends too early"),
        ("SELECT id FROM orders; SELECT 1", "SELECT 1", "unexpected"),
        ("SELECT id FROM orders; DROP TABLE orders", "DROP", "a view is one SELECT"),
        ("DROP TABLE orders", "DROP", "a view is one SELECT"),
        ("INSERT INTO orders SELECT * FROM lines", "INSERT", "a view is one SELECT"),
        ("CREATE VIEW v AS SELECT 1", "CREATE", "a view is one SELECT"),
        ("WITH a AS (DELETE FROM orders) SELECT 1", "DELETE", "a view is one SELECT"),
        ("SET x = 1", "SET", "a view is one SELECT"),
        ("FROM orders SELECT id", "FROM", "unexpected"),
        ("SELECT 1", "", "reads no dataset"),
        ("SELECT id FROM orders ORDER BY id", "ORDER", "have no order"),
        ("SELECT id FROM orders SORT BY id", "SORT", "have no order"),
        ("SELECT id FROM orders LIMIT 5", "LIMIT", "ROW_NUMBER"),
        ("SELECT id FROM (SELECT id FROM orders LIMIT 5) AS a", "LIMIT", "ROW_NUMBER"),
        (
            "SELECT id FROM orders WHERE id IN (SELECT order_id FROM lines ORDER BY 1 LIMIT 5)",
            "ORDER",
            "no order",
        ),
        ("SELECT id FROM orders FETCH FIRST 5 ROWS ONLY", "FETCH", "ROW_NUMBER"),
        ("SELECT id FROM orders CLUSTER BY id", "CLUSTER", "distributed"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "sample"),
        ("SELECT id FROM orders NATURAL JOIN lines", "NATURAL", "change with the schemas"),
        ("SELECT id FROM orders LATERAL VIEW explode(tags) AS t", "LATERAL", "LATERAL"),
        ("SELECT id FROM orders, LATERAL (SELECT 1)", "LATERAL", "LATERAL"),
        ("SELECT * FROM orders PIVOT (sum(n) FOR paid IN (true))", "PIVOT", "FILTER"),
        ("SELECT id FROM orders WINDOW w AS (ORDER BY id)", "WINDOW", "named windows"),
        ("SELECT * FROM VALUES (1)", "VALUES", "register a dataset"),
        ("SELECT * FROM (VALUES (1)) AS v", "VALUES", "register"),
        ("SELECT /*+ BROADCAST(orders) */ id FROM orders", "/*+", "hints"),
        ("SELECT id FROM orders /* ", "/*", "no end"),
        ("SELECT 'a FROM orders", "'a", "no end"),
        ("SELECT `a FROM orders", "`a", "no end"),
        ('SELECT "id FROM orders', '"id', "no end"),
        ("SELECT `` FROM orders", "``", "no end"),
        ("SELECT @x FROM orders", "@", "not part"),
        ("SELECT :x FROM orders", ":", "not part"),
        ("SELECT ${env:HOME} FROM orders", "${", "not part"),
        ("SELECT id FROM {{ orders }}", "{{", "not part"),
        ("SELECT id? FROM orders", "? FROM", "not part"),
        ("SELECT \\id FROM orders", "\\id", "not part"),
        ("SELECT 1L FROM orders", "1L", "end with letters"),
        ("SELECT 0x1F FROM orders", "0x1F", "end with letters"),
        ("SELECT 'a\ud800' FROM orders", "\ud800", "lone surrogate"),
        ("SELECT id FROM eu.customers", "eu.customers", "no catalogs"),
        ("SELECT id FROM parquet.`/etc`", "parquet.", "no catalogs"),
        ("SELECT id FROM range(10)", "range", "return tables"),
        ("SELECT id FROM read_files('/etc')", "read_files", "return tables"),
        ("SELECT id FROM orders JOIN lines", "", "ends too early"),
        ("SELECT id FROM orders JOIN lines WHERE id = 1", "WHERE", "unexpected"),
        ("SELECT id FROM orders CROSS JOIN lines ON id = order_id", "ON", "unexpected"),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT id FROM orders", "RECURSIVE", "recursion"),
        ("SELECT DISTINCT ON (id) id FROM orders", "ON", "DISTINCT ON"),
        ("SELECT customer FROM orders GROUP BY ALL", "ALL", "GROUP BY ALL"),
        ("SELECT customer FROM orders GROUP BY CUBE (customer)", "CUBE", "UNION ALL"),
        ("SELECT a -> b FROM orders", "> b", "unexpected"),
        ("SELECT id FROM orders WHERE customer RLIKE 'a'", "RLIKE", "unbounded time"),
        ("SELECT id FROM orders WHERE customer ILIKE 'a'", "ILIKE", "lower"),
        ("SELECT id FROM orders WHERE customer LIKE customer", "customer", "not a string literal"),
        (f"SELECT id FROM orders WHERE customer LIKE '{'%' * 5}'", "'%", "wildcards"),
        (
            f"SELECT id FROM orders WHERE customer LIKE '{'_' * (PATTERN_CHARACTERS_MAX + 1)}'",
            "'_",
            "too long",
        ),
        ("SELECT id FROM orders WHERE customer LIKE 'a!b' ESCAPE '!'", "'a!b'", "escapes nothing"),
        ("SELECT id FROM orders WHERE n = 1 = paid", "= paid", "unexpected"),
        ("SELECT id FROM orders WHERE n IS NULL = paid", "= paid", "unexpected"),
        ("SELECT id FROM orders WHERE n IS 1", "1", "unexpected"),
        ("SELECT id FROM orders WHERE n BETWEEN 1", "", "ends too early"),
        ("SELECT id FROM orders WHERE n IN ()", ")", "unexpected"),
        ("SELECT CASE id END FROM orders", "END", "unexpected"),
        ("SELECT CASE WHEN paid 1 END FROM orders", "1", "unexpected"),
        ("SELECT CAST(id AS uint8) AS x FROM orders", "uint8", "no type uint8"),
        ("SELECT CAST(id AS nothing) AS x FROM orders", "nothing", "unknown type"),
        ("SELECT CAST(id AS) AS x FROM orders", ")", "unknown type"),
        ("SELECT CAST(id) AS x FROM orders", ") AS", "unexpected"),
        ("SELECT id::string FROM orders", "::", "not part"),
        ("SELECT INTERVAL 1 FORTNIGHT + day AS x FROM orders", "INTERVAL", "not an interval"),
        ("SELECT DATE '2026-02-30' AS x FROM orders", "DATE", "not a date"),
        ("SELECT TIMESTAMP 'yesterday' AS x FROM orders", "TIMESTAMP", "not a time"),
        ("SELECT TIMESTAMP_NTZ '2026-01-01T00:00:00Z' AS x FROM orders", "TIMESTAMP_NTZ", "not a time"),
        ("SELECT X'0' AS x FROM orders", "X'0'", "not bytes"),
        ("SELECT 1e999 AS x FROM orders", "1e999", "out of range"),
        (f"SELECT {'9' * 39} AS x FROM orders", "999", "too many digits"),
        ("SELECT sum(n) OVER w AS x FROM orders", "w AS", "unexpected"),
        (
            "SELECT sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM orders",
            "RANGE",
            "RANGE",
        ),
        (
            "SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) AS x FROM orders",
            "ROWS",
            "ends before",
        ),
    ],
)
def test_sql_outside_the_view_language_is_refused_at_its_position(sql: str, place: str, reason: str) -> None:
    error = refused(sql)
    assert reason in error.detail
    if place:
        assert sql[error.facts["position"] :].startswith(place)


@pytest.mark.parametrize(
    ("sql", "place", "reason"),
    [
        ("SELECT nope FROM orders", "nope", 'no column "nope"'),
        ("SELECT custmer FROM orders", "custmer", 'expected "customer"'),
        ("SELECT lines.id FROM orders", "lines.id", "no column"),
        ("SELECT place.nope AS x FROM orders", "place.nope", 'no member "nope"'),
        ("SELECT n.x FROM orders", "n.x", "has no members"),
        ("SELECT id FROM orders o JOIN lines o ON true", "lines", "two tables are called"),
        ("SELECT price FROM orders JOIN lines ON id = order_id", "price", "one of several"),
        ("SELECT * FROM orders JOIN lines ON id = order_id", "*", 'two columns are called "price"'),
        ("SELECT id, n AS ID FROM orders", "n AS", 'two columns are called "ID"'),
        ("SELECT x.* FROM orders", "x.*", 'no table "x"'),
        ("SELECT *", "", "reads no dataset"),
        ("SELECT n + 1 FROM orders", "n + 1", "has no name"),
        ("SELECT n AS `_hw_x` FROM orders", "n AS", "reserved"),
        ("SELECT n AS `a\nb` FROM orders", "n AS", "cannot be the name"),
        ("SELECT n AS `${env:HOME}` FROM orders", "n AS", "cannot be the name"),
        ("SELECT * FROM odd", "*", "`${`"),
        ("SELECT `${env:HOME}` AS x FROM odd", "`${env", "`${`"),
        (f"SELECT n AS {'a' * 256} FROM orders", "n AS", "cannot be the name"),
        ("SELECT NULL AS x FROM orders", "", 'type of column "x" is not certain'),
        ("SELECT CASE WHEN paid THEN NULL END AS x FROM orders", "CASE", "no type in common"),
        ("SELECT CASE WHEN paid THEN 1 ELSE 'a' END AS x FROM orders", "CASE", "int32 and string"),
        ("SELECT coalesce(NULL, NULL) AS x FROM orders", "coalesce", "CAST(NULL AS type)"),
        ("SELECT avg(fine) AS x FROM orders", "avg", "34 digits at most"),
        ("SELECT coalesce(n, 'a') AS x FROM orders", "coalesce", "do not match each other"),
        ("SELECT id FROM orders WHERE n", "n", "not a condition"),
        ("SELECT id FROM orders WHERE customer = 1", "customer", "cannot be compared"),
        ("SELECT id FROM orders WHERE at > 'noon'", "'noon'", "TIMESTAMP 'YYYY"),
        (
            "SELECT id FROM orders WHERE day IN ('2026-01-01', '2026-01-01T00:00:00Z')",
            "'2026-01-01T",
            "not a date",
        ),
        ("SELECT id FROM orders WHERE customer > DATE '2026-01-01'", "customer", "string and date"),
        ("SELECT id FROM orders WHERE at > local", "at >", "cannot be compared"),
        ("SELECT id FROM orders WHERE tags = tags", "tags", "cannot be compared"),
        ("SELECT customer + 1 AS x FROM orders", "customer", "`+` does not support string"),
        ("SELECT day + 1 AS x FROM orders", "day", "date_add"),
        ("SELECT day - day AS x FROM orders", "day", "datediff"),
        ("SELECT day + INTERVAL 1 HOUR AS x FROM orders", "INTERVAL", "a date has no HOUR"),
        ("SELECT INTERVAL 1 DAY AS x FROM orders", "INTERVAL", "is not a value"),
        ("SELECT customer || n AS x FROM orders", "n AS", "CAST(… AS string)"),
        ("SELECT -customer AS x FROM orders", "customer", "does not support string"),
        ("SELECT CAST(tags AS string) AS x FROM orders", "CAST", "cannot be cast to"),
        ("SELECT CAST(n AS date) AS x FROM orders", "CAST", "cannot be cast to"),
        ("SELECT tags['a'] AS x FROM orders", "tags", "does not support"),
        ("SELECT upper(n) AS x FROM orders", "n)", "expected a string"),
        ("SELECT upper() AS x FROM orders", "upper", "0 arguments"),
        ("SELECT upper(customer, customer) AS x FROM orders", "upper", "2 arguments"),
        ("SELECT lpad(customer, n, ' ') AS x FROM orders", "n,", "an integer from 0"),
        ("SELECT lpad(customer, 2000000000, ' ') AS x FROM orders", "2000000000", "an integer from 0"),
        ("SELECT date_trunc('fortnight', at) AS x FROM orders", "'fortnight'", "'hour'"),
        ("SELECT uper(customer) AS x FROM orders", "uper", "upper"),
        ("SELECT my_udf(customer) AS x FROM orders", "my_udf", 'no function "my_udf"'),
        ("SELECT sum(n) AS x FROM orders WHERE sum(n) > 1", "sum(n) > 1", "no aggregates in WHERE"),
        ("SELECT sum(sum(n)) AS x FROM orders", "sum(n)) AS", "cannot be nested"),
        (
            "SELECT sum(row_number() OVER (ORDER BY n)) AS x FROM orders",
            "row_number",
            "there are none in an aggregate",
        ),
        (
            "SELECT id FROM orders WHERE row_number() OVER (ORDER BY n) = 1",
            "row_number",
            "no windows in WHERE",
        ),
        ("SELECT row_number() AS x FROM orders", "row_number", "needs a window"),
        ("SELECT row_number() OVER (PARTITION BY n) AS x FROM orders", "(PARTITION", "an order"),
        ("SELECT first_value(n) OVER (ORDER BY n) AS x FROM orders", "(ORDER", "frame of rows"),
        (
            "SELECT rank() OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS x FROM orders",
            "(ORDER",
            "supports no frame",
        ),
        ("SELECT sum(n) OVER (ORDER BY tags) AS x FROM orders", "tags", "have no order"),
        ("SELECT upper(customer) OVER () AS x FROM orders", "upper", "supports no window"),
        ("SELECT upper(DISTINCT customer) AS x FROM orders", "upper", "belong to aggregates"),
        ("SELECT sum(DISTINCT n) OVER () AS x FROM orders", "sum", "cannot be DISTINCT"),
        ("SELECT sum(*) AS x FROM orders", "sum", "only COUNT"),
        ("SELECT customer, count(*) AS c FROM orders", "customer", "several values"),
        ("SELECT customer, n FROM orders GROUP BY customer", "n FROM", "several values"),
        ("SELECT * FROM orders GROUP BY id", "*", "several values"),
        ("SELECT customer FROM orders GROUP BY customer HAVING n > 1", "n > 1", "several values"),
        ("SELECT customer FROM orders GROUP BY 2", "2", "no such column in the SELECT list"),
        ("SELECT counts FROM orders GROUP BY counts", "counts", "cannot be grouped by"),
        ("SELECT DISTINCT counts FROM orders", "SELECT", "maps cannot be compared"),
        ("SELECT counts FROM orders UNION SELECT counts FROM orders", "SELECT", "UNION ALL"),
        (
            "SELECT id FROM orders UNION ALL SELECT id, n FROM orders",
            "SELECT id, n",
            "1 columns, the other 2",
        ),
        ("SELECT id FROM orders UNION ALL SELECT customer FROM orders", "SELECT customer", "one type"),
        (
            "WITH a AS (SELECT id FROM orders) SELECT id FROM a JOIN a b USING (id) JOIN a c ON true",
            "id FROM a J",
            "several",
        ),
        (
            "WITH a AS (SELECT id FROM orders) SELECT * FROM a JOIN a b USING (id) JOIN a c ON true",
            "*",
            "two columns",
        ),
        ("SELECT id FROM orders JOIN lines USING (id)", "lines", "no column of one side"),
        ("SELECT id FROM orders JOIN (SELECT 'a' AS id) x USING (id)", "(SELECT", "int64 on one side"),
        ("SELECT item FROM orders LEFT SEMI JOIN lines ON id = order_id", "item", "no column"),
        ("SELECT id FROM orders JOIN lines ON EXISTS (SELECT 1 FROM lines)", "EXISTS", "no queries in ON"),
        ("SELECT EXISTS (SELECT 1 FROM lines) AS x FROM orders", "EXISTS", "belong in WHERE"),
        ("SELECT (SELECT price FROM lines) AS x FROM orders", "(SELECT", "several rows"),
        ("SELECT (SELECT count(*), 1 FROM lines) AS x FROM orders", "(SELECT", "several rows, or columns"),
        (
            "SELECT (SELECT max(l.price) FROM lines l WHERE l.order_id = o.id) AS x FROM orders o",
            "o.id",
            "no column",
        ),
        (
            "SELECT id FROM orders o WHERE id IN (SELECT count(*) FROM lines l WHERE l.order_id = o.id)",
            "SELECT c",
            "JOIN",
        ),
        (
            "SELECT sum(max(n)) FILTER (WHERE max(n) > 1) OVER () AS x FROM orders",
            "max(n) > 1",
            "aggregates in FILTER",
        ),
        ("SELECT sum(n) AS s FROM orders HAVING max(s) > 1", "s) > 1", "cannot be nested"),
        (
            "SELECT rank() OVER (ORDER BY n) AS r FROM orders QUALIFY sum(r) OVER () > 1",
            "r) OVER",
            "a window function",
        ),
        (
            "SELECT (SELECT max(n) FROM orders) AS m FROM orders QUALIFY rank() OVER (ORDER BY n) = m",
            "m",
            "no queries in",
        ),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT sum(1) OVER () FROM lines WHERE order_id = o.id)",
            "SELECT sum",
            "JOIN",
        ),
        (
            "SELECT sum(max(n)) FILTER (WHERE paid) OVER () AS x FROM orders GROUP BY customer",
            "paid",
            "several values",
        ),
        (
            "SELECT id FROM orders WHERE id IN (SELECT order_id, count FROM lines)",
            "SELECT order_id",
            "2 columns",
        ),
        ("SELECT id FROM orders WHERE id IN (SELECT item FROM lines)", "id IN", "int64 is compared"),
        ("WITH a(x, y) AS (SELECT id FROM orders) SELECT x FROM a", "SELECT id", "2 names are listed"),
    ],
)
def test_sql_that_does_not_match_the_inputs_is_refused_at_its_position(
    sql: str, place: str, reason: str
) -> None:
    error = refused(sql)
    assert reason in error.detail
    if place:
        assert sql[error.facts["position"] :].startswith(place)


@pytest.mark.parametrize("name", sorted(REFUSED_FUNCTIONS))
def test_unsupported_function_is_refused_with_a_reason(name: str) -> None:
    assert name not in FUNCTIONS
    assert REFUSED_FUNCTIONS[name] in refused(f"SELECT {name}(n) AS x FROM orders").detail


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_accepts_or_refuses_a_value_of_any_type(name: str) -> None:
    function = FUNCTIONS[name]
    over = " OVER (ORDER BY id)" if function.role is Role.WINDOW else ""
    columns = [f"`{column}`" for column in DATASETS["orders"].schema.names()]
    for argument in [*columns, "NULL", "1", "'a'", "0.5"]:
        call = f"{name}({', '.join([argument] * len(function.parameters))}){over}"
        with suppress(InvalidView):
            assert planned(f"SELECT {call} AS x FROM orders").schema.fields[0].type


def test_sql_functions_without_parentheses_are_column_names() -> None:
    """CURRENT_DATE without parentheses, for one: there is no way to the clock."""
    for name in ("current_date", "current_timestamp", "current_user", "localtimestamp"):
        assert "no column" in refused(f"SELECT {name} FROM orders").detail
