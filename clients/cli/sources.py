"""`headwater sources …`."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from clients.cli.failure import CommandError
from clients.cli.service import print_table, service
from headwater_client.models import CreateSource, CreateTable, Source


def list_sources() -> None:
    """List sources by name."""
    with service() as client:
        rows = [
            (each.name, each.kind, each.dataset.name, each.state, each.rounds, _error(each))
            for each in client.sources()
        ]
    print_table(("NAME", "KIND", "DATASET", "STATE", "ROUNDS", "ERROR"), rows)


def create(file: Path) -> None:
    """Register a source.

    Parameters
    ----------
    file
        A file with the JSON body of POST /sources; - reads the standard input.
    """
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    try:
        sent = msgspec.json.decode(text, type=dict[str, Any])
        new = msgspec.convert(sent, CreateSource)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} is not the JSON of a source: {error}") from error
    unknown = [*_unknown(sent, CreateSource), *_unknown(sent.get("create") or {}, CreateTable)]
    if unknown:
        raise CommandError(f"{file}: a source has no member {unknown[0]!r}")
    with service() as client:
        made = client.create_source(new)
    print(f"Source {made.name} has the id {made.id}.")


def show(source: str) -> None:
    """Print a source as JSON: its settings, its position, its last round and its last error.

    Parameters
    ----------
    source
        The id or the name of the source.
    """
    with service() as client:
        found = client.get_source(source)
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


def pause(source: str) -> None:
    """Pause a source. A round that runs is finished.

    Parameters
    ----------
    source
        The id or the name of the source.
    """
    with service() as client:
        print(_stated(client.pause_source(source)))


def resume(source: str) -> None:
    """Resume a source, also after it has failed or finished.

    Parameters
    ----------
    source
        The id or the name of the source.
    """
    with service() as client:
        print(_stated(client.pause_source(source, paused=False)))


def reset(source: str, *, position: str | None = None) -> None:
    """Move a source to a position, after which it reads everything again.

    Parameters
    ----------
    source
        The id or the name of the source.
    position
        The position as a JSON object, in the form that `show` prints; by default the beginning.
    """
    try:
        wanted = {} if position is None else msgspec.json.decode(position, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CommandError(f"--position is not a JSON object: {error}") from error
    with service() as client:
        moved = client.reset_source(source, wanted)
    print(f"Source {moved.name} is at {msgspec.json.encode(moved.position).decode()}.")


def delete(source: str) -> None:
    """Delete a source. Its dataset and its rows stay.

    Parameters
    ----------
    source
        The id or the name of the source.
    """
    with service() as client:
        client.delete_source(source)
    print(f"Source {source} is deleted.")


def _unknown(sent: dict[str, Any], form: type[msgspec.Struct]) -> list[str]:
    return sorted(sent.keys() - set(form.__struct_encode_fields__))


def _stated(source: Source) -> str:
    return f"Source {source.name} is {source.state}."


def _error(source: Source) -> str | None:
    return None if source.last_error is None else str(source.last_error.get("title"))
