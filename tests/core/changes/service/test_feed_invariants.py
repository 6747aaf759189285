"""The laws of the feed over random histories of tables of every kind, read as a consumer reads it: from JSON.

Folding the changes up to a version gives the table at it, in every form that can be folded; offsets are dense; who
stops anywhere and goes on from where it was sees each change once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from app.core.changes.handlers.feed_options import encoded
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.dataset import ChangelogProducer
from tests.support.shares import share
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import KINDS, VersionedTable, comparable, kind_of, written_versioned_table

Row = dict[str, Any]
SEEDS = (3,)
# Of kinds whose feed has of every row what it was and is.
FULL_FEED_KINDS = [name for name in KINDS if kind_of(name).changelog.producer is ChangelogProducer.FULL]
EVERY_FORM = pytest.mark.parametrize("form", ChangeForm)
EVERY_KIND = pytest.mark.parametrize("kind", FULL_FEED_KINDS)
# Without a key nothing says which row another replaces.
FOLDED_FORMS = [
    (kind, form)
    for kind in FULL_FEED_KINDS
    for form in ChangeForm
    if kind_of(kind).keyed or form is not ChangeForm.UPSERT
]


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    return cache(lambda kind, seed: written_versioned_table(storage, kind, seed=seed))


def reading(versioned: VersionedTable) -> tuple[ReadChanges, TableFeed]:
    feed = TableFeed(table=versioned.table)
    return ReadChanges(catalog=feed, index=feed, reader=versioned.table.reader), feed


def pages(
    versioned: VersionedTable, since: int, sizes: Iterator[int], **query: Any
) -> Iterator[tuple[list[Row], int]]:
    """The events of each page to the end, as JSON has them, and where the next one begins."""
    use_case, feed = reading(versioned)
    while True:
        page = use_case.page(feed.dataset, since, FeedQuery(limit=next(sizes), **query))
        if page.next_since == since:
            return
        since = page.next_since
        yield [json.loads(line) for line in encoded(page, as_ndjson=True).splitlines()], since


def events(versioned: VersionedTable, **query: Any) -> list[Row]:
    return [event for page, _ in pages(versioned, 0, iter(lambda: 1_000, None), **query) for event in page]


class Table:
    """What a consumer makes of events. Taking away a row that is not there is an error."""

    def __init__(self, form: ChangeForm, key: tuple[str, ...]) -> None:
        self.rows: list[Row] = []
        self._key = key
        self._take = {
            ChangeForm.TWO_EVENT: self._step,
            ChangeForm.RETRACT: self._step,
            ChangeForm.SINGLE_EVENT: self._single_event,
            ChangeForm.UPSERT: self._upsert,
            ChangeForm.DEBEZIUM: self._debezium,
            ChangeForm.DELTA: self._delta,
        }[form]

    def take(self, event: Row) -> None:
        self._take(event)

    def _step(self, event: Row) -> None:
        if event["op"] in ("+A", "+C"):
            self.rows.append(event["row"])
        else:
            self.rows.remove(event["row"])

    def _single_event(self, event: Row) -> None:
        if event["op"] == "U":
            self.rows.remove(event["before"])
            self.rows.append(event["row"])
        else:
            self._step(event)

    def _upsert(self, event: Row) -> None:
        self.rows = [row for row in self.rows if any(row[name] != event["row"][name] for name in self._key)]
        if event["op"] == "+A":
            self.rows.append(event["row"])

    def _debezium(self, event: Row) -> None:
        if event["before"] is not None:
            self.rows.remove(event["before"])
        if event["after"] is not None:
            self.rows.append(event["after"])
        assert (
            event["op"]
            == {(True, False): "c", (False, False): "u", (False, True): "d"}[
                event["before"] is None, event["after"] is None
            ]
        )

    def _delta(self, event: Row) -> None:
        if event["_change_type"] in ("insert", "update_postimage"):
            self.rows.append(event["row"])
        else:
            self.rows.remove(event["row"])


def version_of(event: Row) -> int:
    found: int = event.get("version") or event.get("_commit_version") or event["source"]["version"]
    return found


@pytest.mark.parametrize(("kind", "form"), FOLDED_FORMS)
def test_folded_feed_equals_the_table_at_every_version(
    versioned_tables: Callable[[str, int], VersionedTable], kind: str, form: ChangeForm
) -> None:
    for seed in SEEDS:
        versioned = versioned_tables(kind, seed)
        key = versioned.table.dataset.record_key
        table = Table(form, key)
        emitted = iter(events(versioned, form=form))
        event = next(emitted, None)
        for version, rows in enumerate(versioned.rows):
            while event is not None and version_of(event) <= version:
                table.take(event)
                event = next(emitted, None)
            assert comparable(table.rows) == comparable(rows), (seed, version)
        assert event is None


@EVERY_KIND
def test_offsets_are_dense_and_an_update_is_two_neighbours(
    versioned_tables: Callable[[str, int], VersionedTable], kind: str
) -> None:
    for seed in SEEDS:
        emitted = events(versioned_tables(kind, seed))
        assert [event["offset"] for event in emitted] == list(range(len(emitted)))
        assert [event["version"] for event in emitted] == sorted(event["version"] for event in emitted)
        for event, following in zip(emitted, [*emitted[1:], {"op": None}], strict=True):
            assert (event["op"] == "-C") == (following["op"] == "+C")


@share(3)
@EVERY_KIND
@EVERY_FORM
def test_reader_that_pauses_anywhere_sees_each_event_once(
    versioned_tables: Callable[[str, int], VersionedTable], kind: str, form: ChangeForm
) -> None:
    for seed in SEEDS:
        versioned, chance = versioned_tables(kind, seed), random.Random(seed)
        whole = events(versioned, form=form)
        seen: list[Row] = []
        since = 0
        while True:
            # A few pages of random sizes, then the reader is gone and comes back with nothing but its position.
            walk = pages(versioned, since, _sizes(chance), form=form)
            steps = [step for step, _ in zip(walk, range(chance.randint(1, 4)), strict=False)]
            if not steps:
                break
            seen += [event for page, _ in steps for event in page]
            since = steps[-1][1]
        assert seen == whole


def _sizes(chance: random.Random) -> Iterator[int]:
    while True:
        yield chance.randint(1, 9)
