"""Batch writes with Spark: one commit for all partitions of a data frame."""

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql.functions import col, lit

from headwater_client import NewDataset, NewField
from tests.support.left_out import left_out
from tests.support.shares import share

pytestmark = pytest.mark.spark
LONG = left_out("SPARK", "test-spark")

MONDAY, TUESDAY = date(2026, 11, 23), date(2026, 11, 24)
SCHEMA = "id long, note string, day date"


def table(headwater):
    return {(row["id"], row["note"]) for row in headwater.rows("orders")}


def test_all_partitions_are_one_commit(headwater, orders, spark, save):
    rows = spark.range(1_000).select("id", lit("a").alias("note"), lit(MONDAY).alias("day")).repartition(7)
    save(rows, "orders")
    assert headwater.get_dataset(orders).version == 1
    assert len(table(headwater)) == 1_000
    [job] = list(headwater.jobs(dataset=orders, kinds=["write"]))
    assert (job.operation, job.rows.inserted) == ("upsert", 1_000)


@share(2)
def test_operations_and_modes(headwater, orders, spark, save):
    def frame(*rows):
        return spark.createDataFrame([(number, note, day) for number, note, day in rows], SCHEMA)

    save(frame((1, "a", MONDAY), (2, "b", TUESDAY)), "orders", operation="insert")
    with pytest.raises(Exception, match="duplicate-key"):
        save(frame((1, "again", MONDAY)), "orders", operation="insert")
    save(frame((1, "c", MONDAY), (3, "d", MONDAY)), "orders")
    assert table(headwater) == {(1, "c"), (2, "b"), (3, "d")}
    save(frame((3, None, MONDAY)), "orders", operation="delete")
    assert table(headwater) == {(1, "c"), (2, "b")}
    save(frame((9, "x", MONDAY)), "orders", save_mode="ignore")
    assert table(headwater) == {(1, "c"), (2, "b")}
    with pytest.raises(Exception, match="data-exists"):
        save(frame((9, "x", MONDAY)), "orders", save_mode="error_if_exists")
    save(frame((4, "e", MONDAY)), "orders", operation="insert_overwrite")
    assert table(headwater) == {(4, "e"), (2, "b")}
    save(frame((5, "f", TUESDAY)), "orders", "overwrite", overwrite_where="id IN (2, 5)")
    assert table(headwater) == {(4, "e"), (5, "f")}
    save(frame((6, "g", TUESDAY)), "orders", "overwrite")
    assert table(headwater) == {(6, "g")}
    save(frame(), "orders", "append")
    assert table(headwater) == {(6, "g")}
    save(frame(), "orders", "overwrite")
    assert table(headwater) == set()


def test_a_failing_task_commits_nothing(headwater, orders, spark, save):
    rows = spark.range(0, 100, 1, 4).select(
        "id", lit("a").alias("note"), lit(MONDAY).alias("day"), (col("id") / (col("id") - 99)).alias("ratio")
    )
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        save(rows.where("ratio < 5").drop("ratio"), "orders")
    assert headwater.get_dataset(orders).version == 0


@LONG
def test_new_columns_and_casts(headwater, orders, spark, save):
    wider = spark.createDataFrame([(1, "a", MONDAY, 2.5)], SCHEMA + ", price double")
    with pytest.raises(Exception, match="schema-mismatch"):
        save(wider, "orders")
    save(wider, "orders", merge_schema="true")
    assert next(headwater.rows(orders))["price"] == 2.5
    fields = (NewField(name="id", type="int64"), NewField(name="at", type="date"))
    times = headwater.create_dataset(NewDataset(name="times", fields=fields))
    later = spark.sql("SELECT 1L AS id, TIMESTAMP '2026-11-23T10:00:00Z' AS at")
    with pytest.raises(Exception, match="schema-mismatch"):
        save(later, "times", merge_schema="true")
    save(later, "times", merge_schema="true", explicit_cast="true")
    assert list(headwater.rows(times)) == [{"id": 1, "at": "2026-11-23T10:00:00Z"}]


def test_what_is_read_can_be_written(headwater, spark, read, save):
    types = {
        "key": "int64",
        "small": "uint8",
        "large": "uint32",
        "price": "decimal(9, 2)",
        "at": "timestamp(ms)",
    }
    types |= {
        "local": "timestamp_ntz",
        "tags": "list<string>",
        "place": "struct<city: string, at: uint8>",
        "raw": "binary",
        "uid": "uuid",
        "uids": "map<uuid, list<uuid>>",
    }
    fields = tuple(NewField(name=name, type=kind) for name, kind in types.items())
    for name in ("from", "to"):
        headwater.create_dataset(NewDataset(name=name, fields=fields, record_key=("key",)))
    row = {
        "key": 1,
        "small": 255,
        "large": 2**32 - 1,
        "price": Decimal("1.50"),
        "at": "2026-11-21T10:00:00.250Z",
    }
    row |= {"local": "2026-11-21T10:00:00", "tags": ["a"], "place": {"city": "Ulm", "at": 7}, "raw": b"\xff"}
    row["uid"] = "0190163d-8694-739b-aea5-966c26f8ad91"
    row["uids"] = {row["uid"]: [row["uid"], None]}
    headwater.write_rows("from", [row, {"key": 2}], wait=60)
    save(read("from"), "to")
    assert sorted(map(str, headwater.rows("to"))) == sorted(map(str, headwater.rows("from")))
    with pytest.raises(Exception, match="256"):
        save(read("from").where("key = 1").withColumn("small", lit(256).cast("short")), "to")


@LONG
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_missing_dataset_is_created_on_request(headwater, spark, save, read, configure, ansi):
    configure("spark.sql.ansi.enabled", ansi)
    rows = spark.sql(
        "SELECT 1L AS id, 'a' AS note, named_struct('x', 1S, 'y', array(1.5BD)) AS place, DATE '2026-11-23' AS day"
    )
    with pytest.raises(Exception, match="404 not-found"):
        save(rows, "made")
    save(rows, "made", create="true", record_key="id,day", partition_by="day", ordering_field="note")
    made = headwater.get_dataset("made")
    assert (made.record_key, made.partition_by, made.ordering_field) == (("id", "day"), ("day",), "note")
    assert read("made").collect() == rows.collect()
