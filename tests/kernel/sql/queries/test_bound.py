"""What a view gives: its columns with their types, its key, what it reads, and the SQL that is run for it."""

from __future__ import annotations

import re

import pytest

from app.kernel.sql.queries import parse_view, relation_type, to_spark_sql
from app.kernel.sql.queries.functions.functions import FUNCTIONS
from tests.support.view_inputs import DATASETS, planned


def columns(sql: str) -> list[str]:
    """Each column of the result as `name type`, with `!` behind it if it is never null."""
    return [
        f"{field.name} {field.type}{'' if field.nullable else '!'}" for field in planned(sql).schema.fields
    ]


def typed(expression: str, source: str = "orders") -> str:
    [column] = columns(f"SELECT {expression} AS x FROM {source}")
    return column.removeprefix("x ")


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("id", "int64!"),
        ("byte", "int16"),
        ("word", "int32"),
        ("long", "int64"),
        ("seen", "timestamp"),
        ("local", "timestamp_ntz"),
        ("place", "struct<city: string, at: struct<lat: double, lon: double>>"),
        ("place.at.lat", "double"),
        ("tags[0]", "string"),
        ("counts['k']", "int32"),
        ("1", "int32!"),
        ("2147483648", "int64!"),
        ("1.50", "decimal(3, 2)!"),
        (".05", "decimal(2, 2)!"),
        ("1e3", "double!"),
        ("id + 1", "int64!"),
        ("tiny + tiny", "int8"),
        ("tiny * small", "int16"),
        ("n / n", "double"),
        ("n DIV 2", "int64"),
        ("n + ratio", "double"),
        ("ratio * ratio", "float"),
        ("price + price", "decimal(10, 2)"),
        ("price * 2", "decimal(11, 2)"),
        ("price * n", "decimal(20, 2)"),
        ("price / 3", "decimal(13, 6)"),
        ("fine * fine", "decimal(38, 6)"),
        ("price % 7", "decimal(3, 2)"),
        ("price + weight", "double"),
        ("-price", "decimal(9, 2)"),
        ("n = 1", "boolean"),
        ("n <=> NULL", "boolean!"),
        ("n IS DISTINCT FROM 1", "boolean!"),
        ("id BETWEEN 1 AND 2", "boolean!"),
        ("id IN (1, NULL)", "boolean"),
        ("at > '2026-01-01' AND '2026-01-01T01:00:00.5' <> local", "boolean"),
        ("customer IS NULL OR paid", "boolean"),
        ("CASE WHEN paid THEN 1 ELSE 2.5 END", "decimal(11, 1)!"),
        ("CASE WHEN paid THEN 1 END", "int32"),
        ("CASE n WHEN 1 THEN id ELSE NULL END", "int64"),
        ("CAST(n AS string)", "string"),
        ("CAST(id AS string)", "string!"),
        ("CAST('1' AS int)", "int32"),
        ("TRY_CAST(id AS tinyint)", "int8"),
        ("day + INTERVAL 1 MONTH", "date"),
        ("at - INTERVAL '90 seconds'", "timestamp"),
        ("customer || '!'", "string"),
        ("coalesce(n, id)", "int64!"),
        ("nullif(id, 0)", "int64"),
        ("if(paid, id, 0)", "int64!"),
        ("greatest(n, price)", "decimal(12, 2)"),
        ("round(price, 1)", "decimal(9, 1)"),
        ("floor(price)", "decimal(8, 0)"),
        ("year(at)", "int32"),
        ("date_trunc('hour', at)", "timestamp"),
        ("to_date(at)", "date"),
        ("EXTRACT(DAY FROM at)", "int32"),
        ("count(*)", "int64!"),
        ("count(DISTINCT n)", "int64!"),
        ("sum(n)", "int64"),
        ("sum(price)", "decimal(19, 2)"),
        ("sum(ratio)", "double"),
        ("avg(n)", "double"),
        ("avg(price)", "decimal(13, 6)"),
        ("max(day)", "date"),
        ("collect_list(n)", "list<int32>!"),
        ("row_number() OVER (ORDER BY n)", "int32!"),
        ("sum(n) OVER (PARTITION BY customer)", "int64"),
        ("lag(id) OVER (ORDER BY at)", "int64"),
        ("(SELECT max(price) FROM lines)", "decimal(9, 2)"),
    ],
)
def test_expression_has_the_type_of_the_engine(expression: str, type_: str) -> None:
    assert typed(expression) == type_


