"""Tasks of exports over random histories, against pages of the same feed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.features.exports import tasks as export
from app.features.exports.tasks import (
    ExportedPart,
    ExportFormat,
    ExportPart,
    ExportQuery,
    ExportSpec,
    export_parts,
)
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.delivery_forms import ChangeForm, symbols_of
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.format.rows.changelog import Op
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.examples import a_third_of
from tests.support.histories import DEFINITION, History, histories
from tests.support.stored_feed import DATASET, Stored
from workers.engine.read import export_handle

FILTERS = [None, "n = 1", "n IS NULL OR k = 'b'", "k LIKE '%z'"]
ACCESSES = [EVERYTHING, RowAccess(where=("n = 1",)), RowAccess(where=("n = 1", "n IS NULL OR k = 'b'"))]


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "_PART_ROWS", 3)
        patch.setattr(export_handle, "_STEP_CHANGES", 2)
        yield


def pages(
    stored: Stored,
    since: int,
    until: int,
    form: ChangeForm,
    where: str | None,
    access: RowAccess = EVERYTHING,
) -> tuple[bytes, int]:
    """What pages of the range have as NDJSON, and where they end."""
    feed = ReadChanges(catalog=stored, index=stored, reader=stored)
    query = FeedQuery(limit=4, form=form, until=until, where=where, columns=("k", "n"), access=access)
    paged = b""
    while True:
        page = feed.page(DATASET, since, query)
        paged += encode_changes_json(page.events.table, as_ndjson=True, symbols=symbols_of(form))
        if page.complete or page.next_since == since:
            return paged, page.next_since
        since = page.next_since


def exported(stored: Stored, spec: ExportSpec, since: int, until: int) -> tuple[list[bytes], int]:
    """The files that the tasks write, which travel as they do on Spark, and where the run ends."""
    with tempfile.TemporaryDirectory() as root:
        storage = LocalStorage(Path(root))
        parts = export_parts(
            spec,
            stored.segments("t", "d", since, until) if since < until else [],
            since=since,
            until=until,
            earliest=stored.earliest,
            prefix="part",
        )
        answers = []
        for part in parts:
            sent = msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=ExportPart)
            slices = SliceReader(reader=stored, vectors=VectorReader(storage))  # type: ignore[arg-type]
            answer = export_handle.export(sent, storage, slices, MemoryBudget(bytes_max=200))
            answers.append(msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=ExportedPart))
        files = [Path(root, file.path).read_bytes() for answer in answers for file in answer.files]
    return files, until - any(answer.splits_end for answer in answers)


def spec(
    query: ExportQuery, form: ChangeForm, where: str | None, access: RowAccess = EVERYTHING
) -> ExportSpec:
    return ExportSpec(
        dataset=DEFINITION,
        query=query,
        format=ExportFormat.NDJSON,
        form=form,
        columns=("k", "n"),
        where=where,
        partitions=None,
        target_bytes=1,
        access=access,
    )


def ranges(data: st.DataObject, history: History) -> tuple[int, int]:
    head = len(history.changes)
    since = data.draw(st.integers(0, head))
    return since, data.draw(st.integers(since, head))


@settings(max_examples=a_third_of(150), deadline=None)
@given(
    history=histories,
    data=st.data(),
    form=st.sampled_from(ChangeForm),
    where=st.sampled_from(FILTERS),
    access=st.sampled_from(ACCESSES),
)
def test_exported_changes_equal_feed_pages(
    history: History, data: st.DataObject, form: ChangeForm, where: str | None, access: RowAccess
) -> None:
    since, until = ranges(data, history)
    stored = Stored(history=history, earliest=data.draw(st.integers(max(since - 2, 0), since)))
    files, end = exported(stored, spec(ExportQuery.CHANGES, form, where, access), since, until)
    paged, position = pages(stored, since, until, form, where, access)
    assert b"".join(files) == paged
    if since < until:
        assert end == position


@settings(max_examples=a_third_of(100), deadline=None)
@given(history=histories, data=st.data(), where=st.sampled_from(FILTERS), access=st.sampled_from(ACCESSES))
def test_incremental_rows_are_the_last_of_the_changed_keys(
    history: History, data: st.DataObject, where: str | None, access: RowAccess
) -> None:
    stored = Stored(history=history)
    since, until = ranges(data, history)
    wanted = spec(ExportQuery.INCREMENTAL, ChangeForm.TWO_EVENT, where, access)
    files, end = exported(stored, wanted, since, until)
    last: dict[str, dict[str, Any]] = {each["row"]["k"]: each for each in history.changes[since:end]}
    expected = [
        {"k": key, "n": each["row"]["n"]}
        for key, each in last.items()
        if each["op"] != Op.RETRACT and matches(where, each["row"]) and visible(access, each["row"])
    ]
    found = [json.loads(line) for file in files for line in file.splitlines()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def visible(access: RowAccess, row: dict[str, Any]) -> bool:
    return not access.where or any(matches(where, row) for where in access.where)


def matches(where: str | None, row: dict[str, Any]) -> bool:
    match where:
        case "n = 1":
            return bool(row["n"] == 1)
        case "n IS NULL OR k = 'b'":
            return row["n"] is None or row["k"] == "b"
        case _:
            return where is None
