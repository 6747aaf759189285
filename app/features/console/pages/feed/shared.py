"""What several of these pages share: links of rows, times and positions as people type them, problems of fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from app.features.console.inner_requests import EncodedPath
from app.features.console.pages.field_values import FieldFault, time_of, whole_number
from app.features.console.visit import ApiProblem, Visit, path_of

_AGO: Final = re.compile(r"(\d{1,6}) ?(s|m|min|h|d)(?: ago)?", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_CELLS_MAX: Final = 900
_LINES: Final = 100
_COLUMNS: Final = 16
_CHARACTERS: Final = 80
# The problems of the filter, which name no member.
_OF_FILTERS: Final = frozenset({"invalid-filter"})
_NUMBERS: Final = re.compile(r"(?:u?int\d*|long|short|byte|float|double|decimal)\b.*")


def problem_fields(problem: ApiProblem | None) -> dict[str, str]:
    """What is wrong with which option: details by its name. Empty for a problem of something else."""
    if problem is None:
        return {}
    if problem.code in _OF_FILTERS:
        return {"where": str(problem.members.get("detail", ""))}
    errors = problem.members.get("errors") or ()
    return {str(each.get("pointer", "")).strip("/").split("/")[0]: each.get("detail", "") for each in errors}


def moment_of(text: str, field: str, now: datetime) -> datetime:
    """The time that a person has typed: with its zone or in UTC, or how long ago. Raises FieldFault."""
    try:
        if match := _AGO.fullmatch(text):
            return now - timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
        return time_of(field, text)
    except (FieldFault, OverflowError):
        raise FieldFault(
            field, f"expected a time such as {now:%Y-%m-%d} 09:30, or 2h for two hours ago"
        ) from None


def version_or_time(visit: Visit) -> dict[str, Any]:
    """The options `version` and `as_of` of a read, as the fields `version` and `at` have them.

    Raises FieldFault.
    """
    version, at = number_option(visit, "version"), visit.query.get("at", "").strip()
    if version is not None and at:
        raise FieldFault("at", "expected either a version or a time, not both: leave one of them empty")
    return {"version": version, "as_of": rfc3339(moment_of(at, "at", visit.now)) if at else None}


def rfc3339(time: datetime) -> str:
    """The time as the API reads it."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def key_text(dataset: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The key of a row in the form of `/rows/{key}`: encoded values, separated by commas.

    None without a key, or if the row does not have all of its values: some are masked.
    """
    texts = []
    for name in dataset["record_key"]:
        value = _member(row, name)
        if value is None:
            return None
        texts.append(str(value).lower() if isinstance(value, bool) else str(value))
    return ",".join(quote(text, safe=":") for text in texts) if texts else None


def row_path(dataset: str, key: str) -> EncodedPath:
    """The path of the row in the API. `key`: in the form of `key_text`, or as a person types it."""
    return EncodedPath(f"{path_of('datasets', dataset, 'rows')}/{quote(key, safe='%,:')}")


def unnamed_key(dataset: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """The key as an object, if no path of the API names its row: it is empty, `lookup`, or made of slashes alone.

    None for any other key.
    """
    text = unquote(key)
    if len(dataset["record_key"]) != 1 or text.strip("/") not in ("", "lookup"):
        return None
    *structs, last = _key_path(dataset)
    members: Mapping[str, Any] = {last: text}
    for name in reversed(structs):
        members = {name: members}
    return members


def key_condition(dataset: Mapping[str, Any], key: str) -> str:
    """The filter for the changes of an unnamed key."""
    column = ".".join('"{}"'.format(name.replace('"', '""')) for name in _key_path(dataset))
    text = unquote(key).replace("'", "''")
    return f"{column} = '{text}'"


def _key_path(dataset: Mapping[str, Any]) -> list[str]:
    """The way to the value of a key of one field: a column, and members of structs."""
    [name] = dataset["record_key"]
    return [name] if name in column_names(dataset) else _parts(name)


def key_columns(dataset: Mapping[str, Any]) -> list[str]:
    """The columns that the record key is in, in its order."""
    names = column_names(dataset)
    return list(dict.fromkeys(_column(name, names) for name in dataset["record_key"]))


def column_names(dataset: Mapping[str, Any]) -> list[str]:
    """The columns of the latest schema."""
    return [field["name"] for field in dataset["schema"]["fields"]]


def number_columns(dataset: Mapping[str, Any]) -> frozenset[str]:
    """The columns that have numbers, which stand at the right."""
    fields = dataset["schema"]["fields"]
    return frozenset(each["name"] for each in fields if _NUMBERS.fullmatch(str(each["type"])))


def shown_columns(visit: Visit, dataset: Mapping[str, Any]) -> list[str]:
    """The columns of the page: those that were requested, or the first ones, with the key in front of them."""
    names = [name.strip() for name in visit.query.get("columns", "").split(",") if name.strip()]
    if names:
        return list(dict.fromkeys(names))
    return list(dict.fromkeys([*key_columns(dataset), *column_names(dataset)]))[:_COLUMNS]


def short(value: Any, characters: int = _CHARACTERS) -> Any:
    """A value for a table: nested ones as JSON, and the beginning of a long text. The page of a row has all of it."""
    text = msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value
    if isinstance(text, str) and len(text) > characters:
        return text[: characters - 1] + "…"
    return text


def shown_lines(columns: Sequence[str]) -> int:
    """How many rows or changes a page shows, so that it stays small."""
    return max(10, min(_LINES, _CELLS_MAX // max(len(columns), 1)))


def console_path(dataset: Mapping[str, Any], *segments: str) -> str:
    """The path of a page of the dataset."""
    return "/console" + path_of("datasets", dataset["name"], *segments)


def number_option(visit: Visit, name: str) -> int | None:
    """An option that is a number, or a version such as v1203; None without it. Raises FieldFault."""
    return whole_number(name, visit.query.get(name, "").strip().removeprefix("v"))


def _member(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for part in _parts(name):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _column(name: str, names: Sequence[str]) -> str:
    return name if name in names else _parts(name)[0]


def _parts(name: str) -> list[str]:
    """The steps to a member of a struct, as in `meta.region`, or in backticks."""
    return [
        (literal or plain).replace("``", "`")
        for literal, plain in re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    ]
