"""The forms of the feed against a spelled-out reference, and the law of the feed in each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from app.kernel.changelog.delivery_forms import ChangeForm, flat, in_form, symbols_of
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.format.dataset import Vocabulary
from app.kernel.format.rows.changelog import FeedError, Op, fold
from tests.support.examples import a_third_of
from tests.support.histories import DEFINITION, History, committed_ms, histories

EVERY_FORM = pytest.mark.parametrize("form", ChangeForm)
COLUMNS = DEFINITION.schema.names()
ONE_TO_ONE = {ChangeForm.TWO_EVENT, ChangeForm.RETRACT, ChangeForm.DELTA}
Change = dict[str, Any]


def committed_at(version: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=committed_ms(version))


def steps(changes: list[Change]) -> Iterator[tuple[Change | None, Change]]:
    """Each +A and -R by itself, and each -C with its +C."""
    opened = None
    for change in changes:
        if change["op"] == Op.CORRECT_FROM:
            opened = change
        else:
            yield opened, change
            opened = None


def expected(history: History, form: ChangeForm) -> list[Change]:
    """What the form is to deliver, one step after another."""
    emitted: list[Change] = []
    for old, new in steps(history.changes):
        system = {"system_time": committed_at(new["version"]), "event_time": new["row"]["at"]}
        after = {**new, **system}
        both = [{**old, "system_time": system["system_time"], "event_time": old["row"]["at"]}] if old else []
        match form:
            case ChangeForm.TWO_EVENT:
                emitted += [*both, after]
            case ChangeForm.SINGLE_EVENT:
                corrects = (old or new)["corrects_offset"]
                emitted.append({**after, "before": old["row"] if old else None, "corrects_offset": corrects})
            case ChangeForm.RETRACT:
                emitted += [{**each, "op": 1} for each in both]
                emitted.append({**after, "op": 1 if new["op"] == 1 else 0})
            case ChangeForm.UPSERT:
                emitted.append({**after, "op": 1 if new["op"] == 1 else 0})
            case ChangeForm.DEBEZIUM:
                gone = new["op"] == Op.RETRACT
                emitted.append(
                    {
                        "op": "d" if gone else "u" if old else "c",
                        "before": new["row"] if gone else old["row"] if old else None,
                        "after": None if gone else new["row"],
                        "source": {"dataset": "t", "version": new["version"], "offset": new["offset"]},
                        "ts_ms": committed_ms(new["version"]),
                    }
                )
            case ChangeForm.DELTA:
                types = ["insert", "delete", "update_preimage", "update_postimage"]
                emitted += [
                    {
                        "row": each["row"],
                        "_change_type": types[each["op"]],
                        "_commit_version": each["version"],
                        "_commit_timestamp": system["system_time"],
                    }
                    for each in [*both, after]
                ]
    return emitted


@EVERY_FORM
@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories)
def test_form_emits_every_change(form: ChangeForm, history: History) -> None:
    events = in_form(history.table(), form, "t")
    assert events.table.to_pylist() == expected(history, form)
    assert events.resume_at.null_count == 0


def images(event: Change, form: ChangeForm) -> tuple[Change | None, Change | None]:
    """The row that the event takes from the table, and the one that it puts there."""
    if form is ChangeForm.DEBEZIUM:
        return event["before"], event["after"]
    if form is ChangeForm.DELTA:
        takes = event["_change_type"] in ("delete", "update_preimage")
    else:
        takes = event["op"] in (Op.RETRACT, Op.CORRECT_FROM)
    return (event["row"], None) if takes else (event.get("before"), event["row"])


def folded(events: list[Change], form: ChangeForm) -> list[Change]:
    """What a consumer of the form makes of it: rows by key. Raises FeedError for what cannot be."""
    live: dict[str, Change] = {}
    for event in events:
        taken, put = images(event, form)
        if taken is not None and live.pop(taken["k"], None) != taken:
            raise FeedError(f"{event} takes what is not there")
        if put is not None:
            if put["k"] in live and form is not ChangeForm.UPSERT:
                raise FeedError(f"{event} puts what is there")
            live[put["k"]] = put
    return sorted(live.values(), key=lambda row: row["k"])


def version_of(event: Change) -> int:
    return (
        event["version"] if "version" in event else event.get("_commit_version") or event["source"]["version"]
    )


@EVERY_FORM
@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories)
def test_folded_form_equals_the_table_at_every_version(form: ChangeForm, history: History) -> None:
    events = in_form(history.table(), form, "t").table.to_pylist()
    for version in range(len(history.commits) + 1):
        native = [(each["op"], each["row"]) for each in history.changes if each["version"] <= version]
        table = sorted(fold(native, ["k"]), key=lambda row: row["k"])
        assert folded([event for event in events if version_of(event) <= version], form) == table


@EVERY_FORM
@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories)
def test_reader_that_resumes_after_any_event_skips_nothing_and_splits_no_pair(
    form: ChangeForm, history: History
) -> None:
    changes = history.table()
    events = in_form(changes, form, "t")
    whole = events.table.to_pylist()
    for seen, position in enumerate(events.resume_at.to_pylist(), 1):
        rest = in_form(changes.slice(position), form, "t").table.to_pylist()
        opened = form in ONE_TO_ONE and changes.column("op")[seen - 1].as_py() == Op.CORRECT_FROM
        # Behind the first half of a pair the pair is delivered again, as a whole.
        assert rest == whole[seen - 1 if opened else seen :]
        assert position == 0 or changes.column("op")[position - 1].as_py() != Op.CORRECT_FROM


@EVERY_FORM
@settings(max_examples=a_third_of(60), deadline=None)
@given(history=histories)
def test_parts_that_split_no_pair_concatenate_to_the_whole(form: ChangeForm, history: History) -> None:
    changes = history.table()
    cuts = [at for at, op in enumerate(changes.column("op").to_pylist()) if op != Op.CORRECT_TO]
    bounds = [*cuts, changes.num_rows]
    parts = [in_form(changes.slice(start, end - start), form, "t") for start, end in pairwise(bounds)]
    whole = in_form(changes, form, "t")
    assert [row for part in parts for row in part.table.to_pylist()] == whole.table.to_pylist()
    assert [at for part in parts for at in part.resume_at.to_pylist()] == whole.resume_at.to_pylist()
    assert all(part.table.schema.equals(whole.table.schema) for part in parts)


@EVERY_FORM
@settings(max_examples=a_third_of(40), deadline=None)
@given(history=histories)
def test_arrow_columns_and_json_text_have_the_same_values(form: ChangeForm, history: History) -> None:
    events = in_form(history.table(), form, "t").table
    lines = encode_changes_json(events, as_ndjson=True, symbols=symbols_of(form)).decode().split("\n")[:-1]
    table = flat(events, form)
    assert table.num_rows == len(lines) == events.num_rows
    for line, columns in zip(map(json.loads, lines), table.to_pylist(), strict=True):
        if form is ChangeForm.DEBEZIUM:
            assert (columns["op"], columns["source"]) == (line["op"], line["source"])
            assert columns["ts_ms"] == line["ts_ms"]
            for image in ("before", "after"):
                assert (columns[image] or {}).get("k") == (line[image] or {}).get("k")
            continue
        assert columns["k"] == line["row"]["k"]
        assert (columns["op"] is None) == (line["row"]["op"] is None)
        if form is ChangeForm.DELTA:
            assert columns["_change_type"] == line["_change_type"]
        else:
            assert symbols_of(form)[columns["_hw_op"]] == line["op"]
            assert columns["offset"] == line["offset"]
        if form is ChangeForm.SINGLE_EVENT:
            assert (columns["before"] is None) == (line["before"] is None)
            assert (line["op"] == "U") == (line["before"] is not None)


SYSTEM = ["offset", "_hw_op", "system_time", "event_time", "version", "corrects_offset"]
DELTA = ["_change_type", "_commit_version", "_commit_timestamp"]


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (ChangeForm.TWO_EVENT, [*SYSTEM, *COLUMNS]),
        (ChangeForm.SINGLE_EVENT, [*SYSTEM, *COLUMNS, "before"]),
        (ChangeForm.RETRACT, [*SYSTEM, *COLUMNS]),
        (ChangeForm.UPSERT, [*SYSTEM, *COLUMNS]),
        (ChangeForm.DEBEZIUM, ["op", "before", "after", "source", "ts_ms"]),
        (ChangeForm.DELTA, [*COLUMNS, *DELTA]),
    ],
)
def test_flat_columns_exist_without_rows(form: ChangeForm, names: list[str]) -> None:
    events = in_form(History(definition=DEFINITION, commits=[]).table(), form, "t")
    assert flat(events.table, form).column_names == names
    assert len(events.resume_at) == 0
    assert encode_changes_json(events.table, as_ndjson=False) == b"[]"


def test_flat_columns_use_the_datasets_vocabulary() -> None:
    """But a name that the dataset's own columns have come to use is left to those."""
    events = in_form(History(definition=DEFINITION, commits=[]).table(), ChangeForm.TWO_EVENT, "t").table
    names = flat(
        events, ChangeForm.TWO_EVENT, Vocabulary(offset="o", version="k", system_time="t")
    ).column_names
    shown = {"offset": "o", "version": "_hw_version", "system_time": "t"}
    assert names == [shown.get(name, name) for name in [*SYSTEM, *COLUMNS]]


