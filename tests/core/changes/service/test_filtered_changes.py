"""Pages of the feed with a filter, against a plain model of what it selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.changes.service import read_changes
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage
from app.infra.files import data_sink
from app.infra.files.storage import LocalStorage
from app.kernel.changelog import changelog_scan
from app.kernel.changelog.delivery_forms import ChangeForm, in_form
from app.kernel.format.errors import InvalidFilter, InvalidRequest
from app.kernel.format.partition.globs import matches_partition_glob
from app.kernel.format.rows.changelog import Op
from tests.support.examples import a_third_of
from tests.support.histories import DEFINITION, History, histories
from tests.support.shares import share
from tests.support.stored_feed import DATASET, Stored
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import DAYS, VersionedTable, written_versioned_table

Row = dict[str, Any]
EVERY_FORM = pytest.mark.parametrize("form", ChangeForm)
# What each filter selects, written in Python.
FILTERS: dict[str, Callable[[Row], bool]] = {
    "n = 1": lambda row: row["n"] == 1,
    "NOT (n = 1)": lambda row: row["n"] is not None and row["n"] != 1,
    "n IS NULL OR k = 'b'": lambda row: row["n"] is None or row["k"] == "b",
    "op < 0 AND tags IS NOT NULL": lambda row: (
        row["op"] is not None and row["op"] < 0 and row["tags"] is not None
    ),
    "k LIKE '%z'": lambda row: False,
    "TRUE": lambda row: True,
}


@pytest.fixture(autouse=True)
def _small_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that end often for having read enough, in few and small steps."""
    monkeypatch.setattr(read_changes, "SCANNED_CHANGES_MAX", 6)
    monkeypatch.setattr(read_changes, "_STEP_CHANGES_MAX", 5)
    monkeypatch.setattr(read_changes, "_SKIPPED_FILE", 2)
    monkeypatch.setattr(changelog_scan, "_SCANNED_MIN", 1)
    monkeypatch.setattr(changelog_scan, "_RULED_OUT", 2)


def page(stored: Stored, since: int, **query: Any) -> ChangePage:
    return ReadChanges(catalog=stored, index=stored, reader=stored).page(DATASET, since, FeedQuery(**query))


def selected(changes: list[Row], holds: Callable[[Row], bool]) -> list[int]:
    """The offsets of what a filter selects, pairs whole."""
    found = {change["offset"] for change in changes if holds(change["row"])}
    for old, new in pairwise(changes):
        if (old["op"], new["op"]) == (Op.CORRECT_FROM, Op.CORRECT_TO):
            pair = {old["offset"], new["offset"]}
            found |= pair if pair & found else set()
    return sorted(found)


def emitted(history: History, offsets: list[int], form: ChangeForm) -> list[Row]:
    return in_form(history.table().take(pa.array(offsets, pa.int64())), form, "t").table.to_pylist()


def walk(stored: Stored, since: int, **query: Any) -> Iterator[ChangePage]:
    while True:
        found = page(stored, since, **query)
        yield found
        if found.next_since == since:
            return
        since = found.next_since


@share(2)
@EVERY_FORM
@settings(max_examples=a_third_of(25), deadline=None)
@given(
    history=histories,
    where=st.sampled_from(sorted(FILTERS)),
    limit=st.integers(1, 5),
    group_rows=st.integers(1, 4),
    data=st.data(),
)
def test_filtered_pages_of_any_size_join_to_the_selected_changes(
    form: ChangeForm, history: History, where: str, limit: int, group_rows: int, data: st.DataObject
) -> None:
    stored = Stored(history=history, group_rows=group_rows)
    changes = history.changes
    until = data.draw(st.one_of(st.none(), st.integers(0, len(changes) + 1)))
    since = data.draw(st.integers(0, len(changes)))
    split = until is not None and 0 < until < len(changes) and changes[until]["op"] == Op.CORRECT_TO
    end = len(changes) if until is None else max(min(until - split, len(changes)), since)
    chosen = [offset for offset in selected(changes, FILTERS[where]) if offset < end]
    events, resume_at, position = [], [], since
    for part in walk(stored, since, limit=limit, where=where, form=form, until=until):
        assert position <= part.next_since <= end
        assert part.pending == len(changes) - part.next_since
        assert len([at for at in chosen if position <= at < part.next_since]) <= limit + 1
        halved = 0 < part.next_since < len(changes) and changes[part.next_since]["op"] == Op.CORRECT_TO
        assert not halved or part.next_since == since
        events += part.events.table.to_pylist()
        resume_at += part.events.resume_at.to_pylist()
        position = part.next_since
    assert position == end
    assert part.complete == (until is not None and end + split >= until)
    joins = form.joins_pairs and since in chosen and since < len(changes)
    lead = joins and since > 0 and changes[since]["op"] == Op.CORRECT_TO
    assert events == emitted(history, [at for at in chosen if at >= since - lead], form)
    # Who resumes behind an event gets the rest, with the event again if it is the first half of a pair.
    whole = [event for part in walk(stored, 0, limit=9, where=where, form=form) for event in rows(part)]
    for position in resume_at[:3]:
        rest = [
            event
            for part in walk(stored, position, limit=limit, where=where, form=form)
            for event in rows(part)
        ]
        assert rest == whole[len(whole) - len(rest) :]
        assert rest == emitted(
            history, [at for at in selected(changes, FILTERS[where]) if at >= position], form
        )


def rows(part: ChangePage) -> list[Row]:
    return part.events.table.to_pylist()


