"""What is wrong with the members of JSON objects: msgspec's messages as JSON pointers and words."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from app.kernel.format.errors import FieldError
from app.kernel.format.similar_names import similar_names

EXPECTED: Final = "x-expected"
"""In a type's `extra_json_schema`: the words for what is expected, for messages. The OpenAPI document leaves it out."""
_PLACE: Final = re.compile(
    r"(?P<reason>.*?)(?: - at (?:`(?:key|value)` in )?`\$?(?P<path>[^`]*)`)?", re.DOTALL
)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_ANY_KEY: Final = "..."
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")
_EXPECTED: Final = re.compile(
    r"Expected `(?P<types>[^`]+)`(?P<limit>.*?)(?:, got `(?P<got>[^`]+)`)?", re.DOTALL
)
_PATTERN: Final = re.compile(r" matching regex '(?P<pattern>.*)'", re.DOTALL)
EXPECTED_TIME: Final = "expected an RFC 3339 time with its zone, such as 2026-11-21T00:00:00Z"
# What msgspec says of texts that are no times or dates, in words.
_TEXTS: Final = {
    "Invalid RFC3339 encoded datetime": EXPECTED_TIME,
    "Expected `datetime` with a timezone component": EXPECTED_TIME,
    "Invalid RFC3339 encoded date": "expected a date such as 2026-11-21",
}
# The decoder's names of types, and those of JSON.
_TYPES: Final = {
    "array": "an array",
    "bool": "a boolean",
    "bytes": "a string in Base64",
    "date": "a date",
    "datetime": "a time",
    "decimal": "a number",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "a string",
    "uuid": "a UUID",
}


def field_error(message: str, type_: Any, *, at: str = "", value: Any = None) -> FieldError:
    """What msgspec's message about a value of a type says, with a JSON pointer below `at`.

    `value`: as it is decoded without a type. Messages do not have the keys of maps, so they are found in it.
    """
    place = _PLACE.fullmatch(message)
    reason, path = (place["reason"], place["path"] or "") if place else (message, "")
    steps = _with_keys([name or index for name, index in _STEP.findall(path)], type_, value)
    pointer = at + "".join(f"/{escaped(step)}" for step in steps)
    if unknown_member := _UNKNOWN.fullmatch(reason):
        name = unknown_member["name"]
        members = _members(type_, steps)
        advice = _below_another(type_, steps, name) or similar(name, members) or _one_of(members)
        return FieldError(pointer=f"{pointer}/{escaped(name)}", detail=f"unknown member; {advice}")
    if missing := _MISSING.fullmatch(reason):
        return FieldError(pointer=f"{pointer}/{escaped(missing['name'])}", detail="this member is required")
    if values := _known_values(type_, steps) if reason.startswith("Invalid ") else []:
        return FieldError(
            pointer=pointer, detail=f"{reason.replace('`', '')}; expected one of {', '.join(values)}"
        )
    return FieldError(pointer=pointer, detail=_expectation(reason, _places(type_, steps)))


def _with_keys(steps: list[str], type_: Any, value: Any) -> list[str]:
    """The steps with the keys of maps, as far as the value has them: in each map the first key with a wrong value."""
    named: list[str] = []
    holder = value
    for step in steps:
        if step == _ANY_KEY and isinstance(holder, dict):
            key = _first_wrong(holder, named, type_, value)
            step = step if key is None else key
        named.append(step)
        if isinstance(holder, dict):
            holder = holder.get(step)
        else:
            holder = holder[int(step)] if isinstance(holder, list) and step.isdecimal() else None
    return named


def _first_wrong(members: dict[str, Any], steps: Sequence[str], type_: Any, value: Any) -> str | None:
    """The first of the members of a map that is wrong; None if none is. `steps`: to the map, in the value."""
    keys = list(members)

    def fault(count: int) -> str | None:
        """What is wrong if the map has only its first members."""
        few = {key: members[key] for key in keys[:count]}
        try:
            msgspec.json.decode(msgspec.json.encode(_with_only(value, steps, few)), type=type_)
        except msgspec.ValidationError as error:
            return str(error)
        return None

    whole = fault(len(keys))
    if whole is None:
        return None
    return keys[bisect_left(range(len(keys)), True, key=lambda number: fault(number + 1) == whole)]


