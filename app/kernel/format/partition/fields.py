"""The entries of `partition_by`: their syntax and their meaning.

country, `a.b`         a field; in backticks where its name has other than letters, digits, '_', '-' and blanks
address.city           a member of a struct
year(ts) month(ts) day(ts) hour(ts)     of a date or timestamp, in UTC
bucket(16, id)         the hash of the value, modulo 16
truncate(3, name)      the first characters of a string; an integer rounded down to a multiple
identity(x)            the same as x
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.types import DATE, STRING, DataType, Integer, Struct, Timestamp, may_be_key

ARGUMENT_MAX: Final = 2**31 - 1
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([(),.])|([^`(),.]+))")
_BARE: Final = re.compile(r"[\w-]+( +[\w-]+)*")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}")


class PartitionSyntaxError(ValueError):
    """A text that is not a partition field or not a glob of partition paths; the message says what is expected."""


class Transform(str, Enum):
    """The function from a value to its partition's value."""

    IDENTITY = "identity"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    BUCKET = "bucket"
    TRUNCATE = "truncate"

    @property
    def takes_argument(self) -> bool:
        """Whether it has a numeric argument before the field."""
        return self in (Transform.BUCKET, Transform.TRUNCATE)


_SUFFIXES: Final = {
    Transform.IDENTITY: "",
    Transform.TRUNCATE: "_trunc",
    **{
        transform: f"_{transform.value}"
        for transform in (
            Transform.YEAR,
            Transform.MONTH,
            Transform.DAY,
            Transform.HOUR,
            Transform.BUCKET,
        )
    },
}


class PartitionField(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `partition_by`.

    `path`: a field, then members of structs. `argument`: the number of buckets or the width of a truncation, else None.
    `text`: the canonical text, which parses to the same field.
    """

    path: tuple[str, ...]
    transform: Transform
    argument: int | None
    text: str

    @property
    def plain(self) -> bool:
        """Whether it is an untransformed field of the dataset."""
        return self.transform is Transform.IDENTITY and len(self.path) == 1


@lru_cache(maxsize=4_096)
def parse_partition(text: str) -> PartitionField:
    """The partition field that `text` names. Raises PartitionSyntaxError."""
    tokens = [*_tokens(text), ""]
    transform, argument = Transform.IDENTITY, None
    if tokens[1:2] == ["("]:
        transform = _transform(tokens[0])
        closing = tokens.pop(-2) if tokens[-2] == ")" else None
        if closing is None:
            raise PartitionSyntaxError(f"expected ')' at the end of {text!r}")
        tokens = tokens[2:]
        if transform.takes_argument:
            argument = _argument(tokens, transform)
            tokens = tokens[2:]
    path = _path(tokens, text)
    return PartitionField(
        path=path, transform=transform, argument=argument, text=_canonical(path, transform, argument)
    )


def _tokens(text: str) -> Iterator[str]:
    end = len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise PartitionSyntaxError(
                f"cannot read {text!r} from position {position}: a backtick is not closed"
            )
        yield match.group().strip()
        position = match.end()


def _transform(word: str) -> Transform:
    try:
        return Transform(word.lower())
    except ValueError:
        names = ", ".join(transform.value for transform in Transform)
        raise PartitionSyntaxError(f"there is no transform {word!r}; known are {names}") from None


def _argument(tokens: Sequence[str], transform: Transform) -> int:
    syntax = (
        f"{transform.value} takes a number from 1 to {ARGUMENT_MAX} and a field: {transform.value}(16, name)"
    )
    if tokens[1:2] != [","] or not _NUMBER.fullmatch(tokens[0]) or int(tokens[0]) > ARGUMENT_MAX:
        raise PartitionSyntaxError(syntax)
    return int(tokens[0])


def _path(tokens: Sequence[str], text: str) -> tuple[str, ...]:
    """The names in `name . name . … end`."""
    names, separators = tokens[:-1:2], [*tokens[1:-1:2], tokens[-1]]
    if len(tokens) % 2 or any(name in {"(", ")", ",", "."} for name in names) or not names:
        raise PartitionSyntaxError(
            f"expected a field, a member as in 'address.city', or a transform, got {text!r}"
        )
    if any(separator != "." for separator in separators[:-1]):
        raise PartitionSyntaxError(
            f"expected one field, got {text!r}; other characters of a name need `backticks`"
        )
    return tuple(name[1:-1].replace("``", "`") if name.startswith("`") else name for name in names)


def _canonical(path: Sequence[str], transform: Transform, argument: int | None) -> str:
    source = ".".join(name if _BARE.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in path)
    if transform is Transform.IDENTITY:
        return source
    return f"{transform.value}({source})" if argument is None else f"{transform.value}({argument}, {source})"


def partition_name(field: PartitionField) -> str:
    """The folder name of the field before its `=`."""
    return ".".join(field.path) + _SUFFIXES[field.transform]


def partition_sources(dataset: DatasetDefinition) -> tuple[str, ...]:
    """The fields of the dataset that determine its partitions, each once."""
    return tuple(dict.fromkeys(parse_partition(text).path[0] for text in dataset.partition_by))


def plain_names(partition_by: Sequence[str]) -> list[str]:
    """The untransformed partition fields."""
    return [field.path[0] for field in map(parse_partition, partition_by) if field.plain]


def source_type(path: Sequence[str], types: dict[str, DataType]) -> DataType:
    """The type of the field's source. Raises PartitionSyntaxError if there is no such field."""
    data_type: DataType | None = None
    for depth, name in enumerate(path):
        if data_type is not None and not isinstance(data_type, Struct):
            above = ".".join(path[:depth])
            raise PartitionSyntaxError(f"{above!r} is {data_type} and has no members")
        members = types if data_type is None else dict(data_type.members)
        if name not in members:
            where = f"{'.'.join(path[:depth])!r} has no member" if depth else "there is no field"
            raise PartitionSyntaxError(f"{where} {name!r}" + ("" if depth else " in the schema"))
        data_type = members[name]
    if data_type is None:
        raise PartitionSyntaxError("expected a field")
    return data_type


def check_transform(field: PartitionField, source: DataType) -> None:
    """Raises PartitionSyntaxError if the transform does not support values of this type."""
    is_time = isinstance(source, Timestamp)
    match field.transform:
        case Transform.IDENTITY | Transform.BUCKET if not may_be_key(source):
            raise PartitionSyntaxError(f"{source} has no exact equality; use another field, or a transform")
        case Transform.YEAR | Transform.MONTH | Transform.DAY if not is_time and source != DATE:
            raise PartitionSyntaxError(f"{field.transform.value} needs a date or a timestamp, not {source}")
        case Transform.HOUR if not is_time:
            raise PartitionSyntaxError(f"hour needs a timestamp, not {source}")
        case Transform.TRUNCATE if source != STRING and not isinstance(source, Integer):
            raise PartitionSyntaxError(f"truncate needs a string or an integer, not {source}")
