"""What the server adds to the command line, as an entry point of `headwater.commands`."""

from headwater_client.cli.registry import Command, Commands, Group

COMMANDS: Commands = {
    "up": Command("clients.cli.up:up", "Start everything on this machine and keep it running."),
    "init": Command(
        "clients.cli.init:init", "Migrate the database's schema; create the first tenant and key."
    ),
    "doctor": Command("clients.cli.doctor:doctor", "Check everything that the service needs."),
    "backup": Command("clients.cli.backup:backup", "Copy the database, and by a command the storage."),
    "export": Command("clients.cli.export:export", "Copy all of a tenant's data to a folder."),
    "openapi": Command("clients.cli.openapi:openapi", "Print the OpenAPI schema."),
    "server": Group(
        "What only the machines of the service can do.",
        {
            "restore": Command("clients.cli.backup:restore", "Load a backup into an empty database."),
            "verify": Command(
                "clients.cli.backup:verify", "Check that the storage has the files of all datasets."
            ),
        },
    ),
    "table-keys": Group(
        "The secret of the keys with which clients read the files of tables.",
        {"rotate": Command("clients.cli.table_keys:rotate", "Make another secret for these keys.")},
    ),
    "demo": Group(
        "Demonstrations with real data.",
        {
            "flights": Command(
                "clients.demo.flights:flights",
                "Load a year of flights and follow the feed of their changes.",
            ),
            "trips": Command(
                "clients.demo.trips:trips",
                "Write made-up trips to a running service in every way of a quickstart, and read them back.",
            ),
        },
    ),
}
