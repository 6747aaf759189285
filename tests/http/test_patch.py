"""Partial updates of values."""

from __future__ import annotations

import msgspec
import pytest

from app.http.parameters.patch import patched


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    rows: int | None = None


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`shape` is stored by another name than that of its attribute."""

    name: str
    note: str | None = None
    shape: Bounds = msgspec.field(name="telling", default=Bounds(rows=1))


class Patch(msgspec.Struct, kw_only=True):
    name: str | msgspec.UnsetType = msgspec.UNSET
    note: str | msgspec.UnsetType | None = msgspec.UNSET
    shape: Bounds | msgspec.UnsetType = msgspec.UNSET
    secret: str | msgspec.UnsetType = msgspec.UNSET


VALUE = Value(name="a", note="b", shape=Bounds(rows=7))


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (Patch(), VALUE),
        (Patch(name="c", secret="s"), Value(name="c", note="b", shape=Bounds(rows=7))),
        (Patch(note=None), Value(name="a", note=None, shape=Bounds(rows=7))),
        (Patch(shape=Bounds()), Value(name="a", note="b", shape=Bounds())),
    ],
    ids=["nothing", "other members of the patch", "null", "a member with a stored name"],
)
def test_members_of_the_patch_replace_those_of_the_value(patch: Patch, expected: Value) -> None:
    assert patched(VALUE, patch) == expected