TWO = "WITH a AS (SELECT id, n FROM orders), b AS (SELECT order_id AS id, item FROM lines)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM lines", ["order_id int64", "item string", "count int32", "price decimal(9, 2)"]),
        ("SELECT l.*, id FROM orders, (SELECT item, count FROM lines) l", ["item string", "count int32", "id int64!"]),
        ('SELECT "id", o."n" AS "in" FROM `orders` AS "o"', ["id int64!", "in int32"]),
        ("SELECT ID, oRdErS.Customer FROM orders", ["id int64!", "customer string"]),
        ("SELECT id number, n AS `a b``c` FROM orders", ["number int64!", "a b`c int32"]),
        ("SELECT id, name FROM orders LEFT JOIN `eu.customers` ON name = customer", ["id int64!", "name string"]),
        ("SELECT id, name FROM orders RIGHT JOIN `eu.customers` ON name = customer", ["id int64", "name string!"]),
        ("SELECT id, name FROM orders FULL JOIN `eu.customers` ON name = customer", ["id int64", "name string"]),
        (f"{TWO} SELECT * FROM a JOIN b USING (id)", ["id int64!", "n int32", "item string"]),
        (f"{TWO} SELECT * FROM b FULL OUTER JOIN a USING (id)", ["id int64", "item string", "n int32"]),
        (f"{TWO} SELECT id FROM a JOIN (SELECT id FROM a) c USING (id) RIGHT JOIN lines ON true", ["id int64"]),
        (f"{TWO} SELECT a.id, c.item FROM a JOIN b USING (id) JOIN b c USING (item)", ["id int64!", "item string"]),
        (f"{TWO} SELECT a.id, b.id AS b FROM a JOIN b USING (id)", ["id int64!", "b int64"]),
        (f"{TWO} SELECT b.id, a.id AS a FROM b RIGHT OUTER JOIN a USING (id)", ["id int64", "a int64!"]),
        ("SELECT * FROM (SELECT id FROM orders) a ANTI JOIN lines ON id = order_id", ["id int64!"]),
        ("SELECT id, n FROM orders UNION ALL SELECT order_id, price FROM lines", ["id int64", "n decimal(12, 2)"]),
        ("SELECT id FROM orders EXCEPT SELECT order_id FROM lines", ["id int64!"]),
        ("SELECT order_id FROM lines INTERSECT SELECT id FROM orders", ["order_id int64!"]),
        ("SELECT id, NULL AS x FROM orders UNION SELECT 1, 'a'", ["id int64!", "x string"]),
        ("WITH a(x, y) AS (SELECT id, n + 1 FROM orders) SELECT y, x FROM a", ["y int32", "x int64!"]),
        ("WITH orders AS (SELECT count(*) AS c FROM lines) SELECT c FROM orders", ["c int64!"]),
        ("SELECT n FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY at) = 1", ["n int32"]),
        ("SELECT n, rank() OVER (ORDER BY at) AS r FROM orders QUALIFY r < 3", ["n int32", "r int32!"]),
    ],
)  # fmt: skip
def test_query_has_the_expected_columns(sql: str, expected: list[str]) -> None:
    assert columns(sql) == expected


@pytest.mark.parametrize(
    ("sql", "inputs"),
    [
        ("SELECT id FROM orders JOIN `eu.customers` ON true JOIN orders o ON true", ("orders", "eu.customers")),
        ("WITH orders AS (SELECT 1 AS x FROM lines) SELECT x FROM orders", ("lines",)),
        ("WITH a AS (SELECT 1 AS x FROM A) SELECT x FROM a", ("A",)),
        ("WITH a AS (SELECT 1 AS x FROM b), b AS (SELECT 1 AS y FROM c) SELECT x FROM b JOIN a ON true", ("b", "c")),
        (
            "SELECT x FROM a WHERE EXISTS (WITH b AS (SELECT 1 FROM c) SELECT 1 FROM b) AND x IN (SELECT x FROM b)",
            ("a", "c", "b"),
        ),
        ("SELECT x FROM a UNION SELECT y FROM (SELECT y FROM b) AS d", ("a", "b")),
    ],
)  # fmt: skip
def test_inputs_are_the_tables_not_defined_by_with(sql: str, inputs: tuple[str, ...]) -> None:
    assert parse_view(sql).inputs == inputs


