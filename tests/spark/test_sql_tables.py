"""Tables of Spark's catalogue: CREATE TABLE … USING headwater, and the statements that read and write them."""

import json
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import Row, SparkSession

from headwater_client import WriteOptions
from headwater_client.spark import register
from tests.docs.examples import ROOT, blocks
from tests.support.left_out import left_out
from tests.support.shares import share

pytestmark = pytest.mark.spark
LONG = left_out("SPARK", "test-spark")

OF_ORDERS = "USING headwater OPTIONS (dataset 'orders')"
INTO_ORDERS = "WITH (dataset = 'orders')"


@pytest.fixture
def sql(spark: SparkSession, connection: dict[str, str]) -> Iterator[Callable[[str], list[Row]]]:
    """Runs a statement in a session of the tenant, and drops the tables at the end."""
    register(spark, **connection)
    yield lambda statement: spark.sql(statement).collect()
    for table in spark.catalog.listTables():
        spark.sql(f"DROP {'VIEW' if table.isTemporary else 'TABLE'} {table.name}")


def test_statements_of_the_document(sql, headwater):
    """They register a dataset, and insert, update, delete, replace and read its rows."""
    document = blocks(ROOT / "docs" / "spark.md")
    number, script = next((number, block) for number, block in enumerate(document) if block.language == "sql")
    *_, rows = [sql(statement) for statement in script.text.split(";") if statement.strip()]
    assert [json.loads(json.dumps(row, default=str)) for row in rows] == json.loads(document[number + 1].text)
    dataset = headwater.get_dataset("orders")
    assert (dataset.record_key, dataset.partition_by, dataset.version) == (("id", "day"), ("day",), 4)


def test_statements_that_name_no_dataset_are_refused(sql, headwater, orders):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    headwater.write_rows(orders, [{"id": 1, "note": "a", "day": "2026-11-23"}], wait=60)
    # The rows of the query have the columns of the table, and its options: a copy must not be written back into it.
    for statement in (
        "INSERT INTO orders SELECT * FROM orders",
        "INSERT OVERWRITE orders SELECT * FROM orders",
        "CREATE TABLE copy USING headwater OPTIONS (dataset 'copy', create 'true') AS SELECT * FROM orders",
    ):
        with pytest.raises(Exception, match=r"INSERT INTO t WITH \(dataset = 'orders'\)"):
            sql(statement)
    assert [row.tableName for row in sql("SHOW TABLES")] == ["orders"]
    assert headwater.get_dataset(orders).version == 1
    sql("CREATE TABLE listed (id BIGINT, note STRING) USING headwater OPTIONS (dataset 'orders')")
    with pytest.raises(Exception, match="create the table without a list of columns"):
        sql("SELECT * FROM listed")
    assert sql(f"SELECT * FROM listed {INTO_ORDERS}") == [(1, "a")]


@share(3)
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM orders WHERE id = 1", "does not support deletes: headwater"),
        ("UPDATE orders SET note = 'b'", "does not support UPDATE TABLE"),
        (
            "MERGE INTO orders o USING orders s ON o.id = s.id WHEN MATCHED THEN DELETE",
            "support MERGE INTO TABLE",
        ),
        ("TRUNCATE TABLE orders", "does not support truncates: headwater"),
        (
            f"INSERT INTO orders {INTO_ORDERS} REPLACE WHERE id = 1 VALUES (1, 'b', NULL)",
            "overwrite by filter",
        ),
        (
            f"INSERT OVERWRITE orders {INTO_ORDERS} PARTITION (day) VALUES (1, 'b', NULL)",
            "non-partition column",
        ),
    ],
)
def test_statements_that_spark_refuses(sql, orders, statement, message):
    """The texts are those of Spark, which docs/spark.md lists with what does the same."""
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    with pytest.raises(Exception, match=message):
        sql(statement)


@LONG
def test_a_failing_statement_commits_nothing(sql, headwater, orders):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql(
            f"INSERT INTO orders {INTO_ORDERS} "
            "SELECT id, string(1 / (id - 99)), DATE '2026-11-23' FROM range(0, 100, 1, 4)"
        )
    assert headwater.get_dataset(orders).version == 0


@LONG
def test_a_repeated_statement_fails_with_the_version_that_it_expects(sql, headwater):
    sql("CREATE TABLE log USING headwater OPTIONS (dataset 'log', create 'true', fields 'id int64')")
    statement = "INSERT INTO log WITH (dataset = 'log', expected_version = '0') SELECT id FROM range(10)"
    sql(statement)
    with pytest.raises(Exception, match="commit-conflict"):
        sql(statement)
    assert len(list(headwater.rows("log"))) == 10


@LONG
def test_filters_are_passed_on_request(sql, headwater, orders, configure):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    sql(f"INSERT INTO orders {INTO_ORDERS} SELECT id, 'a', DATE '2026-11-23' FROM range(10)")
    configure("spark.sql.python.filterPushdown.enabled", "true")
    for number in (3, 4):
        assert sql(f"SELECT id FROM orders WITH (push_filters = 'true') WHERE id = {number}") == [(number,)]
    assert [job.kind for job in headwater.jobs(dataset=orders, kinds=["read"])] == ["read", "read"]


