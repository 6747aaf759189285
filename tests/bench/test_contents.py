"""The contents of tables that benchmarks compare: the same for the same rows, another for any other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bench.comparison import differences, disagreements
from bench.contents import Contents, contents_of
from bench.lake import Measured, Sample
from bench.trips import trips

ROWS = trips(np.arange(1_000), ts=1)
SAME = contents_of([ROWS])


def with_column(name: str, values: pa.Array) -> pa.Table:
    return ROWS.set_column(ROWS.schema.names.index(name), name, values)


def replaced(name: str, row: int, value: object) -> pa.Table:
    values = ROWS[name].to_pylist()
    values[row] = value
    return with_column(name, pa.array(values, ROWS.schema.field(name).type))


def test_order_chunks_and_encodings_do_not_count() -> None:
    shuffled = ROWS.take(np.random.default_rng(1).permutation(1_000))
    encoded = with_column("rider", ROWS["rider"].dictionary_encode().combine_chunks())
    viewed = with_column("city", ROWS["city"].combine_chunks().cast(pa.string_view()))
    more = ROWS.append_column("_version", pa.array(range(1_000)))
    for tables in ([shuffled], [ROWS.slice(0, 7), ROWS.slice(7)], [encoded], [viewed], [more]):
        assert contents_of(tables) == SAME
    assert (SAME.rows, SAME.keys) == (1_000, 1_000)


@pytest.mark.parametrize(
    ("name", "value"), [("ts", 2), ("fare", 0.125), ("rider", "rider-x"), ("rider", ""), ("city", None)]
)
def test_one_other_value_is_another_column(name: str, value: object) -> None:
    found = contents_of([replaced(name, 3, value)])
    assert set(differences({"ours": SAME, "theirs": found})) == {name, "whole rows"}


def test_values_that_swap_rows_are_found() -> None:
    fares = ROWS["fare"].to_pylist()
    fares[0], fares[1] = fares[1], fares[0]
    found = contents_of([with_column("fare", pa.array(fares))])
    assert set(differences({"ours": SAME, "theirs": found})) == {"whole rows"}


def test_key_that_is_there_twice_is_found() -> None:
    found = contents_of([ROWS, ROWS.slice(0, 1)])
    assert (found.rows, found.keys) == (1_001, 1_000)


def test_tables_that_differ_after_a_write_are_reported() -> None:
    def measured(system: str, contents: Contents) -> Measured:
        sample = Sample(case="upsert", run=0, rows=10, seconds=1, cpu_seconds=1, contents=contents)
        return Measured(system=system, samples=[sample])

    other = contents_of([replaced("ts", 0, 9)])
    assert disagreements([measured("ours", SAME), measured("theirs", SAME)]) == []
    [found] = disagreements([measured("ours", SAME), measured("theirs", other)])
    assert found.startswith("upsert, run 0: the tables differ afterwards: {'whole rows': {'ours': ")
