"""The demo's fold: the same as the table format's own, and strict about every law of the feed."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.rows import changelog
from clients.demo.fold import FeedBroken, difference, fold

KEY = ("id", "part")
SCHEMA = {"offset": pl.Int64, "op": pl.UInt8, "id": pl.Int64, "part": pl.String, "value": pl.Int64}
A, R, CF, CT = range(4)


def frame(changes):
    rows = [(offset, op, *row) for offset, (op, row) in enumerate(changes)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@st.composite
def feeds(draw):
    """(op, (id, part, value)) in an order that a service could have published."""
    live, changes = {}, []
    steps = st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.none() | st.integers(0, 2), st.booleans())
    for number, part, value, retracts in draw(st.lists(steps, max_size=30)):
        key = (number, part)
        if key not in live:
            changes.append((A, (*key, value)))
        elif retracts:
            changes.append((R, (*key, live.pop(key))))
            continue
        else:
            changes += [(CF, (*key, live[key])), (CT, (*key, value))]
        live[key] = value
    return changes


def reference(changes):
    names = [*KEY, "value"]
    return changelog.fold([(op, dict(zip(names, row, strict=True))) for op, row in changes], KEY)


@given(feeds())
def test_fold_equals_the_reference(changes):
    expected = pl.DataFrame(reference(changes), schema={name: SCHEMA[name] for name in (*KEY, "value")})
    assert not difference(fold(frame(changes), KEY), expected, KEY)


@given(feeds(), st.data())
def test_fold_refuses_what_the_reference_refuses(changes, data):
    op, (number, part, value) = data.draw(
        st.tuples(
            st.sampled_from([A, R, CF, CT]),
            st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.none() | st.integers(0, 2)),
        )
    )
    place = data.draw(st.integers(0, len(changes)))
    broken = [*changes[:place], (op, (number, part, value)), *changes[place:]]
    try:
        expected = reference(broken)
    except changelog.FeedError:
        with pytest.raises(FeedBroken):
            fold(frame(broken), KEY)
    else:
        assert fold(frame(broken), KEY).height == len(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(A, (1, "a", 1)), (A, (1, "a", 2))], "already live"),
        ([(R, (1, "a", 1))], "not live"),
        ([(A, (1, "a", 1)), (R, (1, "a", None))], "other values"),
        ([(A, (1, "a", 1)), (CF, (1, "a", 1)), (A, (2, "a", 1))], r"no \+C"),
        ([(A, (1, "a", 1)), (CT, (1, "a", 2))], r"without its -C"),
        ([(CT, (1, "a", 2))], "starts with"),
        ([(A, (1, "a", 1)), (CF, (1, "a", 1))], r"no \+C"),
    ],
)
def test_broken_feed_raises_its_reason(changes, message):
    with pytest.raises(FeedBroken, match=message):
        fold(frame(changes), KEY)


def test_gap_of_offsets_is_refused():
    changes = frame([(A, (1, "a", 1)), (A, (2, "a", 1)), (A, (3, "a", 1))])
    with pytest.raises(FeedBroken, match="gap"):
        fold(changes.filter(pl.col("offset") != 1), KEY)


def test_differences_are_counted():
    schema = {"id": pl.Int64, "value": pl.Int64}
    left = pl.DataFrame([(1, 1), (2, 2), (3, None)], schema=schema, orient="row")
    right = pl.DataFrame([(3, 3), (2, 2), (4, 4)], schema=schema, orient="row")
    found = difference(left, right, ["id"])
    assert (found.only_left, found.only_right, found.other_values) == (1, 1, 1)
    assert found
    assert not difference(left, left.reverse(), ["id"])
