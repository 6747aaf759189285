"""Streaming reads and writes with Spark."""

from datetime import date

import pytest
from pyspark.sql.functions import lit

from headwater_client import NewDataset, NewField
from headwater_client.spark.data_source import HeadwaterDataSource
from headwater_client.spark.options import write_settings
from headwater_client.spark.writer import StreamWriter, UploadMessage
from tests.support.shares import share

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 23)


@pytest.fixture
def stream(spark, connection):
    """Loads a stream of changes."""

    def load(path, **options):
        reader = spark.readStream.format("headwater").options(query="changes", **connection, **options)
        return reader.load(path)

    return load


@pytest.fixture
def copies(headwater):
    """A dataset of changes as rows."""
    fields = (("position", "int64"), ("op", "int16"), ("id", "int64"), ("note", "string"))
    return headwater.create_dataset(
        NewDataset(name="copies", fields=tuple(NewField(name=name, type=kind) for name, kind in fields))
    )


def write(headwater, orders, *rows):
    headwater.write_rows(orders, [{"id": id_, "note": note, "day": DAY} for id_, note in rows], wait=60)


def run(query, connection, path, checkpoint, mode="append", **options):
    """Runs what is available now; the numbers of rows of its batches."""
    writer = (
        query.writeStream.format("headwater").outputMode(mode).options(path=path, **connection, **options)
    )
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert running.awaitTermination(120)
        return [progress.numInputRows for progress in running.recentProgress if progress.numInputRows]
    finally:
        running.stop()


@share(2)
def test_stream_of_changes_continues_from_its_checkpoint(
    headwater, orders, copies, stream, connection, tmp_path
):
    changes = stream("orders", max_changes_per_trigger=3, changes_per_task=2).selectExpr(
        "offset AS position", "op", "id", "note"
    )
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (1, "c"), (2, "d"))
    # The limit would end the first batch between a -C and its +C.
    assert run(changes, connection, "copies", tmp_path / "checkpoint") == [4, 2]
    write(headwater, orders, (3, "e"))
    assert run(changes, connection, "copies", tmp_path / "checkpoint") == [1]
    assert run(changes, connection, "copies", tmp_path / "checkpoint") == []
    rows = sorted((row["position"], row["op"], row["note"]) for row in headwater.rows(copies))
    assert [(position, op) for position, op, _ in rows] == [
        (0, 0),
        (1, 0),
        (2, 2),
        (3, 3),
        (4, 2),
        (5, 3),
        (6, 0),
    ]
    assert sorted(note for _, _, note in rows) == ["a", "a", "b", "b", "c", "d", "e"]
    assert headwater.get_dataset(copies).version == 3


@share(5)
def test_stream_starts_at_a_position_and_expired_positions_fail(
    headwater, orders, copies, stream, connection, tmp_path
):
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (3, "c"))
    changes = stream("orders", since=2).selectExpr("offset AS position", "op", "id", "note")
    run(changes, connection, "copies", tmp_path / "one")
    assert [row["note"] for row in headwater.rows(copies)] == ["c"]
    with pytest.raises(Exception, match="offset-ahead"):
        run(stream("orders", since=50).select("id", "note"), connection, "copies", tmp_path / "two")


@share(5)
def test_complete_mode_replaces_the_table(headwater, orders, stream, connection, tmp_path):
    counts = headwater.create_dataset(
        NewDataset(
            name="counts",
            fields=(NewField(name="note", type="string"), NewField(name="n", type="int64")),
            record_key=("note",),
        )
    )
    sums = stream("orders").where("op IN (0, 3)").groupBy("note").agg({"*": "count"})
    sums = sums.withColumnRenamed("count(1)", "n")
    write(headwater, orders, (1, "a"), (2, "b"))
    run(sums, connection, "counts", tmp_path / "checkpoint", mode="complete")
    write(headwater, orders, (3, "a"))
    run(sums, connection, "counts", tmp_path / "checkpoint", mode="complete")
    assert {row["note"]: row["n"] for row in headwater.rows(counts)} == {"a": 2, "b": 1}


def test_a_repeated_batch_is_committed_once(headwater, orders, spark, connection):
    """What Spark does after a crash between the commit of the service and its own."""
    rows = spark.createDataFrame([(1, "a", DAY)], "id long, note string, day date")
    settings = write_settings({"path": "orders", **connection})
    for _ in range(3):
        writer = StreamWriter(settings, rows.schema, overwrite=False)
        upload = writer.write(iter(rows.toArrow().to_batches())).upload
        writer.commit([UploadMessage(upload, "the-query"), UploadMessage(None, "the-query")], 7)
    assert headwater.get_dataset(orders).version == 1
    another = StreamWriter(settings, rows.schema, overwrite=False)
    upload = another.write(iter(rows.withColumn("note", lit("b")).toArrow().to_batches())).upload
    another.commit([UploadMessage(upload, "another-query")], 7)
    assert [row["note"] for row in headwater.rows(orders)] == ["b"]


@share(3)
def test_crashed_query_repeats_its_last_batch_without_doubling_it(
    headwater, orders, copies, stream, connection, tmp_path
):
    changes = stream("orders").selectExpr("offset AS position", "op", "id", "note")
    write(headwater, orders, (1, "a"), (2, "b"))
    checkpoint = tmp_path / "checkpoint"
    run(changes, connection, "copies", checkpoint)
    # As if the driver had died before it noted the commit of batch 0.
    for path in (checkpoint / "commits").iterdir():
        path.unlink()
    write(headwater, orders, (3, "c"))
    run(changes, connection, "copies", checkpoint)
    assert sorted(row["position"] for row in headwater.rows(copies)) == [0, 1, 2]


def test_a_stream_reads_changes_only(orders, spark, connection):
    with pytest.raises(Exception, match="set option query to changes"):
        spark.readStream.format("headwater").options(**connection).load("orders").writeStream.format(
            "noop"
        ).start().processAllAvailable()
    assert HeadwaterDataSource.name() == "headwater"