def test_only_named_columns_are_read() -> None:
    plan = planned("SELECT o.id, count(*) AS c FROM orders AS o, lines WHERE o.byte > 3 GROUP BY o.id")
    assert {source.name: source.columns for source in plan.sources} == {
        "orders": {"id": "BIGINT", "byte": "SMALLINT"},
        "lines": {"order_id": "BIGINT"},
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, n + 1 AS m FROM orders",
        "SELECT * FROM orders WHERE n > 1 AND customer LIKE 'a%'",
        "SELECT o.id AS x, CASE WHEN paid THEN upper(customer) END AS y FROM orders AS o",
        "SELECT item FROM lines",
    ],
)
def test_projection_of_one_input_is_row_by_row(sql: str) -> None:
    assert planned(sql).row_by_row


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT id FROM orders",
        "SELECT count(*) AS c FROM orders",
        "SELECT id FROM orders GROUP BY id",
        "SELECT count(*) AS c FROM orders HAVING true",
        "SELECT id, sum(n) OVER () AS s FROM orders",
        "SELECT id FROM orders QUALIFY rank() OVER (ORDER BY n) = 1",
        "SELECT id FROM orders WHERE n > (SELECT max(count) FROM lines)",
        "SELECT id FROM orders WHERE id IN (SELECT order_id FROM lines)",
        "SELECT id FROM orders JOIN lines ON id = order_id",
        "SELECT id FROM orders UNION ALL SELECT id FROM orders",
        "SELECT id FROM (SELECT id FROM orders) AS a",
        "WITH a AS (SELECT id FROM orders) SELECT id FROM a",
    ],
)
def test_query_over_several_rows_is_not_row_by_row(sql: str) -> None:
    plan = planned(sql)
    assert not plan.row_by_row
    assert (plan.projection, plan.predicate, plan.key_columns) == ((), None, {})
    with pytest.raises(ValueError, match="row-by-row"):
        to_spark_sql(plan, dict.fromkeys(plan.inputs, "r"), carry=["op"])


@pytest.mark.parametrize(
    ("sql", "passed", "key"),
    [
        ("SELECT id, n FROM orders", {"id": "id"}, ("id",)),
        ("SELECT n, o.id AS number, id FROM orders AS o WHERE paid", {"id": "number"}, ("number",)),
        ("SELECT id + 0 AS id FROM orders", {}, ()),
        ("SELECT since AS s, name FROM `eu.customers`", {"name": "name", "since": "s"}, ("name", "s")),
        ("SELECT name FROM `eu.customers`", {"name": "name"}, ()),
        ("SELECT item FROM lines", {}, ()),
    ],
)
def test_key_of_the_input_is_passed_on_under_its_new_names(
    sql: str, passed: dict[str, str], key: tuple[str, ...]
) -> None:
    plan = planned(sql)
    assert plan.key_columns == passed
    assert plan.suggested_key == key


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT id, count(*) AS c FROM orders GROUP BY id", ("id",)),
        ("SELECT count(*) AS c, coalesce(customer, '') AS who FROM orders GROUP BY 2", ("who",)),
        ("SELECT name, since AS s, count(*) AS c FROM `eu.customers` GROUP BY since, name", ("s", "name")),
        ("SELECT name, count(*) AS c FROM `eu.customers` GROUP BY since, name", ()),
        ("SELECT customer, count(*) AS c FROM orders GROUP BY customer", ()),
        ("SELECT id * 1e0 AS x, count(*) AS c FROM orders GROUP BY 1", ()),
        ("SELECT count(*) AS c FROM orders", ()),
        ("SELECT n, id AS i FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY at) = 1", ("i",)),
        ("SELECT id, row_number() OVER (PARTITION BY id ORDER BY n) AS r FROM orders QUALIFY 1 = r", ("id",)),
        ("SELECT id, row_number() OVER (PARTITION BY id ORDER BY n) AS n FROM orders QUALIFY n = 1", ()),
        ("SELECT n FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY at) = 1", ()),
        ("SELECT n FROM orders QUALIFY row_number() OVER (PARTITION BY n ORDER BY at) = 1", ()),
        ("SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY at) = 2", ()),
        ("SELECT id FROM orders QUALIFY rank() OVER (PARTITION BY id ORDER BY at) = 1", ()),
        ("SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY at) = 1", ()),
        ("SELECT id, item FROM orders JOIN lines ON id = order_id", ()),
        ("SELECT DISTINCT id FROM orders", ()),
        ("SELECT id, count(*) AS c FROM orders GROUP BY id UNION ALL SELECT 1, 1", ()),
    ],
)
def test_suggested_key_is_what_a_query_groups_by(sql: str, key: tuple[str, ...]) -> None:
    assert planned(sql).suggested_key == key