@pytest.mark.parametrize("form", [ChangeForm.SINGLE_EVENT, ChangeForm.DEBEZIUM])
def test_unknown_before_image_is_null(form: ChangeForm) -> None:
    row = dict.fromkeys(COLUMNS)
    history = History(
        definition=DEFINITION, commits=[[(Op.CORRECT_FROM, row | {"k": "a"}), (Op.CORRECT_TO, row)]]
    )
    (whole,) = in_form(history.table(), form, "t").table.to_pylist()
    (half,) = in_form(history.table().slice(1), form, "t").table.to_pylist()
    assert whole["before"] == row | {"k": "a"}
    assert half == whole | {"before": None}


@EVERY_FORM
def test_unpaired_halves_are_emitted(form: ChangeForm) -> None:
    """As a source that is a feed itself may have given them."""
    a, b = dict.fromkeys(COLUMNS) | {"k": "a"}, dict.fromkeys(COLUMNS) | {"k": "b"}
    commits = [[(Op.CORRECT_FROM, a), (Op.APPEND, b)], [(Op.CORRECT_TO, a)], [(Op.CORRECT_FROM, b)]]
    events = in_form(History(definition=DEFINITION, commits=commits).table(), form, "t")
    assert [images(event, form) for event in events.table.to_pylist()] == [
        (a, None),
        (None, b),
        (None, a),
        (b, None),
    ]
    assert events.resume_at.to_pylist() == [1, 2, 3, 4]
    # What a filter leaves out between two halves does not make a pair of them.
    apart = History(
        definition=DEFINITION, commits=[[(Op.CORRECT_FROM, a), (Op.APPEND, b), (Op.CORRECT_TO, a)]]
    )
    left = in_form(apart.table().take(pa.array([0, 2])), form, "t").table.to_pylist()
    assert [images(event, form) for event in left] == [(a, None), (None, a)]
