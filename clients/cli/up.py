"""`headwater up`."""

from pathlib import Path

from app.infra.runtime.account import AccountError
from app.infra.runtime.data_directory import DataDirectoryError
from app.infra.runtime.java import JavaError
from app.infra.runtime.loopback import NoPortError
from app.infra.runtime.postgres import PostgresError
from app.infra.runtime.stack import StackError, run
from app.infra.runtime.supervisor import StartError
from app.infra.runtime.valkey import ValkeyError
from headwater_client.cli.failure import CommandError, ExitCode

FAILURES = (
    AccountError,
    DataDirectoryError,
    JavaError,
    NoPortError,
    PostgresError,
    ValkeyError,
    StackError,
    StartError,
)


def up(*, port: int = 8080, data: Path = Path(".headwater"), new_operator_key: bool = False) -> None:
    """Start all processes of the service on this machine and run them until Ctrl-C.

    PostgreSQL and Valkey are embedded, except those that HEADWATER_DATABASE_URL and HEADWATER_REDIS_URL specify.


    Parameters
    ----------
    port
        The port on 127.0.0.1; 0 selects any free port.
    data
        The folder for all data. Once the service is ready, headwater.json there has the URL and the key.
    new_operator_key
        Create one more operator key in the data folder, because the earlier one is lost. Revoke that one afterwards.
    """
    if not 0 <= port <= 65535:
        raise CommandError(f"--port must be from 0 to 65535, not {port}", ExitCode.USAGE)
    try:
        run(port, data, new_operator_key=new_operator_key)
    except FAILURES as error:
        raise CommandError(str(error)) from error
