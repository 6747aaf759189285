"""What several grants show together, and what a `RowAccess` means for a schema."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.errors import GrantNotApplicable, MaskedColumn
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.row_access import DIGEST_BYTES, EVERYTHING, RowAccess, access_digest, combined

COLUMNS = ("a", "b")
SCHEMA = Schema(id=1, fields=(Field(id=1, name="a", type="int64"), Field(id=2, name="b", type="string")))
CELLS = [{"a": a, "b": b} for a, b in product((1, 2, None), ("x", "y", None))]
accesses = st.builds(
    RowAccess,
    where=st.sampled_from([(), ("a = 1",), ("b = 'x'",), ("a IS NULL",)]),
    masked=st.sets(st.sampled_from(COLUMNS)).map(lambda names: tuple(sorted(names))),
)


def seen(access: RowAccess) -> set[tuple[int, str]]:
    """The cells that are shown, by row number and column; an empty name for the row itself."""
    bound = bind_access(access, SCHEMA, SCHEMA)
    table = pa.Table.from_pylist(CELLS, schema=SCHEMA.to_arrow())
    shown = range(len(CELLS)) if bound.where is None else matches(bound.where, table).nonzero()[0].tolist()
    return {(row, name) for row in shown for name in ("", *COLUMNS) if name not in bound.masked}


@given(grants=st.lists(accesses, min_size=1, max_size=4))
def test_several_grants_show_their_rows_and_no_value_that_none_shows(grants: list[RowAccess]) -> None:
    together = seen(combined(grants))
    each = set().union(*map(seen, grants))
    assert together <= each
    assert {cell for cell in together if not cell[1]} == {cell for cell in each if not cell[1]}
    if len({grant.where for grant in grants}) == 1:
        assert together == each


@given(one=accesses, other=accesses)
def test_access_within_another_shows_no_more(one: RowAccess, other: RowAccess) -> None:
    if one.within(other):
        assert seen(one) <= seen(other)
    assert one.within(one)
    assert one.within(EVERYTHING)
    assert EVERYTHING.within(one) == (not one.restricted)


def test_condition_that_does_not_fit_the_schema_shows_nothing() -> None:
    for where in ("c = 1", "a = 'x'"):
        with pytest.raises(GrantNotApplicable) as refused:
            bind_access(RowAccess(where=(where,)), SCHEMA, SCHEMA)
        # It may have values that are hidden from the reader.
        assert where not in refused.value.detail
    with pytest.raises(GrantNotApplicable):
        bind_access(RowAccess(masked=("c",)), SCHEMA, SCHEMA)


def test_conditions_are_joined_as_trees_not_as_texts() -> None:
    bound = bind_access(RowAccess(where=("a = 1 OR b = 'x'",)), SCHEMA, SCHEMA)
    chosen = bound.selecting(parse_filter("b = 'y' OR a = 2", SCHEMA))
    assert chosen is not None
    assert parse_filter(chosen.text, SCHEMA).root == chosen.root
    table = pa.Table.from_pylist(CELLS, schema=SCHEMA.to_arrow())
    assert [CELLS[at] for at in matches(chosen, table).nonzero()[0]] == [
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
    ]


def test_masked_column_cannot_be_used_under_any_of_its_names() -> None:
    earlier = Schema(
        id=1, fields=(Field(id=1, name="was_a", type="int64"), Field(id=2, name="b", type="string"))
    )
    bound = bind_access(RowAccess(masked=("a",)), SCHEMA, earlier)
    with pytest.raises(MaskedColumn) as error:
        bound.selecting(parse_filter("b = 'x' AND was_a > 1", earlier))
    assert error.value.facts == {"column": "was_a"}
    rows = pa.table({"was_a": [1], "b": ["x"]}, schema=earlier.with_required(["was_a"]).to_arrow())
    shown = bound.shown(rows)
    assert shown.to_pylist() == [{"was_a": None, "b": "x"}]
    assert shown.schema.field("was_a").nullable


@given(first=accesses, other=accesses)
def test_digests_of_different_accesses_differ(first: RowAccess, other: RowAccess) -> None:
    assert (access_digest(first) == access_digest(other)) == (first == other)
    assert len(access_digest(first)) == DIGEST_BYTES
    assert (access_digest(first) == bytes(DIGEST_BYTES)) == (not first.restricted)


def test_digest_is_of_sets() -> None:
    one = RowAccess(where=("a = 1", "b = 'x'"), masked=("a", "b"))
    other = RowAccess(where=("b = 'x'", "a = 1", "a = 1"), masked=("b", "a"))
    assert access_digest(one) == access_digest(other)
    assert access_digest(RowAccess(where=("a",))) != access_digest(RowAccess(masked=("a",)))
