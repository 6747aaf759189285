"""Pages of feeds that are cut while they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from app.core.changes.positions import StartingPosition
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage
from app.core.timeline.errors import OffsetExpired
from app.infra.files.errors import CorruptFile
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.file_group import ChangelogSegment, StoredFile
from app.kernel.format.rows.changelog import Op
from tests.support.histories import DEFINITION, History
from tests.support.stored_feed import DATASET, Stored

ROW = {"k": "a", "n": 0, "at": None, "op": None, "tags": None}
# Offsets 0, 1–2 and 3: one commit each.
HISTORY = History(
    definition=DEFINITION,
    commits=[
        [(Op.APPEND, ROW)],
        [(Op.CORRECT_FROM, ROW), (Op.CORRECT_TO, {**ROW, "n": 1})],
        [(Op.APPEND, {**ROW, "k": "b"})],
    ],
)


@dataclass(kw_only=True)
class Cut(Stored):
    """A feed that begins at `to` from the moment on at which its index, or a file of it, is requested."""

    at: str
    to: int = 1

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        if self.at == "index":
            self.earliest = self.to
        if since < self.earliest:
            raise OffsetExpired("gone", since=since, earliest=self.earliest)
        return super().segments(tenant_id, dataset_id, since, until, limit=limit)

    def read_slice(self, file: StoredFile, *args: Any, **options: Any) -> pa.Table:
        if self.at == "file":
            self.earliest = self.to
        if file.path == "1" and self.earliest:
            raise CorruptFile("there is no file 1", path=file.path)
        return super().read_slice(file, *args, **options)


def page(
    stored: Stored, since: int | StartingPosition, form: ChangeForm = ChangeForm.TWO_EVENT
) -> ChangePage:
    reading = ReadChanges(catalog=stored, index=stored, reader=stored)
    return reading.page(DATASET, since, FeedQuery(limit=10, form=form))


CUT = pytest.mark.parametrize("at", ["index", "file"])


@CUT
def test_changes_that_expire_during_a_read_raise_offset_expired(at: str) -> None:
    with pytest.raises(OffsetExpired) as error:
        page(Cut(history=HISTORY, at=at), 0)
    assert error.value.facts == {"since": 0, "earliest": 1}


@CUT
def test_earliest_position_follows_an_expiry_during_the_read(at: str) -> None:
    found = page(Cut(history=HISTORY, at=at), StartingPosition.EARLIEST)
    assert found.events.table.column("offset").to_pylist() == [1, 2, 3]
    assert (found.next_since, found.pending, found.earliest) == (4, 0, 1)


@CUT
@pytest.mark.parametrize("form", ChangeForm)
def test_retained_changes_are_read_during_an_expiry(at: str, form: ChangeForm) -> None:
    whole = page(Stored(history=HISTORY), 1, form).events.table
    assert page(Cut(history=HISTORY, at=at), 1, form).events.table == whole


def test_file_missing_for_another_reason_is_corrupt() -> None:
    class Damaged(Stored):
        def read_slice(self, file: StoredFile, *args: Any, **options: Any) -> pa.Table:
            raise CorruptFile("there is no such file", path=file.path)

    with pytest.raises(CorruptFile):
        page(Damaged(history=HISTORY), 0)
