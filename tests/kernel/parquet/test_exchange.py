"""The rendering of a file is a function of what is exchanged, and the size of the stored size and the schema."""

from __future__ import annotations

from app.kernel.format.rows.file_columns import LAYOUT
from app.kernel.parquet.exchange import AS_STORED, exchange, exchanged_size
from tests.kernel.parquet.samples import ALL, COLUMNS, SEEN, column


def test_file_of_the_present_layout_is_served_as_stored_if_all_columns_are_seen():
    what = exchange(COLUMNS, ALL, LAYOUT)
    assert what.rendering == AS_STORED
    assert exchanged_size(what, 1234) == 1234


def test_renderings_differ_where_the_bytes_do():
    cases = [
        exchange(COLUMNS, ALL, LAYOUT),
        exchange(COLUMNS, ALL, None),
        exchange(COLUMNS, SEEN, LAYOUT),
        exchange(COLUMNS[:3], ALL, None),
        exchange([column(7, {"element": 1})], {7}, None),
        exchange([column(7, {"element": 2})], {7}, None),
    ]
    assert len({case.rendering for case in cases}) == len(cases)
    assert all(case.rendering == AS_STORED or len(case.rendering) == 16 for case in cases)


def test_renderings_are_equal_where_the_bytes_are():
    again = exchange([column(7, {"a": 2, "b": 1})], {7, 8}, None)
    assert again.rendering == exchange([column(7, {"b": 1, "a": 2})], {7}, None).rendering