@LONG
def test_a_table_keeps_its_columns(sql, headwater, orders):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    sql("CREATE TABLE noted USING headwater OPTIONS (dataset 'orders', columns 'note', where 'id < 2')")
    row = {"id": 1, "note": "a", "day": "2026-11-23", "price": 2.5}
    headwater.write_rows(orders, [row, row | {"id": 2}], options=WriteOptions(merge_schema=True), wait=60)
    assert sql("SELECT COUNT(*), MAX(note) FROM orders") == [(2, "a")]
    assert sql("SELECT * FROM noted") == [("a",)]
    sql("ALTER TABLE orders ADD COLUMN size INT")
    with pytest.raises(Exception, match=r"no column size of this type.*drop it"):
        sql("SELECT * FROM orders")
    sql("DROP TABLE orders")
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    assert sql("SELECT price FROM orders WHERE id = 1") == [(2.5,)]
    sql("DROP TABLE orders")
    assert len(list(headwater.rows(orders))) == 2


@LONG
def test_replacements(sql, headwater, orders, configure):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    sql(f"INSERT INTO orders {INTO_ORDERS} (day, id) SELECT DATE '2026-11-23', id FROM range(5)")
    sql(
        "INSERT OVERWRITE orders WITH (dataset = 'orders', overwrite_where = 'id < 3') "
        "SELECT * FROM orders WHERE id = 1"
    )
    assert sql("SELECT id, note FROM orders ORDER BY id") == [(1, None), (3, None), (4, None)]
    configure("spark.sql.sources.partitionOverwriteMode", "dynamic")
    with pytest.raises(Exception, match="does not support dynamic overwrite"):
        sql(f"INSERT OVERWRITE orders {INTO_ORDERS} SELECT * FROM orders")
    configure("spark.sql.sources.partitionOverwriteMode", "static")
    sql(f"INSERT OVERWRITE orders {INTO_ORDERS} SELECT * FROM orders WHERE false")
    assert list(headwater.rows(orders)) == []


@LONG
def test_temporary_views_are_read_and_written(sql, headwater, orders):
    sql(
        "CREATE TEMPORARY VIEW gone (id BIGINT, day DATE) "
        "USING headwater OPTIONS (dataset 'orders', operation 'delete')"
    )
    sql(f"CREATE TEMPORARY VIEW seen {OF_ORDERS}")
    sql("INSERT INTO seen VALUES (1, 'a', DATE '2026-11-23'), (2, 'b', DATE '2026-11-23')")
    sql("INSERT INTO gone VALUES (1, DATE '2026-11-23')")
    assert [row["id"] for row in headwater.rows(orders)] == [2]
    # It reads the version that was the latest when it was created.
    assert sql("SELECT * FROM seen") == []
    sql(f"CREATE OR REPLACE TEMPORARY VIEW seen {OF_ORDERS}")
    assert sql("SELECT id FROM seen") == [(2,)]
    # Spark ignores the clause for views.
    sql("INSERT INTO seen WITH (operation = 'delete') VALUES (2, 'c', DATE '2026-11-23')")
    assert [row["note"] for row in headwater.rows(orders)] == ["c"]


@LONG
def test_tables_are_written_and_streamed_by_data_frames(sql, spark, headwater, orders, tmp_path):
    sql(f"CREATE TABLE orders {OF_ORDERS}")
    sql("CREATE TABLE changes USING headwater OPTIONS (dataset 'orders', query 'changes')")
    rows = spark.sql("SELECT 1L AS id, 'a' AS note, DATE '2026-11-23' AS day")
    rows.writeTo("orders").option("dataset", "orders").append()
    with pytest.raises(Exception, match="name the dataset"):
        rows.write.option("dataset", "orders").insertInto("orders")
    assert spark.read.option("version", "0").table("orders").count() == 0
    stream = spark.readStream.table("changes").selectExpr("op", "id", "note").writeStream.format("headwater")
    stream = stream.options(dataset="copies", create="true", checkpointLocation=str(tmp_path))
    stream.trigger(availableNow=True).start().awaitTermination()
    assert list(headwater.rows("copies")) == [{"op": 0, "id": 1, "note": "a"}]


@LONG
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_are_cast_to_the_types_of_the_table(sql, headwater, configure, ansi):
    """By the store assignment of Spark, which does not depend on the mode of its expressions."""
    fields = "id int32, price decimal(6, 2), at timestamp, local timestamp_ntz, day date, small uint8"
    sql(f"CREATE TABLE typed USING headwater OPTIONS (dataset 'typed', create 'true', fields '{fields}')")
    insert = "INSERT INTO typed WITH (dataset = 'typed')"
    configure("spark.sql.ansi.enabled", ansi)
    day = "DATE '2026-11-23'"
    sql(f"{insert} SELECT 1L, 1.5D, {day}, {day}, TIMESTAMP '2026-11-23 10:00:00', 7L")
    with pytest.raises(Exception, match="CAST_OVERFLOW_IN_TABLE_INSERT"):
        sql(f"{insert} SELECT 3000000000, 1.5, {day}, {day}, {day}, 7")
    with pytest.raises(Exception, match="CANNOT_SAFELY_CAST"):
        sql(f"{insert} SELECT '1', 1.5, {day}, {day}, {day}, 7")
    with pytest.raises(Exception, match="256"):
        sql(f"{insert} SELECT 2, 1.5, {day}, {day}, {day}, 256")
    [row] = headwater.rows("typed")
    midnight = "2026-11-23T00:00:00"
    assert row == {
        "id": 1,
        "price": "1.50",
        "at": f"{midnight}Z",
        "local": midnight,
        "day": "2026-11-23",
        "small": 7,
    }
