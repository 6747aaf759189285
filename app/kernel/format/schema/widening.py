"""Wider types: the types that hold every value of another type exactly."""

from __future__ import annotations

from app.kernel.format.schema.types import DataType, Date, FlatType, List, Map, Struct, Timestamp


def why_not_wider(old: DataType, new: DataType, *, explicit_cast: bool) -> str | None:
    """The reason why `new` cannot replace `old`; None if it can, or if they are equal."""
    if old == new:
        return None
    match old, new:
        case Date(), Timestamp():
            return None if explicit_cast else f"{old} becomes {new} with explicit_cast only"
        case FlatType(), FlatType() if old.widens_to(new):
            return None
        case List(element), List(wider_element):
            return why_not_wider(element, wider_element, explicit_cast=explicit_cast)
        case Map(key, value), Map(new_key, wider_value):
            if key != new_key:
                return f"the key type of a map cannot change: {key}"
            return why_not_wider(value, wider_value, explicit_cast=explicit_cast)
        case Struct(), Struct():
            return _why_no_wider_struct(old, new, explicit_cast=explicit_cast)
    return f"{new} does not hold every value of {old}; {_allowed(old)}"


def _why_no_wider_struct(old: Struct, new: Struct, *, explicit_cast: bool) -> str | None:
    members = dict(new.members)
    for name, member in old.members:
        if name not in members:
            return f"member {name!r} is missing: members are added and widened, never dropped or renamed"
        reason = why_not_wider(member, members[name], explicit_cast=explicit_cast)
        if reason is not None:
            return f"member {name!r}: {reason}"
    return None


def _allowed(old: DataType) -> str:
    match old:
        case FlatType():
            return old.widening
        case List() | Map():
            return "the values in it may be widened"
        case Struct():
            return "members may be added and widened"
