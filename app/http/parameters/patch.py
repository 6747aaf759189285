"""Partial updates: a member that a request leaves out keeps its value."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_T = TypeVar("_T", bound=msgspec.Struct)


def patched(value: _T, patch: msgspec.Struct) -> _T:
    """The value with the members of the same name that the patch sets, null included."""
    # A mapping is converted by the stored names of its members, which can differ from those of the attributes.
    names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    members = {
        encoded_name: getattr(value, name)
        if (change := getattr(patch, name, msgspec.UNSET)) is msgspec.UNSET
        else change
        for name, encoded_name in names
    }
    return msgspec.convert(members, type(value), from_attributes=True)