def test_filter_columns_are_read_and_not_returned() -> None:
    row = {"k": "a", "n": 1, "at": None, "op": None, "tags": None}
    stored = Stored(history=History(definition=DEFINITION, commits=[[(Op.APPEND, row)]]))
    found = page(stored, 0, limit=10, where="n = 1", columns=("tags",))
    assert rows(found)[0]["row"] == {"tags": None}
    assert {name for _, names, _ in stored.read for name in names} >= {"n", "tags"}


@pytest.mark.parametrize("where", ["nope = 1", "n = 'x'", "n ="])
def test_invalid_filter_is_refused_on_an_empty_feed(where: str) -> None:
    for commits in ([], [[(Op.APPEND, dict.fromkeys(DEFINITION.schema.names(), None))]]):
        stored = Stored(history=History(definition=DEFINITION, commits=commits))
        with pytest.raises(InvalidFilter):
            page(stored, 0, limit=1, where=where)


def test_partitions_of_an_unpartitioned_dataset_are_refused() -> None:
    with pytest.raises(InvalidRequest) as error:
        page(Stored(history=History(definition=DEFINITION, commits=[])), 0, limit=1, partitions=("*",))
    assert error.value.facts["errors"][0]["pointer"] == "/partitions"


# Real files of tables of every kind


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The table of each kind, its changelog files cut into row groups of two rows."""
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_sink, "CHANGELOG_ROW_GROUP_ROWS", 2)
        yield cache(lambda kind: written_versioned_table(storage, kind))


TABLE_FILTERS: dict[str | None, Callable[[Row], bool]] = {
    None: lambda row: True,
    "n > 60": lambda row: row["n"] is not None and row["n"] > 60,
    "id BETWEEN 4 AND 6 AND note IS NOT NULL": lambda row: 4 <= row["id"] <= 6 and row["note"] is not None,
    f"day = '{DAYS[1]}'": lambda row: row["day"] == DAYS[1],
}
GLOBS: dict[tuple[str, ...] | None, Callable[[Row], bool]] = {
    None: lambda row: True,
    (f"day={DAYS[0]}",): lambda row: row["day"] == DAYS[0],
    ("day=*-20", "day=*-22"): lambda row: matches_partition_glob(f"day={row['day']}", "day=*-2[02]"),
}


@share(2)
@pytest.mark.parametrize(
    "kind", ["copy_on_write", "merge_on_read input", "dynamic", "key_dynamic", "unaware"]
)
@pytest.mark.parametrize("limit", [3, 100])
def test_filters_select_changes_of_every_kind_of_table(versioned_tables: Any, kind: str, limit: int) -> None:
    versioned: VersionedTable = versioned_tables(kind)
    feed = TableFeed(table=versioned.table)
    reading = ReadChanges(catalog=feed, index=feed, reader=versioned.table.reader)
    changes = [
        {"offset": each.offset, "op": each.op, "row": each.row, "corrects_offset": each.corrects}
        for each in versioned.table.changes()
    ]
    assert len(changes) > 20
    for where, holds in TABLE_FILTERS.items():
        for partitions, lies in GLOBS.items():
            query = FeedQuery(limit=limit, where=where, partitions=partitions)
            since, found = 0, []
            while since < len(changes):
                part = reading.page(feed.dataset, since, query)
                assert part.next_since > since
                since = part.next_since
                found += rows(part)
            chosen = selected(changes, lambda row, holds=holds, lies=lies: holds(row) and lies(row))
            emitted = [{name: change[name] for name in changes[0]} for change in found]
            assert emitted == [changes[offset] for offset in chosen]


@pytest.mark.parametrize("kind", ["copy_on_write", "key_dynamic"])
def test_until_within_a_file_splits_no_unselected_pair(versioned_tables: Any, kind: str) -> None:
    versioned: VersionedTable = versioned_tables(kind)
    feed = TableFeed(table=versioned.table)
    reading = ReadChanges(catalog=feed, index=feed, reader=versioned.table.reader)
    changes = versioned.table.changes()
    for until in range(1, len(changes), 8):
        split = changes[until - 1].op == Op.CORRECT_FROM
        for filter_query in ({"partitions": (f"day={DAYS[2]}",)}, {"where": "n > 1000"}, {"where": "n < 50"}):
            since = max(0, until - 9)
            since -= changes[since].op == Op.CORRECT_TO
            complete = False
            while not complete:
                part = reading.page(feed.dataset, since, FeedQuery(limit=4, until=until, **filter_query))
                assert part.next_since > since or part.complete
                since, complete = part.next_since, part.complete
            assert since == until - split


def test_changes_outside_the_bounds_are_not_read(
    versioned_tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned: VersionedTable = versioned_tables("copy_on_write")
    feed = TableFeed(table=versioned.table)
    read = []
    reader = versioned.table.reader
    monkeypatch.setattr(
        reader,
        "read_slice",
        lambda *filter_query, real=reader.read_slice: (read.append(filter_query), real(*filter_query))[1],
    )
    reading = ReadChanges(catalog=feed, index=feed, reader=reader)
    since = 0
    while since < versioned.table.next_offset:
        since = reading.page(feed.dataset, since, FeedQuery(limit=10, where="n > 1000")).next_since
    ops_only = [filter_query for filter_query in read if filter_query[1].names == ["_hw_op"]]
    assert read == ops_only
    assert np.sum([filter_query[3] for filter_query in read]) < versioned.table.next_offset
