"""The commands by name, each with the function that runs it and the line that lists it.

Import paths instead of imports: only the module of the command that runs is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple


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

SECTIONS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("Connection", ("login", "logout", "profiles", "status", "console")),
    (
        "Data",
        ("ls", "overview", "show", "create", "rename", "schema", "delete", "write", "rows", "get", "tail"),
    ),
    ("Versions", ("log", "diff", "undo", "restore", "verify", "savepoint", "savepoints", "tags")),
    (
        "Around a dataset",
        ("lineage", "views", "sources", "webhooks", "listen", "exports", "shares", "consumers", "quarantine"),
    ),
    ("Storage", ("partitions", "files", "compact", "clean", "cluster", "analyze")),
    ("Operation", ("jobs", "keys", "tenants", "usage", "audit", "reap", "api")),
)
"""The sections of the list of commands, with the names of their commands."""
OTHERS: Final = "Server"
"""The section of commands that no other has."""

COMMANDS: Commands = {
    "login": Command(f"{_HERE}.login:login", "Store the URL and a key of a service as a profile."),
    "logout": Command(f"{_HERE}.login:logout", "Remove a profile with its key."),
    "profiles": Command(f"{_HERE}.login:list_profiles", "List profiles, without their keys."),
    "status": Command(
        f"{_HERE}.status:status", "Show which service is used, with which key, and whether it answers."
    ),
    "console": Command(f"{_HERE}.console:console", "Print a link that signs in to the console once."),
    "ls": Command(f"{_HERE}.data.datasets:list_datasets", "List datasets by name."),
    "show": Command(
        f"{_HERE}.data.datasets:show", "Print a dataset: its columns, its size, and how far its feed is."
    ),
    "create": Command(f"{_HERE}.data.datasets:create", "Register a dataset."),
    "rename": Command(f"{_HERE}.data.datasets:rename", "Give a dataset another name."),
    "schema": Group(
        "Columns of a dataset.",
        {
            LIST: Command(f"{_HERE}.data.schema:list_columns", "List the columns of a dataset."),
            "add": Command(f"{_HERE}.data.schema:add", "Add columns."),
            "drop": Command(f"{_HERE}.data.schema:drop", "Drop columns."),
            "rename": Command(f"{_HERE}.data.schema:rename", "Rename a column, which keeps its values."),
        },
    ),
    "delete": Command(f"{_HERE}.data.datasets:delete", "Delete a dataset with its rows and its feed."),
    "write": Command(
        f"{_HERE}.data.write:write", "Write the rows of a file, and wait until they are committed."
    ),
    "rows": Command(f"{_HERE}.data.rows:rows", "Print rows of a table."),
    "get": Command(f"{_HERE}.data.rows:get", "Print the row of a key, or how it came to be."),
    "tail": Command(f"{_HERE}.data.tail:tail", "Print changes of a dataset, and follow them with -f."),
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
    "overview": Command(f"{_HERE}.overview:overview", "Print all datasets in numbers."),
    "lineage": Command(f"{_HERE}.lineage:lineage", "Print where rows come from and go to."),
    "views": Group(
        "Datasets that are derived by SQL.",
        {
            LIST: Command(f"{_HERE}.views:list_views", "List views by name."),
            "create": Command(f"{_HERE}.views:create", "Register a view, by its SQL, or by a JSON body."),
            "show": Command(f"{_HERE}.views:show", "Print a view."),
            "refresh": Command(f"{_HERE}.views:refresh", "Refresh a view now."),
            "pause": Command(f"{_HERE}.views:pause", "Pause the automatic refreshes of a view."),
            "resume": Command(f"{_HERE}.views:resume", "Resume the automatic refreshes of a view."),
            "delete": Command(f"{_HERE}.views:delete", "Delete a view with its rows and its feed."),
        },
    ),
    "webhooks": Group(
        "Feeds that are sent to URLs.",
        {
            LIST: Command(f"{_HERE}.webhooks:list_webhooks", "List webhooks, the newest first."),
            "create": Command(f"{_HERE}.webhooks:create", "Register a webhook, and print its secret."),
            "show": Command(f"{_HERE}.webhooks:show", "Print a webhook."),
            "test": Command(f"{_HERE}.webhooks:send_test", "Send a test message now."),
            "pause": Command(f"{_HERE}.webhooks:pause", "Pause a webhook."),
            "resume": Command(f"{_HERE}.webhooks:resume", "Resume a webhook."),
            "rotate": Command(f"{_HERE}.webhooks:rotate", "Make another secret, and print it."),
            "deliveries": Command(f"{_HERE}.webhooks:deliveries", "List the messages of a webhook."),
            "attempts": Command(f"{_HERE}.webhooks:attempts", "List the latest attempts with their answers."),
            "redeliver": Command(f"{_HERE}.webhooks:redeliver", "Send messages again."),
            "delete": Command(f"{_HERE}.webhooks:delete", "Delete a webhook."),
        },
    ),
    "listen": Command(
        f"{_HERE}.listen:listen", "Send changes to a program on this machine, as a webhook would."
    ),
    "exports": Group(
        "Feeds and rows that are written to files.",
        {
            LIST: Command(f"{_HERE}.exports:list_exports", "List the exports of a dataset, or of all."),
            "create": Command(
                f"{_HERE}.exports:create", "Register an export, which runs at once or at its times."
            ),
            "show": Command(f"{_HERE}.exports:show", "Print an export."),
            "run": Command(f"{_HERE}.exports:run", "Export what has changed since the last run."),
            "runs": Command(f"{_HERE}.exports:runs", "List the runs of an export, the latest first."),
            "download": Command(f"{_HERE}.exports:download", "Download the files of a run."),
            "pause": Command(f"{_HERE}.exports:pause", "Pause an export with a schedule."),
            "resume": Command(f"{_HERE}.exports:resume", "Resume an export."),
            "delete": Command(f"{_HERE}.exports:delete", "Delete an export, and its runs with their files."),
        },
    ),
    "shares": Group(
        "Datasets for readers outside of the tenant.",
        {
            LIST: Command(f"{_HERE}.shares:list_shares", "List shares by name."),
            "create": Command(f"{_HERE}.shares:create", "Make a share of datasets."),
            "show": Command(f"{_HERE}.shares:show", "Print a share."),
            "recipients": Command(f"{_HERE}.shares:recipients", "List the recipients of a share by name."),
            "add-recipient": Command(
                f"{_HERE}.shares:add_recipient", "Make a recipient, and print its profile."
            ),
            "rotate": Command(f"{_HERE}.shares:rotate", "Make another token of a recipient."),
            "remove-recipient": Command(f"{_HERE}.shares:remove_recipient", "Delete a recipient."),
            "delete": Command(f"{_HERE}.shares:delete", "Delete a share and its recipients."),
        },
    ),
    "consumers": Group(
        "Positions in feeds.",
        {
            LIST: Command(f"{_HERE}.consumers:list_consumers", "List who follows the feed of a dataset."),
            "create": Command(f"{_HERE}.consumers:create", "Make a consumer."),
            "show": Command(f"{_HERE}.consumers:show", "Print a consumer."),
            "reset": Command(f"{_HERE}.consumers:reset", "Move a consumer to another position."),
            "delete": Command(f"{_HERE}.consumers:delete", "Delete a consumer."),
        },
    ),
    "quarantine": Group(
        "Bad records of writes.",
        {
            LIST: Command(f"{_HERE}.quarantine:list_records", "List the bad records of a dataset."),
            "redrive": Command(f"{_HERE}.quarantine:redrive", "Write the bad records of a job once more."),
            "discard": Command(f"{_HERE}.quarantine:discard", "Delete the bad records of a job for good."),
        },
    ),
    "partitions": Group(
        "Partitions of a table.",
        {
            LIST: Command(f"{_HERE}.tables:list_partitions", "List the partitions of a version."),
            "done": Command(f"{_HERE}.tables:end_partitions", "Mark partitions as done."),
        },
    ),
    "files": Command(f"{_HERE}.tables:files", "List the data files of a version."),
    "compact": Command(f"{_HERE}.tables:compact", "Fold logs and small files of a table into large ones."),
    "clean": Command(f"{_HERE}.tables:clean", "Expire old versions of a table."),
    "cluster": Command(f"{_HERE}.tables:cluster", "Order the rows of a table by columns."),
    "analyze": Command(f"{_HERE}.tables:analyze", "Count the distinct values of each column."),
    "api": Command(f"{_HERE}.api:api", "Send any request with the key, and print the response."),
    "usage": Command(f"{_HERE}.administration.usage:usage", "Print what a tenant has used, day by day."),
    "reap": Command(f"{_HERE}.administration.reap:reap", "Delete the files of deleted datasets now."),
    "audit": Command(f"{_HERE}.administration.audit:audit", "Print who requested what, the newest first."),
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
            LIST: Command(f"{_HERE}.administration.keys:list_keys", "List API keys, without their texts."),
            "create": Command(f"{_HERE}.administration.keys:create", "Make an API key, and print it."),
            "show": Command(f"{_HERE}.administration.keys:show", "Print an API key, without its text."),
            "revoke": Command(
                f"{_HERE}.administration.keys:revoke", "Revoke an API key, at once and for good."
            ),
        },
    ),
    "tenants": Group(
        "Tenants of the installation, for operators.",
        {
            LIST: Command(
                f"{_HERE}.administration.tenants:list_tenants", "List the tenants of the installation."
            ),
            "create": Command(
                f"{_HERE}.administration.tenants:create", "Make a tenant, and print its first key."
            ),
            "show": Command(f"{_HERE}.administration.tenants:show", "Print a tenant."),
            "suspend": Command(
                f"{_HERE}.administration.tenants:suspend", "Refuse the requests of a tenant that write."
            ),
            "resume": Command(f"{_HERE}.administration.tenants:resume", "Let a tenant write again."),
            "delete": Command(f"{_HERE}.administration.tenants:delete", "Delete a tenant with all its data."),
            "quotas": Command(
                f"{_HERE}.administration.tenants:quotas", "Print and change the quotas of a tenant."
            ),
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
