"""Times of Parquet's type INT96 are read in their whole range, without loss of a digit."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.formats import Format
from tests.kernel.codecs.samples import schema_of

US: Final = pa.timestamp("us")
MARK: Final = dt.datetime(2001, 2, 3)  # noqa: DTZ001 - INT96 has wall-clock times
JULIAN_1970: Final = 2_440_588
TIMES: Final = st.one_of(
    st.none(),
    st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001
)


def read(table: pa.Table, schema: dict[str, str], **options: Any) -> list[Any]:
    file = io.BytesIO()
    pq.write_table(table, file, use_deprecated_int96_timestamps=True, **options)
    return rows_of(file.getvalue(), schema)


def rows_of(body: bytes, schema: dict[str, str]) -> list[Any]:
    return pa.concat_tables(iter_tables(Format.PARQUET, io.BytesIO(body), schema_of(schema))).to_pylist()


def good_rows(body: bytes, schema: dict[str, str]) -> tuple[list[Any], list[BadRecord]]:
    """The rows, and the records that are quarantined."""
    bad: list[BadRecord] = []
    records = BadRecords(write=bad.extend)
    tables = iter_tables(Format.PARQUET, io.BytesIO(body), schema_of(schema), bad_records=records)
    rows = [row for table in tables for row in table.to_pylist()]
    records.close()
    return rows, bad


def with_time(days: int, nanos: int) -> bytes:
    """A file with the time of these days since 1970 and nanoseconds of the day, beside one in 2020."""
    file = io.BytesIO()
    times = [MARK, dt.datetime(2020, 1, 1)]  # noqa: DTZ001
    pq.write_table(
        pa.table({"x": pa.array(times, US)}),
        file,
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
    )
    mark = struct.pack("<qi", 0, (MARK - dt.datetime(1970, 1, 1)).days + JULIAN_1970)  # noqa: DTZ001
    body = file.getvalue()
    assert body.count(mark) == 1
    return body.replace(mark, struct.pack("<qI", nanos, (days + JULIAN_1970) % 2**32))


@given(values=st.lists(TIMES, min_size=1, max_size=20))
def test_times_are_read_at_any_depth(values: list[dt.datetime | None]) -> None:
    table = pa.table(
        {
            "a.b": pa.array(values, US),
            "text": pa.array(["x"] * len(values)),
            "l": pa.array([[each, None] for each in values], pa.list_(US)),
            "s": pa.array(
                [{"a": each, "b": "y"} for each in values], pa.struct([("a", US), ("b", pa.string())])
            ),
            "m": pa.array([[("k", each)] for each in values], pa.map_(pa.string(), US)),
        }
    )
    schema = {
        "a.b": "timestamp_ntz",
        "text": "string",
        "l": "list<timestamp_ntz>",
        "s": "struct<a: timestamp_ntz, b: string>",
        "m": "map<string, timestamp_ntz>",
    }
    assert read(table, schema, row_group_size=7) == table.to_pylist()


def test_large_texts_beside_times_keep_the_rows_together() -> None:
    """The columns are read in steps of different sizes."""
    values = [dt.datetime(1, 1, 1) + dt.timedelta(days=number) for number in range(3_000)]  # noqa: DTZ001
    table = pa.table({"x": pa.array(values, US), "text": [f"{number}" * 2_000 for number in range(3_000)]})
    assert read(table, {"x": "timestamp_ntz", "text": "string"}) == table.to_pylist()


@pytest.mark.parametrize("days", [2_932_897, -719_163, 2**31, 2**32 - JULIAN_1970 - 1])
def test_times_beyond_the_years_of_the_service_are_refused(days: int) -> None:
    with pytest.raises(
        SchemaMismatch,
        match=r"/rows/0/x: expected timestamp_ntz, got -?\d+ us since 1970-01-01, which is outside the years",
    ):
        rows_of(with_time(days, 0), {"x": "timestamp_ntz"})


def test_times_finer_than_a_microsecond_are_refused_with_their_value() -> None:
    with pytest.raises(
        SchemaMismatch, match=r"/rows/0/x: .*got 1970-01-02T00:00:00.000000001, which has more than 6"
    ):
        rows_of(with_time(1, 1), {"x": "timestamp_ntz"})
    with pytest.raises(
        SchemaMismatch, match=r"/rows/0/x: .*, got 9999-12-31T23:59:59.999999999, which has more than 6"
    ):
        rows_of(with_time(2_932_896, 86_399_999_999_999), {"x": "timestamp_ntz"})
    with pytest.raises(
        SchemaMismatch, match=r"/rows/0/x: .*more than 3 fractional digits; round it to milliseconds"
    ):
        rows_of(with_time(1, 1_000), {"x": "timestamp_ntz(ms)"})
    rows, [bad] = good_rows(with_time(2_932_896, 86_399_999_999_999), {"x": "timestamp_ntz"})
    assert rows == [{"x": dt.datetime(2020, 1, 1)}]  # noqa: DTZ001
    assert json.loads(bad.payload) == {"x": "9999-12-31T23:59:59.999999999"}
    assert rows_of(with_time(2_932_896, 86_399_999_999_000), {"x": "timestamp_ntz"})[0] == {
        "x": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
    }