def _with_only(value: Any, steps: Sequence[str], inner: Any) -> Any:
    """The value with another one at the end of these steps, and nothing else but the flat members on the way."""
    if not steps:
        return inner
    step, *rest = steps
    if isinstance(value, list):
        return [_with_only(value[int(step)], rest, inner)]
    return {
        name: _with_only(each, rest, inner) if name == step else each
        for name, each in value.items()
        if name == step or not isinstance(each, dict | list)
    }


def similar(name: str, names: Iterable[str]) -> str:
    """The question `did you mean …?` with the closest of the names; empty if none is close."""
    close = similar_names(name, names)
    return f"did you mean {close[0]!r}?" if close else ""


def _one_of(members: list[str]) -> str:
    """The members that an object may have, for one of another name."""
    return f"expected one of {', '.join(sorted({*members}))}" if members else "no member is expected"


def _expectation(reason: str, places: list[Any]) -> str:
    """What msgspec's reason says, in the words of JSON."""
    descriptions = [place[EXPECTED] for place in places if EXPECTED in place]
    if descriptions:
        return f"expected {descriptions[0]}"
    if (in_words := _TEXTS.get(reason)) is not None:
        return in_words
    expectation = _EXPECTED.fullmatch(reason)
    if expectation is None:
        return reason.replace("`", "'")
    types = " or ".join(_TYPES.get(name, name) for name in expectation["types"].split(" | "))
    limit = _PATTERN.sub(lambda pattern: f" that matches {pattern['pattern']}", expectation["limit"])
    got = f", got {_TYPES.get(expectation['got'], expectation['got'])}" if expectation["got"] else ""
    return f"expected {types}{_such_as(expectation['types'], places)}{limit}{got}"


def _such_as(types: str, places: list[Any]) -> str:
    """An object with the members that are required, if each states an example; else nothing."""
    if types != "object" or len(places) != 1:
        return ""
    properties = places[0].get("properties", {})
    examples = {
        name: properties[name]["examples"][0]
        for name in places[0].get("required", ())
        if properties[name].get("examples")
    }
    if not examples or len(examples) < len(places[0]["required"]):
        return ""
    return f" such as {json.dumps(examples, ensure_ascii=False)}"


def _below_another(type_: Any, steps: list[str], name: str) -> str:
    """Where a member belongs that is one of a member beside it; empty if there is no such member."""
    members = _members(type_, steps)
    for member in members:
        if name in _members(type_, [*steps, member]):
            place = "/".join(["", *map(escaped, [*steps, member, name])])
            # Another member may be meant, such as `record_key` by `key`.
            ends = [each for each in members if each.endswith(f"_{name}")]
            return f"send it in {place}" + "".join(f", or did you mean {end!r}?" for end in ends[:1])
    return ""


def _members(type_: Any, steps: list[str]) -> list[str]:
    """The members of the objects that may stand at a place in a type."""
    return [member for place in _places(type_, steps) for member in place.get("properties", ())]


def _known_values(type_: Any, steps: list[str]) -> list[str]:
    """The values of the enumeration (or the tags of the union) at a place in a type; none if that is another type."""
    return [str(value) for place in _places(type_, steps) for value in place.get("enum", ())]


def _places(type_: Any, steps: list[str]) -> list[Any]:
    """The schemas that the value at a place in a type may have."""
    (schema,), components = msgspec.json.schema_components([type_], ref_template="{name}")
    places = _alternatives([schema], components)
    for step in steps:
        below = [inner for place in places if (inner := _below(place, step)) is not None]
        places = _alternatives(below, components)
    return places


def _alternatives(places: list[Any], components: dict[str, Any]) -> list[Any]:
    alternatives: list[Any] = []
    for place in places:
        # A reference that a type's `extra_json_schema` makes is one into the OpenAPI document, not to a type here.
        schema = components.get(place["$ref"], place) if "$ref" in place else place
        options = schema.get("anyOf") or schema.get("oneOf")
        alternatives += _alternatives(options, components) if options else [schema]
    return alternatives


def _below(place: Any, step: str) -> Any:
    if "items" in place:
        return place["items"]
    # The values of a map have one schema.
    others = place.get("additionalProperties")
    return place.get("properties", {}).get(step, others if isinstance(others, dict) else None)


def escaped(step: str) -> str:
    """A step of a JSON pointer."""
    return step.replace("~", "~0").replace("/", "~1")
