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
    "ls": Command(f"{_HERE}.datasets:list_datasets", "List datasets by name."),
    "show": Command(
        f"{_HERE}.datasets:show", "Print a dataset: its columns, its size, and how far its feed is."
    ),
    "create": Command(f"{_HERE}.datasets:create", "Register a dataset."),
    "rename": Command(f"{_HERE}.datasets:rename", "Give a dataset another name."),
    "delete": Command(f"{_HERE}.datasets:delete", "Delete a dataset with its rows and its feed."),
    "write": Command(f"{_HERE}.write:write", "Write the rows of a file, and wait until they are committed."),
    "rows": Command(f"{_HERE}.rows:rows", "Print rows of a table."),
    "get": Command(f"{_HERE}.rows:get", "Print the row of a key, or how it came to be."),
    "tail": Command(f"{_HERE}.tail:tail", "Print changes of a dataset, and follow them with -f."),
    "log": Command(f"{_HERE}.versions:log", "Print what has changed a dataset, the latest first."),
    "diff": Command(f"{_HERE}.versions:diff", "Count the rows that differ between two versions."),
    "undo": Command(f"{_HERE}.versions:undo", "Take back the newest writes of a dataset."),
    "restore": Command(f"{_HERE}.versions:restore", "Give a dataset the rows of an earlier version."),
    "verify": Command(
        f"{_HERE}.versions:verify", "Fold the feed of a dataset, and compare it with its table."
    ),
    "savepoint": Command(f"{_HERE}.versions:savepoint", "Keep a version of a dataset for restores."),
    "savepoints": Group(
        "Versions that are kept for restores.",
        {
            LIST: Command(f"{_HERE}.versions:list_savepoints", "List the savepoints of a dataset by name."),
            "delete": Command(f"{_HERE}.versions:delete_savepoint", "End a savepoint."),
        },
    ),
    "tags": Group(
        "Names of versions, for reads.",
        {
            LIST: Command(f"{_HERE}.versions:list_tags", "List the tags of a dataset by name."),
            "create": Command(f"{_HERE}.versions:tag", "Name a version of a dataset for reads."),
            "delete": Command(f"{_HERE}.versions:delete_tag", "End a tag."),
        },
    ),
    "jobs": Group(
        "What the service does in the background.",
        {
            LIST: Command(f"{_HERE}.jobs:list_jobs", "List jobs, the newest first."),
            "show": Command(f"{_HERE}.jobs:show", "Print a job."),
            "wait": Command(f"{_HERE}.jobs:wait", "Wait for the end of a job."),
            "cancel": Command(f"{_HERE}.jobs:cancel", "Cancel a job that has not ended."),
        },
    ),
    "api": Command(f"{_HERE}.api:api", "Send any request with the key, and print the response."),
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