@pytest.mark.parametrize(
    ("over", "written"),
    [
        ("row_number() OVER (ORDER BY at)", "ORDER BY s1.`at` ASC NULLS FIRST, s1.`id` ASC NULLS FIRST"),
        ("ntile(2) OVER (PARTITION BY id ORDER BY at DESC)", "PARTITION BY s1.`id` ORDER BY s1.`at` DESC NULLS LAST)"),
        ("lag(n) OVER (ORDER BY at DESC NULLS FIRST)", "ORDER BY s1.`at` DESC NULLS FIRST, s1.`id` ASC NULLS FIRST"),
        ("sum(n) OVER (ORDER BY at ROWS 2 PRECEDING)", "`id` ASC NULLS FIRST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        ("rank() OVER (ORDER BY at)", "OVER (ORDER BY s1.`at` ASC NULLS FIRST)"),
        ("sum(n) OVER (ORDER BY at)", "OVER (ORDER BY s1.`at` ASC NULLS FIRST)"),
    ],
)  # fmt: skip
def test_window_order_is_completed_to_a_total_order(over: str, written: str) -> None:
    """Where the result depends on which of them is first, what distinguishes them is added to the order."""
    assert written in planned(f"SELECT id, {over} AS x FROM orders").sql


def test_window_ties_are_broken_by_all_columns_or_by_the_groups() -> None:
    plan = planned("SELECT item, row_number() OVER (ORDER BY count) AS x FROM lines")
    assert "s1.`count` ASC NULLS FIRST, s1.`order_id` ASC NULLS FIRST, s1.`item`" in plan.sql
    plan = planned(
        "SELECT customer, row_number() OVER (ORDER BY count(*)) AS x FROM orders GROUP BY customer"
    )
    assert "ORDER BY count(*) ASC NULLS FIRST, s1.`customer` ASC NULLS FIRST)" in plan.sql


def test_spark_sql_quotes_names_and_escapes_literals() -> None:
    plan = planned(
        "select ID, price*2 double, byte from orders where not paid and customer = 'O''Neil\\' -- all"
    )
    assert to_spark_sql(plan, {"orders": "orders_7"}, carry=["_hw_op"]) == (
        "WITH in1 AS (SELECT CAST(`id` AS BIGINT) AS `id`, CAST(`customer` AS STRING) AS `customer`, "
        "CAST(`paid` AS BOOLEAN) AS `paid`, CAST(`byte` AS SMALLINT) AS `byte`, "
        "CAST(`price` AS DECIMAL(9, 2)) AS `price`, `_hw_op` FROM `orders_7`) "
        "SELECT CAST(s1.`id` AS BIGINT) AS `id`, "
        "CAST((s1.`price` * CAST(2 AS DECIMAL(1, 0))) AS DECIMAL(11, 2)) AS `double`, "
        "CAST(s1.`byte` AS SMALLINT) AS `byte`, s1.`_hw_op` AS `_hw_op` FROM in1 AS s1 "
        "WHERE ((NOT s1.`paid`) AND (s1.`customer` = 'O\\u0027Neil\\u005C'))"
    )
    assert plan.predicate == "((NOT s1.`paid`) AND (s1.`customer` = 'O\\u0027Neil\\u005C'))"
    assert len(plan.projection) == len(plan.schema.fields)


def test_results_that_are_not_finite_fail_the_query() -> None:
    sql = to_spark_sql(planned("SELECT weight, id FROM orders"), {"orders": "r"})
    assert sql.count("raise_error('column \\u0027weight\\u0027 of the result is not a finite number')") == 1
    assert "raise_error" not in to_spark_sql(planned("SELECT id FROM orders"), {"orders": "r"})


@pytest.mark.parametrize("carried", ["id", "Customer", "X"])
def test_carried_column_must_not_be_a_column_of_the_view(carried: str) -> None:
    plan = planned("SELECT id AS x FROM orders WHERE customer = 'a'")
    with pytest.raises(ValueError, match="already a column of the view"):
        to_spark_sql(plan, {"orders": "r"}, carry=[carried])


def test_every_input_requires_a_relation() -> None:
    plan = planned("SELECT id FROM orders JOIN lines ON id = order_id")
    with pytest.raises(ValueError, match="lines"):
        to_spark_sql(plan, {"orders": "r"})


def test_names_and_literals_of_the_tenant_are_escaped() -> None:
    """Nothing can end a string or a name, and nothing is replaced by settings of the session."""
    plan = planned(
        "SELECT '`'' OR 1=1 -- \\'' ${env:HOME} {x} \u2028 😀' AS `a``, (SELECT 1) --`, `ticks``` FROM odd"
    )
    sql = to_spark_sql(plan, {"odd": "evil` UNION SELECT"})
    assert "${" not in sql
    assert "FROM `evil`` UNION SELECT`" in sql
    assert "`a``, (SELECT 1) --`" in sql
    strings = re.findall(r"'((?:[^'\\]|\\u[0-9A-F]{4}|\\U[0-9A-F]{8})*)'", sql)
    decoded = [re.sub(r"\\[uU]([0-9A-F]+)", lambda found: chr(int(found[1], 16)), text) for text in strings]
    assert decoded == ["`' OR 1=1 -- \\' ${env:HOME} {x} \u2028 😀"]


def test_input_columns_have_the_types_of_the_engine() -> None:
    for definition in DATASETS.values():
        for field in definition.schema.fields:
            known = relation_type(field.data_type())
            assert relation_type(known) == known
            assert "uint" not in str(known)
            assert "(ms)" not in str(known)


def test_every_function_declares_consistent_parameters() -> None:
    for name, function in FUNCTIONS.items():
        assert name == name.lower()
        assert function.optional <= len(function.parameters)
        assert not function.repeats or function.parameters, name
