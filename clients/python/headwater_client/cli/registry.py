"""The commands by name, each with the function that runs it and the line that lists it.

Import paths instead of imports: only the module of the command that runs is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Command(NamedTuple):
    """A command: `target` is its function as `module:name`, `text` the line that lists it."""

    target: str
    text: str


class Group(NamedTuple):
    """Commands below one name, and the line that lists them."""

    text: str
    commands: Mapping[str, Command]


Commands = Mapping[str, "Command | Group"]

LIST = "list"
"""The command of a group that runs if no other is named: `headwater keys` lists keys."""

_HELP = ("--help", "-h")
_HERE = "headwater_client.cli.commands"

COMMANDS: Commands = {
    "login": Command(f"{_HERE}.login:login", "Store the URL and a key of a service as a profile."),
    "status": Command(
        f"{_HERE}.status:status", "Show which service is used, with which key, and whether it answers."
    ),
    "usage": Command(f"{_HERE}.usage:usage", "Print what a tenant has used, day by day."),
    "audit": Command(f"{_HERE}.audit:audit", "Print who requested what, the newest first."),
    "sources": Group(
        "Data that arrive by themselves.",
        {
            LIST: Command(f"{_HERE}.sources:list_sources", "List sources by name."),
            "create": Command(f"{_HERE}.sources:create", "Register a source."),
            "show": Command(f"{_HERE}.sources:show", "Print a source."),
            "run": Command(f"{_HERE}.sources:run", "Start a round now, and wait for its rows."),
            "pause": Command(f"{_HERE}.sources:pause", "Pause a source."),
            "resume": Command(f"{_HERE}.sources:resume", "Resume a source."),
            "reset": Command(f"{_HERE}.sources:reset", "Move a source to a position."),
            "delete": Command(f"{_HERE}.sources:delete", "Delete a source."),
        },
    ),
    "keys": Group(
        "API keys of a tenant.",
        {
            LIST: Command(f"{_HERE}.keys:list_keys", "List API keys, without their texts."),
            "create": Command(f"{_HERE}.keys:create", "Make an API key, and print it."),
            "show": Command(f"{_HERE}.keys:show", "Print an API key, without its text."),
            "revoke": Command(f"{_HERE}.keys:revoke", "Revoke an API key, at once and for good."),
        },
    ),
    "tenants": Group(
        "Tenants of the installation, for operators.",
        {
            LIST: Command(f"{_HERE}.tenants:list_tenants", "List the tenants of the installation."),
            "create": Command(f"{_HERE}.tenants:create", "Make a tenant, and print its first key."),
            "show": Command(f"{_HERE}.tenants:show", "Print a tenant."),
            "suspend": Command(f"{_HERE}.tenants:suspend", "Refuse the requests of a tenant that write."),
            "resume": Command(f"{_HERE}.tenants:resume", "Let a tenant write again."),
            "delete": Command(f"{_HERE}.tenants:delete", "Delete a tenant with all its data."),
            "quotas": Command(f"{_HERE}.tenants:quotas", "Print and change the quotas of a tenant."),
        },
    ),
}


def merged(parts: Iterable[Commands]) -> dict[str, Command | Group]:
    """The commands of several distributions. Raises ValueError for a name that two of them have."""
    found: dict[str, Command | Group] = {}
    for part in parts:
        for name, command in part.items():
            if name in found:
                raise ValueError(f"two distributions have the command {name}")
            found[name] = command
    return found


def completed(words: Sequence[str], commands: Commands) -> list[str]:
    """The words, with `list` after the name of a group that no command of it follows."""
    found = commands.get(words[0]) if words else None
    if isinstance(found, Group) and LIST in found.commands:
        following = words[1:2]
        if not following or (following[0] not in found.commands and following[0] not in _HELP):
            return [words[0], LIST, *words[1:]]
    return list(words)
