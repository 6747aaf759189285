"""The feed for readers that see a part of the rows and columns: it folds to that part of the table, in every form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.changes.handlers.feed_options import encoded
from app.core.changes.service import read_changes
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.infra.files import data_sink
from app.infra.files.storage import LocalStorage
from app.kernel.changelog import changelog_scan
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import GrantNotApplicable, MaskedColumn, RestrictedGrant
from app.kernel.format.rows.changelog import Op
from app.kernel.sql.conditions.row_access import RowAccess
from tests.core.changes.service.test_feed_invariants import Table, version_of
from tests.support.examples import a_third_of
from tests.support.histories import History, histories
from tests.support.shares import share
from tests.support.stored_feed import DATASET, Stored
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    comparable,
    kind_of,
    written_versioned_table,
)

Row = dict[str, Any]
Holds = Callable[[Row], bool]
FILTERS: dict[str | None, Holds] = {
    None: lambda row: True,
    "n = 1": lambda row: row["n"] == 1,
    "n IS NULL OR k = 'b'": lambda row: row["n"] is None or row["k"] == "b",
    "NOT (n = 0)": lambda row: row["n"] is not None and row["n"] != 0,
}
ACCESSES: dict[tuple[str, ...], Holds] = {
    ("n = 1",): FILTERS["n = 1"],
    ("n = 1", "k = 'a'"): lambda row: row["n"] == 1 or row["k"] == "a",
    ("NOT (n = 0)",): FILTERS["NOT (n = 0)"],
    ("FALSE",): lambda row: False,
}


@pytest.fixture(autouse=True)
def _small_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_changes, "SCANNED_CHANGES_MAX", 6)
    monkeypatch.setattr(read_changes, "_STEP_CHANGES_MAX", 5)
    monkeypatch.setattr(changelog_scan, "_SCANNED_MIN", 1)


def expected(changes: list[Row], sees: Holds, holds: Holds) -> list[Row]:
    """The changes that a reader gets that sees some rows and selects some of these."""
    found = []
    for change in changes:
        at, op = change["offset"], change["op"]
        partner = {Op.CORRECT_FROM: at + 1, Op.CORRECT_TO: at - 1}.get(op)
        whole = partner is not None and sees(changes[partner]["row"])
        chosen = holds(change["row"]) or (whole and partner is not None and holds(changes[partner]["row"]))
        if not sees(change["row"]) or not chosen:
            continue
        alone = {Op.CORRECT_FROM: Op.RETRACT, Op.CORRECT_TO: Op.APPEND}
        found.append({**change, "op": op if partner is None or whole else alone[op]})
    return found


@share(2)
@settings(max_examples=a_third_of(150), deadline=None)
@given(
    history=histories,
    access=st.sampled_from(sorted(ACCESSES)),
    where=st.sampled_from(sorted(FILTERS, key=str)),
    limit=st.integers(1, 5),
    group_rows=st.integers(1, 4),
    data=st.data(),
)
def test_pages_of_any_size_have_the_visible_changes(
    history: History,
    access: tuple[str, ...],
    where: str | None,
    limit: int,
    group_rows: int,
    data: st.DataObject,
) -> None:
    stored = Stored(history=history, group_rows=group_rows)
    reading = ReadChanges(catalog=stored, index=stored, reader=stored)
    query = FeedQuery(limit=limit, where=where, access=RowAccess(where=access))
    changes = history.changes
    since = start = data.draw(st.integers(0, len(changes)))
    found: list[Row] = []
    while since < len(changes):
        page = reading.page(DATASET, since, query)
        assert page.next_since > since
        assert page.pending == len(changes) - page.next_since
        events = page.events.table.to_pylist()
        # A pair that the reader sees is never split.
        assert not events or events[-1]["op"] != Op.CORRECT_FROM
        found += events
        since = page.next_since
    seen = [each for each in expected(changes, ACCESSES[access], FILTERS[where]) if each["offset"] >= start]
    assert [{name: event[name] for name in changes[0]} for event in found] == seen


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], VersionedTable]]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_sink, "CHANGELOG_ROW_GROUP_ROWS", 2)
        yield cache(lambda kind: written_versioned_table(storage, kind, seed=3))


TABLE_ACCESSES: dict[RowAccess, Holds] = {
    RowAccess(where=("n < 50",), masked=("note",)): lambda row: row["n"] < 50,
    RowAccess(where=("note IS NULL", f"day = '{DAYS[1]}'")): lambda row: (
        row["note"] is None or row["day"] == DAYS[1]
    ),
    RowAccess(masked=("n",)): lambda row: True,
}
FOLDED = [
    name
    for name in KINDS
    if kind_of(name).changelog.producer in (ChangelogProducer.FULL, ChangelogProducer.DEFERRED)
]
# Without a key nothing says which row another replaces.
FOLDED_FORMS = [
    (kind, form)
    for kind in FOLDED
    for form in ChangeForm
    if kind_of(kind).keyed or form is not ChangeForm.UPSERT
]


@share(4)
@pytest.mark.parametrize(("kind", "form"), FOLDED_FORMS)
def test_filtered_feed_folds_to_the_filtered_table_at_every_version(
    versioned_tables: Callable[[str], VersionedTable], kind: str, form: ChangeForm
) -> None:
    versioned = versioned_tables(kind)
    key = versioned.table.dataset.record_key
    feed = TableFeed(table=versioned.table)
    reading = ReadChanges(catalog=feed, index=feed, reader=versioned.table.reader)
    deferred = versioned.table.dataset.changelog.producer is ChangelogProducer.DEFERRED
    for access, sees in TABLE_ACCESSES.items():
        events, since = [], 0
        while since < feed.dataset.next_offset:
            page = reading.page(feed.dataset, since, FeedQuery(limit=9, form=form, access=access))
            events += [json.loads(line) for line in encoded(page, as_ndjson=True).splitlines()]
            since = page.next_since
        assert len(events) > 10
        table, emitted = Table(form, key), iter(events)
        event = next(emitted, None)
        for version, rows in enumerate(versioned.rows):
            while event is not None and version_of(event) <= version:
                table.take(event)
                event = next(emitted, None)
            if deferred and any(file.kind.value != "base" for file in versioned.files[version]):
                continue
            visible = [{**row, **dict.fromkeys(access.masked)} for row in rows if sees(row)]
            assert comparable(table.rows) == comparable(visible), (access, version)
        assert event is None


def test_masked_columns_and_what_is_derived_from_them_are_null() -> None:
    row = {"k": "a", "n": 1, "at": "2026-01-01T00:00:00Z", "op": None, "tags": None}
    history = History(definition=DATASET.definition, commits=[[(Op.APPEND, row | {"at": None})]])
    stored = Stored(history=history)
    reading = ReadChanges(catalog=stored, index=stored, reader=stored)
    access = RowAccess(masked=("at", "k"))
    [event] = reading.page(DATASET, 0, FeedQuery(limit=1, access=access)).events.table.to_pylist()
    assert (event["event_time"], event["row"]["k"], event["row"]["at"]) == (None, None, None)
    assert event["row"]["n"] == 1
    with pytest.raises(MaskedColumn) as error:
        reading.page(DATASET, 0, FeedQuery(limit=1, access=access, where="n = 1 OR k = 'a'"))
    assert error.value.facts == {"column": "k"}


def test_condition_without_its_column_refuses_the_feed() -> None:
    stored = Stored(history=History(definition=DATASET.definition, commits=[]))
    reading = ReadChanges(catalog=stored, index=stored, reader=stored)
    with pytest.raises(GrantNotApplicable):
        reading.page(DATASET, 0, FeedQuery(limit=1, access=RowAccess(where=("region = 'eu'",))))


def test_feed_without_rows_before_is_refused_under_a_condition(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    versioned = versioned_tables("merge_on_read input")
    feed = TableFeed(table=versioned.table)
    reading = ReadChanges(catalog=feed, index=feed, reader=versioned.table.reader)
    with pytest.raises(RestrictedGrant):
        reading.page(feed.dataset, 0, FeedQuery(limit=1, access=RowAccess(where=("n < 50",))))
    masked = reading.page(feed.dataset, 0, FeedQuery(limit=50, access=RowAccess(masked=("note",))))
    assert {row["note"] for row in masked.events.table.column("row").to_pylist()} == {None}
