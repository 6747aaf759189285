"""JSON that a command reads from a file, from the standard input, or from an argument."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode

Kind = TypeVar("Kind")


def name_of(file: Path) -> str:
    """The name of a file in a sentence."""
    return "the standard input" if str(file) == "-" else str(file)


def content(file: Path) -> bytes:
    """The bytes of a file; `-` is the standard input. Raises CommandError."""
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise CommandError(f"{name_of(file)} cannot be read: {error.strerror}", ExitCode.USAGE) from error


def json_of(file: Path) -> dict[str, Any]:
    """The object in a file. Raises CommandError."""
    try:
        return msgspec.json.decode(content(file), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{name_of(file)} is not a JSON object: {error}", ExitCode.USAGE) from error


def document(file: Path, kind: type[Kind], what: str) -> Kind:
    """The value in a file; `what` it is, such as `a source`. Raises CommandError, also for a member that it has not."""
    try:
        sent = msgspec.json.decode(content(file), type=dict[str, Any])
        found = msgspec.convert(sent, kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise CommandError(f"{name_of(file)} is not the JSON of {what}: {error}", ExitCode.USAGE) from error
    unknown = next(_unknown(sent, found), None)
    if unknown is not None:
        raise CommandError(f"{name_of(file)}: {what} has no member {unknown!r}", ExitCode.USAGE)
    return found


def json_object(text: str, flag: str) -> dict[str, Any]:
    """The object in the value of a flag. Raises CommandError."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{flag} is not a JSON object: {error}", ExitCode.USAGE) from error


def _unknown(sent: dict[str, Any], value: Any) -> Any:
    """The members that the form of a value has not, also in the values in it."""
    names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    for name, member in sent.items():
        if name not in names:
            yield name
        else:
            yield from _unknown_below(member, getattr(value, names[name]))


def _unknown_below(sent: Any, value: Any) -> Any:
    if isinstance(value, msgspec.Struct) and isinstance(sent, dict):
        yield from _unknown(sent, value)
    elif isinstance(value, tuple) and isinstance(sent, list):
        for below, each in zip(sent, value, strict=False):
            yield from _unknown_below(below, each)
