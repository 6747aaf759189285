"""The stored form of values: rows of the previous release are read whole, and nothing of a row is lost unseen.

`data/stored_rows.json` was written by the code of the previous release (`tests/support/stored_rows.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from sqlalchemy.dialects import postgresql

from app.core.jobs.values import Progress
from app.infra.db.stored_json import Document, UnreadableDocument, dumped, forgetful_structs
from app.kernel.format.dataset import DatasetDefinition
from tests.support.stored_rows import stored_types

ROWS: Final[dict[str, list[Any]]] = json.loads(
    (Path(__file__).parent / "data" / "stored_rows.json").read_text(encoding="utf-8")
)
TYPES: Final = stored_types()
OBJECTS: Final = [
    name for name, type_ in TYPES.items() if isinstance(type_, type) and issubclass(type_, msgspec.Struct)
]


def read(type_: Any, row: Any) -> Any:
    """What a column of the type returns for a stored row."""
    return Document(type_).process_result_value(json.dumps(row).encode(), postgresql.dialect())


def losses(before: Any, after: Any, at: str = "") -> list[str]:
    """Where the second JSON value lacks, or changes, something of the first."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            loss
            for name, value in before.items()
            for loss in (losses(value, after[name], f"{at}/{name}") if name in after else [f"{at}/{name}"])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            loss
            for number, (old, new) in enumerate(zip(before, after, strict=True))
            for loss in losses(old, new, f"{at}/{number}")
        ]
    return [] if before == after else [at]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_of_the_previous_release_are_read_and_written_again_whole(name: str) -> None:
    for row in ROWS[name]:
        assert losses(row, json.loads(dumped(read(TYPES[name], row)))) == []


@pytest.mark.parametrize("name", OBJECTS)
def test_row_with_a_renamed_member_is_refused(name: str) -> None:
    for row in ROWS[name]:
        for member in row:
            renamed = {f"{key}_before" if key == member else key: value for key, value in row.items()}
            with pytest.raises(UnreadableDocument, match=rf"`{member}|Invalid value"):
                read(TYPES[name], renamed)


def test_renamed_member_deep_in_a_row_is_refused() -> None:
    row = next(row for row in ROWS["datasets.definition"] if row["changelog"]["retention"])
    row["changelog"]["retention"]["age"] = row["changelog"]["retention"].pop("seconds")
    with pytest.raises(UnreadableDocument, match=r"unknown field `age` - at `\$\.changelog\.retention`"):
        read(DatasetDefinition, row)


class Renamed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`Progress`, whose member `done` has another name in code."""

    stage: str
    finished: int = msgspec.field(name="done", default=0)
    total: int = 0
    waiting_for: str | None = None


def test_attribute_with_another_name_keeps_its_stored_name() -> None:
    row = json.loads(dumped(Progress(stage="writing", done=2, total=3)))
    assert read(Renamed, row).finished == 2
    assert json.loads(dumped(read(Renamed, row))) == row


class Forgetful(msgspec.Struct, frozen=True, kw_only=True):
    """A struct that drops what it does not know."""

    stage: str


class Holder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that contains such a struct."""

    steps: tuple[Forgetful, ...] = ()


def test_column_of_a_type_that_drops_members_is_not_defined() -> None:
    with pytest.raises(TypeError, match="need forbid_unknown_fields=True: Forgetful"):
        Document(dict[str, Holder])


@pytest.mark.parametrize("name", sorted(TYPES))
def test_no_stored_type_drops_members(name: str) -> None:
    assert forgetful_structs(TYPES[name]) == []
