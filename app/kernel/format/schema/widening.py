"""Wider types: the types that hold every value of another type exactly."""

from __future__ import annotations

from typing import Final

from app.kernel.format.schema.types import DataType, Decimal, List, Map, Primitive, Struct, Timestamp

_WIDER: Final = {
    "int8": ("int16", "int32", "int64", "float", "double"),
    "int16": ("int32", "int64", "float", "double"),
    "int32": ("int64", "double"),
    "uint8": ("uint16", "uint32", "int16", "int32", "int64", "float", "double"),
    "uint16": ("uint32", "int32", "int64", "float", "double"),
    "uint32": ("int64", "double"),
    "float": ("double",),
}


def wider_primitives(name: str) -> tuple[str, ...]:
    """The primitive types that hold every value of the type `name`, the narrowest first."""
    return _WIDER.get(name, ())


def why_not_wider(old: DataType, new: DataType, *, explicit_cast: bool) -> str | None:
    """The reason why `new` cannot replace `old`; None if it can, or if they are equal."""
    if old == new:
        return None
    match old, new:
        case Primitive(name), Primitive(wider) if wider in wider_primitives(name):
            return None
        case Decimal(), Decimal() if new.scale == old.scale and new.precision > old.precision:
            return None
        case Timestamp("ms", zoned), Timestamp("us", as_zoned) if zoned == as_zoned:
            return None
        case Primitive("date"), Timestamp():
            return None if explicit_cast else f"{old} becomes {new} with explicit_cast only"
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
        case Primitive("date"):
            return "it may become a timestamp, with explicit_cast"
        case Primitive(name) if name in _WIDER:
            return f"it may become {', '.join(_WIDER[name])}"
        case Decimal(precision, scale):
            return f"it may become decimal(p, {scale}) with p above {precision}"
        case Timestamp("ms", _):
            return f"it may become {Timestamp('us', old.zoned)}"
        case List() | Map():
            return "the values in it may be widened"
        case Struct():
            return "members may be added and widened"
    return "no type is wider"
