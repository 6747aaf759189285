"""What is known of a view beside what Spark makes of its SQL: types, rows, and which relations it reads."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from app.kernel.sql.queries import relation_type, to_spark_sql
from app.kernel.sql.queries.functions.functions import FUNCTIONS
from app.kernel.sql.queries.plan import relations_clause
from app.kernel.sql.queries.relation_types import spark_type
from tests.support.view_inputs import DATASETS, planned
from workers.engine.spark_engine import SparkEngine

RELATIONS: Final = {name: f"view_input_{number}" for number, name in enumerate(DATASETS) if name != "wide"}
NOON: Final = dt.datetime(2026, 1, 2, 12, 30)  # noqa: DTZ001 # the session is in UTC
FULL: Final = (
    *(1, "ann", True, 1, 2, 3, 4, 5, 6, 1.5, 2.5, Decimal("2.40"), Decimal("1.5")),
    *(b"ab", NOON.date(), NOON, NOON, NOON, ["a", "b"], {"k": 1}, ("Lyon", (1.0, 2.0))),
)  # fmt: skip
ROWS: Final[dict[str, list[tuple[Any, ...]]]] = {
    "orders": [FULL, (2, *[None] * 20), (3, "bob", False, *FULL[3:])],
    "eu.customers": [("ann", dt.date(2026, 1, 1), True)],
    "lines": [(1, "tea", 2, Decimal("1.00")), (1, "pot", 1, Decimal("9.00")), (4, "cup", 1, None)],
    "odd": [("a", "secret", 1, 2)],
}
# One SELECT each: what each row gives, what all rows give together, what each gives beside the others.
EXPRESSIONS: Final = {
    "scalars": """
        n + 1; n - tiny; tiny + small; tiny * tiny; byte + byte; word + 1; long + long; id * n; n / 2; id / n; n % 2
        id DIV n; -n; -price; price + 1; price * 2; price / 3; price % 7; price - fine; fine * fine; fine / price
        price * n; price + id; price + weight; ratio + ratio; ratio / ratio; ratio + n; 1.5 + 2; 0.05 * price; 1e3 * n
        3000000000; 12345678901234567890; .5; 0.0; 1.50
        n = 1; n < 2.5; weight = price; at > day; at >= TIMESTAMP '2026-01-01T00:00:00+02:00'; n <=> NULL; raw = X'6162'
        local < TIMESTAMP_NTZ '2026-01-01 00:00:00.5'; n IS DISTINCT FROM 3; paid IS NOT TRUE; n NOT BETWEEN 1 AND 2.5
        n IN (1, 2.5, NULL); customer LIKE '%a!_b%' ESCAPE '!'; NOT paid OR n IS NULL AND customer NOT LIKE 'a%'
        CASE WHEN n > 1 THEN 'a' ELSE customer END; CASE n WHEN 1 THEN 1 WHEN 2.5 THEN 2.5 END
        CAST(n AS string); TRY_CAST(customer AS int); CAST(weight AS decimal(20, 3)); CAST(day AS timestamp)
        CAST(at AS timestamp_ntz); CAST(at AS bigint); CAST(NULL AS list<int>); CAST('2026-01-01' AS date)
        customer || 'x'; day + INTERVAL 1 DAY; day - INTERVAL '2' MONTH; at + INTERVAL 3 HOURS; local + INTERVAL 1 WEEK
        at - INTERVAL 1500001 MICROSECONDS; INTERVAL 1 QUARTER + day; at + INTERVAL -3 SECOND; EXTRACT(YEAR FROM at)
        tags[0]; counts['k']; place.city; place.at.lat; (place).city; tags; counts; place; seen; byte; word; long; raw
        upper(customer); lower(customer); initcap(customer); trim(customer); ltrim(customer); rtrim(customer)
        length(raw); char_length(customer); character_length(raw); octet_length(customer); substring(customer, 2)
        substr(customer, 1, n); left(customer, 2); right(customer, id); concat(customer, 'a'); concat_ws('-', customer)
        replace(customer, 'a', 'b'); translate(customer, 'a', 'b'); reverse(customer); lpad(customer, 5, '0')
        rpad(customer, 5, ' '); instr(customer, 'n'); startswith(customer, 'a'); endswith(customer, 'n')
        contains(customer, 'n'); split_part(customer, '-', 1); ascii(customer); md5(raw); sha1(customer)
        sha2(customer, 256); hex(raw); unhex('00FF'); base64(customer); unbase64('AP8='); xxhash64(customer, n, at)
        abs(price); abs(tiny); ceil(n); ceil(price); ceiling(fine); floor(price); floor(tiny); round(n); round(price)
        round(price, 1); round(n, -1); round(price, -1); round(price, 5); round(ratio, 1); sqrt(n); cbrt(weight)
        exp(price); sign(n); signum(price); sin(n); cos(n); tan(n); asin(0.5); acos(0.5); atan(n); radians(n)
        degrees(n)
        ln(n); log10(n); log2(n); pow(n, 2); power(price, 0.5); atan2(n, 1); pi(); try_add(price, n)
        try_subtract(id, n)
        try_multiply(price, 2); try_divide(n, 0); try_divide(price, 2); mod(price, 2); mod(id, n)
        year(day); quarter(at); month(local); day(day); dayofmonth(at); dayofweek(day); dayofyear(day); weekofyear(day)
        weekday(day); hour(at); minute(local); second(day); date_add(day, 1); date_sub(at, n); add_months(day, 2)
        datediff(day, at); date_diff(day, local); last_day(day); to_date(at); make_date(2026, 1, n)
        date_trunc('WEEK', day); trunc(day, 'month'); date_format(local, 'HH'); unix_seconds(at); unix_millis(at)
        unix_micros(at); unix_timestamp(at); timestamp_seconds(n); timestamp_millis(id); timestamp_micros(id)
        from_utc_timestamp(at, 'Europe/Berlin'); to_utc_timestamp(at, 'Europe/Berlin')
        coalesce(n, id, 2.5); coalesce(NULL, customer); ifnull(n, 0); nvl(price, 0); nullif(price, 1); if(paid, n, id)
        nvl2(n, 1, 2.5); greatest(price, n, weight); least(n, price)
        size(tags); cardinality(counts); array_contains(tags, 'a'); array_join(tags, ','); element_at(tags, 1)
        try_element_at(counts, 'k'); map_keys(counts); map_values(counts); get_json_object(customer, '$.a')
        (SELECT max(price) FROM lines)""",
    "aggregates": """
        count(*); count(n, customer); count(DISTINCT n, customer); count_if(paid); count(*) FILTER (WHERE paid); sum(n)
        sum(price); sum(fine); sum(ratio); sum(DISTINCT n); try_sum(id); avg(n); avg(price); mean(weight)
        try_avg(price)
        min(customer); max(raw); min(price) FILTER (WHERE n > 1); bool_and(paid); every(paid); bool_or(paid); any(paid)
        some(paid); stddev(n); stddev_samp(price); stddev_pop(weight); variance(n); var_samp(n); var_pop(n)
        median(price)
        percentile(n, 0.5); approx_count_distinct(customer); collect_list(n); array_agg(customer) FILTER (WHERE paid)
        collect_set(day); collect_list(DISTINCT n); sum(n) / count(*); sum(sum(n)) OVER ()""",
    "windows": """
        row_number() OVER (ORDER BY n); rank() OVER (ORDER BY n DESC); ntile(4) OVER (ORDER BY n)
        dense_rank() OVER (PARTITION BY customer ORDER BY n DESC NULLS LAST); percent_rank() OVER (ORDER BY n)
        cume_dist() OVER (ORDER BY n); lag(n) OVER (ORDER BY at); lead(tags, 2) OVER (PARTITION BY customer ORDER BY at)
        first_value(n) OVER (ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        last_value(customer) OVER (ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
        sum(price) OVER (ORDER BY at ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING); count(*) OVER ()
        avg(n) OVER (ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW); n - avg(n) OVER ()
        collect_list(n) OVER (PARTITION BY customer); max(n) FILTER (WHERE paid) OVER ()""",
}  # fmt: skip
QUERIES: Final = [
    "SELECT * FROM orders",
    "SELECT o.*, c.vip FROM orders o JOIN `eu.customers` c ON o.customer = c.name",
    "SELECT order_id, customer FROM lines RIGHT JOIN (SELECT id AS order_id, customer FROM orders) o USING (order_id)",
    "SELECT * FROM lines FULL OUTER JOIN (SELECT id AS order_id, customer FROM orders) o USING (order_id)",
    "SELECT id FROM orders LEFT SEMI JOIN lines ON id = order_id",
    "SELECT o.id, l.item FROM orders o CROSS JOIN (lines l JOIN `eu.customers` c ON c.name = l.item)",
    "WITH a AS (SELECT id, n FROM orders), b(x, y) AS (SELECT id, n + 1 FROM a) SELECT y, n FROM b JOIN a ON id = x",
    "SELECT id, n FROM orders UNION SELECT 1, 2.5 INTERSECT SELECT id, price FROM orders",
    "(SELECT id FROM orders) MINUS ALL (SELECT order_id FROM lines)",
    "SELECT DISTINCT customer FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY at DESC) = 1",
    "SELECT customer, sum(n) AS total, rank() OVER (ORDER BY sum(n) DESC) AS r FROM orders GROUP BY customer "
    "HAVING total > 1 QUALIFY r < 10",
    "SELECT 5 AS five, year(day) AS y, count(*) AS c FROM orders GROUP BY five, 2",
    "SELECT customer || '!' AS c, length(customer || '!') AS l FROM orders GROUP BY customer || '!'",
    "SELECT id FROM orders o WHERE EXISTS (SELECT * FROM lines l WHERE order_id = o.id AND l.price < o.price) OR paid",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM lines WHERE item = o.customer) = paid OR n IN (SELECT 1)",
    "SELECT id FROM orders o WHERE id NOT IN (SELECT order_id FROM lines l WHERE l.price > o.price)",
    "SELECT customer, count(*) AS c FROM orders GROUP BY customer HAVING count(*) > (SELECT count(*) FROM lines)",
    "SELECT `a b`, `ticks``` + 1 AS `x``y` FROM odd",
    "SELECT x FROM (WITH a AS (SELECT id AS x FROM orders) SELECT * FROM a) AS b",
    "SELECT customer, counts FROM orders UNION ALL SELECT customer, counts FROM orders",
    "SELECT id, NULL AS e FROM orders UNION ALL SELECT 1, 'a'",
]


def of_spark(data_type: Any, session: SparkSession) -> DataType:
    return session.sql(f"SELECT CAST(NULL AS {spark_type(data_type)})").schema[0].dataType


@pytest.fixture(scope="module")
def session(engine: SparkEngine) -> Iterator[SparkSession]:
    session = SparkSession.getActiveSession()
    assert session is not None
    for name, relation in RELATIONS.items():
        fields = DATASETS[name].schema.fields
        types = [of_spark(relation_type(field.data_type()), session) for field in fields]
        schema = StructType(
            [
                StructField(field.name, type_, field.nullable)
                for field, type_ in zip(fields, types, strict=True)
            ]
        )
        session.createDataFrame(ROWS[name], schema).createOrReplaceTempView(relation)
    yield session
    for relation in RELATIONS.values():
        session.catalog.dropTempView(relation)


def checked(sql: str, session: SparkSession) -> DataFrame:
    """The result of a view, whose types before the last casts are what they are cast to."""
    plan = planned(sql)
    uncast = session.sql(f"{relations_clause(plan, RELATIONS)} SELECT * FROM ({plan.sql}) AS s").schema
    result = session.sql(to_spark_sql(plan, RELATIONS))
    assert result.columns == plan.schema.names() == uncast.names
    known = {field.name: of_spark(field.data_type(), session) for field in plan.schema.fields}
    assert {field.name: _nullable(field.dataType) for field in uncast.fields} == known
    assert {field.name: field.dataType for field in result.schema.fields} == known
    return result


def _nullable(data_type: DataType) -> DataType:
    """The type with elements that may be null: Spark knows of some lists that theirs never are."""
    return (
        ArrayType(data_type.elementType, containsNull=True) if isinstance(data_type, ArrayType) else data_type
    )


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_have_their_spark_types(name: str, session: SparkSession) -> None:
    expressions = [
        each for line in EXPRESSIONS[name].splitlines() for each in line.strip().split("; ") if each
    ]
    sql = (
        "SELECT " + ", ".join(f"{each} AS `{each.replace('`', '')}`" for each in expressions) + " FROM orders"
    )
    rows = checked(sql, session).collect()
    for field in planned(sql).schema.fields:
        if not field.nullable:
            assert all(row[field.name] is not None for row in rows), field.name


def test_every_function_is_covered_by_an_expression() -> None:
    assert [name for name in FUNCTIONS if not any(f"{name}(" in text for text in EXPRESSIONS.values())] == []


@pytest.mark.parametrize("sql", QUERIES)
def test_queries_have_their_spark_columns(sql: str, session: SparkSession) -> None:
    checked(sql, session)


@pytest.mark.parametrize("sql", QUERIES)
def test_query_reads_only_its_inputs(sql: str, session: SparkSession) -> None:
    plan = planned(sql)
    parser = session._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined]
    parsed = parser.parsePlan(to_spark_sql(plan, RELATIONS)).toString()
    named = set(re.findall(r"'UnresolvedRelation \[([^\]]*)\]", parsed))
    assert {name for name in named if not re.fullmatch(r"in\d+|withs\d+", name)} == {
        RELATIONS[name] for name in plan.inputs
    }


def test_with_query_hides_a_dataset_of_the_same_name(session: SparkSession) -> None:
    session.sql("SELECT 'decoy' AS item").createOrReplaceTempView("lines")
    try:
        assert [row.item for row in checked("SELECT item FROM lines WHERE price > 5", session).collect()] == [
            "pot"
        ]
        sql = "WITH lines AS (SELECT 'other' AS item FROM orders) SELECT DISTINCT item FROM lines"
        assert [row.item for row in checked(sql, session).collect()] == ["other"]
    finally:
        session.catalog.dropTempView("lines")


ODD: Final = "`'\\ ${env:HOME} ${system:user.name} {x} 😀"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT '" + ODD.replace("'", "''") + "' AS x FROM odd", [ODD]),
        ("SELECT 'a\\b' LIKE 'a\\_' AS x FROM odd", [True]),
        ("SELECT 'a_b' LIKE 'a!_b' ESCAPE '!' AS x FROM odd", [True]),
        ("SELECT 'axb' LIKE 'a!_b' ESCAPE '!' AS x FROM odd", [False]),
        ("SELECT 'a!b' LIKE 'a!!_' ESCAPE '!' AS x FROM odd", [True]),
        ("SELECT 'a%\\b' LIKE 'a\\%\\\\_' ESCAPE '\\' AS x FROM odd", [True]),
        ("SELECT CAST(0.05 AS string) || CAST(1.50 AS string) AS x FROM odd", ["0.051.50"]),
        ("SELECT TIMESTAMP '2026-01-01T02:00:00+02:00' = TIMESTAMP '2026-01-01' AS x FROM odd", [True]),
        ("SELECT id AS x FROM orders WHERE at BETWEEN '2026-01-02T12:00:00+00:00' AND '2026-01-03'", [1, 3]),
        ("SELECT DATE '2026-01-31' + INTERVAL 1 MONTH = DATE '2026-02-28' AS x FROM odd", [True]),
        ("SELECT 2 + 3 * 4 - -1 AS x FROM odd", [15]),
        ("SELECT NOT 1 = 2 AND 2 BETWEEN 1 AND 3 AND 3 > 2 AS x FROM odd", [True]),
        ("SELECT item AS x FROM lines WHERE price IS NULL OR price > 5", ["cup", "pot"]),
        ("SELECT count(*) AS x FROM orders LEFT ANTI JOIN lines ON id = order_id", [2]),
        ("SELECT sum(price) AS x FROM lines GROUP BY order_id HAVING count(*) > 1", [Decimal("10.00")]),
        ("SELECT id AS x FROM orders WHERE id NOT IN (SELECT order_id FROM lines)", [2, 3]),
        ("SELECT order_id AS x FROM lines UNION SELECT id FROM orders", [1, 2, 3, 4]),
        ("SELECT id AS x FROM orders MINUS SELECT order_id FROM lines", [2, 3]),
        ("SELECT item AS x FROM lines QUALIFY row_number() OVER (ORDER BY count) = 1", ["pot"]),
        ("SELECT x FROM (SELECT array_join(collect_list(item), '') AS x FROM lines)", ["cuppottea"]),
    ],
)  # fmt: skip
def test_view_returns_the_expected_rows(sql: str, rows: list[Any], session: SparkSession) -> None:
    assert sorted(row.x for row in checked(sql, session).collect()) == rows


def test_row_by_row_view_carries_the_ops_of_changes(session: SparkSession) -> None:
    session.sql(
        "SELECT * FROM VALUES ('-C', 1L, 'a', 1), ('+C', 1L, 'a', 9), ('+A', 2L, 'b', 8) "
        "AS t(_hw_op, order_id, item, count)"
    ).createOrReplaceTempView("changes_of_lines")
    plan = planned("SELECT order_id, count * 2 AS twice FROM lines WHERE count > 5")
    sql = to_spark_sql(plan, {"lines": "changes_of_lines"}, carry=["_hw_op"])
    assert [tuple(row) for row in session.sql(sql).collect()] == [(1, 18, "+C"), (2, 16, "+A")]
    passing = session.sql(f"SELECT {plan.predicate} AS passes FROM changes_of_lines AS s1").collect()
    assert [row.passes for row in passing] == [False, True, True]


def test_result_that_is_not_a_finite_number_fails_the_view(session: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"column 'x' of the result is not a finite number"):
        session.sql(to_spark_sql(planned("SELECT sqrt(-n) AS x FROM orders"), RELATIONS)).collect()
