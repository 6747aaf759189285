"""Commits of writes, by the calls that Spark makes: repeated tasks, repeated commits, no rows."""

from datetime import date

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from headwater_client.spark import HeadwaterDataSource, InvalidOption
from headwater_client.spark.arrow_types import arrow_schema
from headwater_client.spark.writer import UPLOADS_MAX, UploadMessage

DAY = date(2026, 11, 23)


@pytest.fixture
def source(orders, connection):
    return HeadwaterDataSource(CaseInsensitiveDict({"path": "orders", **connection}))


@pytest.fixture
def batches(source):
    """Rows as Spark passes them to a task: batches, of which some may be empty."""
    schema = arrow_schema(source.schema())

    def make(*rows):
        values = [{"id": number, "note": note, "day": DAY} for number, note in rows]
        batch = pa.RecordBatch.from_pylist(values, schema=schema)
        return iter([batch.slice(0, 0), batch, batch.slice(0, 0)])

    return make


def notes(headwater):
    return {row["id"]: row["note"] for row in headwater.rows("orders")}


def test_only_the_attempt_that_spark_names_is_committed(headwater, source, batches):
    writer = source.writer(source.schema(), False)
    writer.write(batches((1, "of an attempt that was lost"), (2, "lost")))
    writer.commit(
        [writer.write(batches((1, "a"))), writer.write(batches((3, "b"))), writer.write(batches()), None]
    )
    assert notes(headwater) == {1: "a", 3: "b"}
    assert headwater.get_dataset("orders").version == 1


def test_a_repeated_commit_is_one_write(headwater, source, batches):
    writer = source.writer(source.schema(), False)
    messages = [writer.write(batches((1, "a")))]
    for _ in range(2):
        writer.commit(messages)
    assert len(list(headwater.jobs(dataset="orders", kinds=["write"]))) == 1


def test_without_rows_only_a_replacement_is_a_write(headwater, source, batches):
    appending, replacing = (source.writer(source.schema(), overwrite) for overwrite in (False, True))
    appending.commit([appending.write(batches((1, "a")))])
    appending.commit([appending.write(batches())])
    assert notes(headwater) == {1: "a"}
    replacing.commit([replacing.write(batches())])
    assert notes(headwater) == {}
    streaming = source.streamWriter(source.schema(), False)
    streaming.commit([UploadMessage(None, "query")], 0)
    assert headwater.get_dataset("orders").version == 2


def test_a_stream_without_an_id_is_refused(source, batches):
    writer = source.streamWriter(source.schema(), False)
    with pytest.raises(InvalidOption, match="set option writer_id"):
        writer.commit([writer.write(batches((1, "a")))], 0)


def test_too_many_parts_are_refused(headwater, source, batches):
    writer = source.writer(source.schema(), False)
    message = writer.write(batches((1, "a")))
    with pytest.raises(
        InvalidOption, match=r"1001 partitions with rows, over the limit of 1000: coalesce it"
    ):
        writer.commit([message] * (UPLOADS_MAX + 1))
    writer.commit([message] * 20)
    assert notes(headwater) == {1: "a"}
