"""The commands by name. Each is in its own module, which is only imported when the command runs."""

import sys
from importlib.metadata import version

from cyclopts import App

from app.infra.settings import SettingsError
from clients.cli.failure import CommandError

OURS = ("app", "clients", "headwater_client", "migrations", "workers")

# Import paths instead of imports: `headwater up` must not wait for the imports of the database toolkit, nor `init` for
# those of Spark.
COMMANDS = {
    "up": ("clients.cli.up:up", "Start everything on this machine and keep it running."),
    "init": ("clients.cli.init:init", "Migrate the database's schema; create the first tenant and key."),
    "doctor": ("clients.cli.doctor:doctor", "Check everything that the service needs."),
    "backup": ("clients.cli.backup:backup", "Copy the database, and by a command the storage."),
    "restore": ("clients.cli.backup:restore", "Load a backup into an empty database."),
    "verify": ("clients.cli.backup:verify", "Check that the storage has the files of all datasets."),
    "audit": ("clients.cli.audit:audit", "Print who requested what."),
    "export": ("clients.cli.export:export", "Copy all of a tenant's data to a folder."),
    "openapi": ("clients.cli.openapi:openapi", "Print the OpenAPI schema."),
    "usage": ("clients.cli.usage:usage", "Print what a tenant has used, day by day."),
    "models": ("clients.cli.models:models", "Write the values of the Python client."),
}
GROUPS = {
    "tenants": (
        "Make, list, suspend, resume and delete tenants, with an operator's key.",
        {
            "list": "clients.cli.tenants:list_tenants",
            "create": "clients.cli.tenants:create",
            "show": "clients.cli.tenants:show",
            "suspend": "clients.cli.tenants:suspend",
            "resume": "clients.cli.tenants:resume",
            "delete": "clients.cli.tenants:delete",
            "quotas": "clients.cli.usage:quotas",
        },
    ),
    "sources": (
        "Register, list, pause, resume, reset and delete sources.",
        {
            "list": "clients.cli.sources:list_sources",
            "create": "clients.cli.sources:create",
            "show": "clients.cli.sources:show",
            "pause": "clients.cli.sources:pause",
            "resume": "clients.cli.sources:resume",
            "reset": "clients.cli.sources:reset",
            "delete": "clients.cli.sources:delete",
        },
    ),
    "table-keys": (
        "The secret of the keys with which clients read the files of tables.",
        {"rotate": "clients.cli.table_keys:rotate"},
    ),
    "keys": (
        "Make, list and revoke API keys.",
        {
            "list": "clients.cli.keys:list_keys",
            "create": "clients.cli.keys:create",
            "revoke": "clients.cli.keys:revoke",
        },
    ),
}
DEMOS = {
    "flights": (
        "clients.demo.flights:flights",
        "Load a year of flights and follow the feed of their changes.",
    ),
    "trips": (
        "clients.demo.trips:trips",
        "Write made-up trips to a running service in every way of a quickstart, and read them back.",
    ),
}


def build() -> App:
    """The command line application."""
    headwater = App(
        name="headwater",
        version=lambda: version("headwater"),
        help="A multi-tenant lakehouse behind one REST API.",
    )
    for name, (target, text) in COMMANDS.items():
        headwater.command(target, name=name, help=text)
    for name, (text, commands) in GROUPS.items():
        group = App(name=name, help=text)
        for command, target in commands.items():
            group.command(target, name=command)
        headwater.command(group)
    demo = App(name="demo", help="Demonstrations with real data.")
    for name, (target, text) in DEMOS.items():
        demo.command(target, name=name, help=text)
    headwater.command(demo)
    return headwater


def _what_is_missing(error: ImportError) -> str:
    """Name the missing part of the installation. Any other failed import is a bug."""
    cause = error.__cause__ or error  # the command line's library wraps the exception of the import
    if not isinstance(cause, ModuleNotFoundError) or cause.name is None:
        raise error
    if cause.name.partition(".")[0] in OURS:
        return f"the command needs the module {cause.name}, which this installation does not have"
    return f"the package {cause.name} is missing; `make setup` installs it"


def main() -> None:
    """Run the command of the arguments."""
    try:
        build()()
    except (CommandError, SettingsError) as error:
        sys.exit(f"headwater: {error}")
    except ImportError as error:
        sys.exit(f"headwater: {_what_is_missing(error)}")
    except KeyboardInterrupt:
        sys.exit(130)
