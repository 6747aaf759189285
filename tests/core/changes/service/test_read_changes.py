"""Pages of the feed over random histories, from an index and a reader that hold them in memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import StartingPosition
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage
from app.core.timeline.errors import OffsetExpired
from app.kernel.changelog.delivery_forms import ChangeForm, in_form
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN
from tests.support.examples import a_third_of
from tests.support.histories import DEFINITION, History, histories
from tests.support.shares import share
from tests.support.stored_feed import DATASET, Stored

EVERY_FORM = pytest.mark.parametrize("form", ChangeForm)
HALVED = History(
    definition=DEFINITION,
    commits=[
        [(Op.APPEND, {"k": "a", "n": 0, "at": None, "op": None, "tags": None})],
        [
            (Op.CORRECT_FROM, {"k": "a", "n": 0, "at": None, "op": None, "tags": None}),
            (Op.CORRECT_TO, {"k": "a", "n": 1, "at": None, "op": None, "tags": None}),
        ],
    ],
)


def page(stored: Stored, since: int | StartingPosition, **query: Any) -> ChangePage:
    return ReadChanges(catalog=stored, index=stored, reader=stored).page(DATASET, since, FeedQuery(**query))


@share(2)
@EVERY_FORM
@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories, limit=st.integers(1, 7), until=st.one_of(st.none(), st.integers(0, 30)))
def test_pages_of_any_size_join_to_one_page(
    form: ChangeForm, history: History, limit: int, until: int | None
) -> None:
    stored = Stored(history=history)
    whole = page(stored, 0, limit=1_000, until=until, form=form)
    since, events, resume_at = 0, [], []
    while True:
        part = page(stored, since, limit=limit, until=until, form=form)
        assert part.pending == len(history.changes) - part.next_since
        assert part.next_since - since <= limit + 1
        assert until is None or part.next_since <= until
        events += part.events.table.to_pylist()
        resume_at += part.events.resume_at.to_pylist()
        assert part.events.table.num_rows == 0 or resume_at[-1] == part.next_since
        assert part.events.table.schema.equals(whole.events.table.schema)
        if part.next_since == since:
            break
        assert history.changes[part.next_since - 1]["op"] != Op.CORRECT_FROM
        since = part.next_since
    assert part.complete == whole.complete
    assert (events, since) == (whole.events.table.to_pylist(), whole.next_since)
    assert resume_at == whole.events.resume_at.to_pylist()
    if until is None:
        assert events == in_form(history.table(), form, "t").table.to_pylist()


@EVERY_FORM
@pytest.mark.parametrize("where", [None, "n >= 1"])
@settings(max_examples=a_third_of(12), deadline=None)
@given(history=histories, bytes_max=st.integers(1, 400), limit=st.integers(1, 9))
def test_pages_of_any_bytes_join_to_one_page(
    form: ChangeForm, where: str | None, history: History, bytes_max: int, limit: int
) -> None:
    stored = Stored(history=history)
    query = FeedQuery(limit=1_000, where=where, form=form)
    whole = ReadChanges(catalog=stored, index=stored, reader=stored).page(DATASET, 0, query)
    reading = ReadChanges(catalog=stored, index=stored, reader=stored, bytes_max=bytes_max)
    since, events = 0, []
    while True:
        part = reading.page(DATASET, since, msgspec.structs.replace(query, limit=limit))
        # One change, or one pair, is on a page whatever its size.
        offsets = range(since, part.next_since)
        assert part.events.table.num_rows <= 2 or part.events.table.nbytes <= bytes_max + len(offsets) * 64
        events += part.events.table.to_pylist()
        if part.next_since == since:
            break
        assert history.changes[part.next_since - 1]["op"] != Op.CORRECT_FROM
        since = part.next_since
    assert (events, since) == (whole.events.table.to_pylist(), whole.next_since)


def test_page_ends_before_its_limit_of_bytes() -> None:
    row = {"k": "x" * 1_000, "n": 1, "at": None, "op": None, "tags": None}
    stored = Stored(history=History(definition=DEFINITION, commits=[[(Op.APPEND, row)] * 9]))
    reading = ReadChanges(catalog=stored, index=stored, reader=stored, bytes_max=3_900)
    found = reading.page(DATASET, 0, FeedQuery(limit=100))
    count = found.events.table.num_rows
    assert 1 < count <= 3
    assert (found.next_since, found.pending) == (count, 9 - count)
    assert sum(rows for _, _, rows in stored.read) <= count + 1


@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories, until=st.integers(0, 30))
def test_page_is_complete_when_it_has_all_changes_before_its_end(history: History, until: int) -> None:
    found = page(Stored(history=history), 0, limit=1_000, until=until)
    split = until < len(history.changes) and history.changes[until]["op"] == Op.CORRECT_TO
    assert found.complete == (until <= len(history.changes))
    assert found.next_since == min(until - split, len(history.changes))


@EVERY_FORM
def test_reader_may_start_between_the_halves_of_an_update(form: ChangeForm) -> None:
    events = page(Stored(history=HALVED), 2, limit=10, form=form).events.table.to_pylist()
    whole = page(Stored(history=HALVED), 1, limit=10, form=form).events.table.to_pylist()
    assert len(events) == 1
    assert events[0] == whole[-1]
    if form.joins_pairs:
        assert events[0]["before"] == HALVED.changes[1]["row"]


@EVERY_FORM
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_lone_first_half_does_not_block_the_reader(form: ChangeForm, limit: int) -> None:
    row = HALVED.changes[0]["row"]
    alone = [[(Op.APPEND, row), (Op.CORRECT_FROM, row)], [(Op.CORRECT_TO, row)], [(Op.CORRECT_FROM, row)]]
    stored = Stored(history=History(definition=DEFINITION, commits=alone))
    since, events = 0, []
    for _ in range(4):
        part = page(stored, since, limit=limit, form=form)
        since, events = part.next_since, events + part.events.table.to_pylist()
    assert (since, len(events), part.pending) == (4, 4, 0)


def test_expired_before_image_is_not_read() -> None:
    stored = Stored(history=HALVED, earliest=2)
    (event,) = page(stored, 2, limit=10, form=ChangeForm.SINGLE_EVENT).events.table.to_pylist()
    assert event["before"] is None


def test_only_required_columns_are_read() -> None:
    stored = Stored(history=HALVED)
    found = page(stored, 0, limit=10, columns=("tags", "n"))
    assert [field.name for field in found.events.table.schema.field("row").type] == ["tags", "n"]
    wanted = sorted([OP_COLUMN, CORRECTS_COLUMN, "_hw_event_time", "n", "tags"])
    assert [sorted(columns) for _, columns, _ in stored.read] == [wanted] * 2


def test_only_the_rows_of_the_page_are_read() -> None:
    stored = Stored(history=HALVED)
    page(stored, 0, limit=1, until=1)
    assert [rows for _, _, rows in stored.read] == [1]


def test_head_page_is_empty_and_a_position_beyond_it_is_refused() -> None:
    assert page(Stored(history=HALVED), StartingPosition.NOW, limit=1).next_since == 3
    with pytest.raises(OffsetAhead) as error:
        page(Stored(history=HALVED), 4, limit=1, until=2)
    assert error.value.facts == {"since": 4, "head": 3}


def test_expired_position_and_position_beyond_the_head_are_different_errors() -> None:
    cut = Stored(history=HALVED, earliest=1)
    with pytest.raises(OffsetExpired) as error:
        page(cut, 0, limit=1, until=0)
    assert error.value.facts == {"since": 0, "earliest": 1}
    found = page(cut, StartingPosition.EARLIEST, limit=1, form=ChangeForm.SINGLE_EVENT)
    assert (found.earliest, found.next_since, found.pending) == (1, 3, 0)
    assert found.events.table.column("before").to_pylist() == [HALVED.changes[1]["row"]]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1, "until": -1}])
def test_query_without_changes_is_invalid(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        FeedQuery(**wrong)
