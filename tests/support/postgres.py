"""One Postgres server for a whole test run; databases are copies of a migrated template."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

import psutil
import psycopg
from psycopg import sql
from sqlalchemy import make_url

from app.access.tenants.bootstrap import initialise
from app.infra.runtime.postgres import EmbeddedPostgres

TEMPLATE = "template_headwater"


class TestServer:
    """A running server. `owner_url` is a superuser's, `application_url` that of the service's login, `admin_url` that
    of the administration's.
    """

    __test__ = False

    def __init__(self, embedded: EmbeddedPostgres) -> None:
        self._embedded = embedded
        self._numbers = count(1)

    @classmethod
    @contextmanager
    def running(cls, directory: Path) -> Iterator[Self]:
        """Starts a server below `directory` and makes the template."""
        with EmbeddedPostgres(directory, durable=False) as embedded:
            server = cls(embedded)
            server._create(TEMPLATE, "template0")
            initialise(
                server.owner_url(TEMPLATE),
                application_url=server.application_url(TEMPLATE),
                administration_url=server.admin_url(TEMPLATE),
            )
            yield server

    def owner_url(self, database: str) -> str:
        return _with_database(self._embedded.owner_url, database)

    def application_url(self, database: str) -> str:
        return _with_database(self._embedded.url, database)

    def admin_url(self, database: str) -> str:
        return _with_database(self._embedded.admin_url, database)

    @contextmanager
    def fresh_database(self, *, template: str = TEMPLATE) -> Iterator[str]:
        """The name of a database of its own for the caller: migrated, unless made from `template0`."""
        name = f"test_{next(self._numbers)}"
        self._create(name, template)
        yield name
        with self.administration() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All processes of the server stand still (SIGSTOP) meanwhile; its connections stay open."""
        with self.administration() as connection:
            [(pid_file,)] = connection.execute(
                "SELECT current_setting('data_directory') || '/postmaster.pid'"
            ).fetchall()
        leader = psutil.Process(int(Path(pid_file).read_text(encoding="utf-8").split()[0]))
        leader.suspend()
        stopped = leader.children(recursive=True)
        for process in stopped:
            process.suspend()
        try:
            yield
        finally:
            for process in [*stopped, leader]:
                process.resume()

    @contextmanager
    def administration(self, database: str = "postgres") -> Iterator[psycopg.Connection]:
        """A superuser's connection, each statement its own transaction."""
        with psycopg.connect(self.owner_url(database), autocommit=True) as connection:
            yield connection

    def _create(self, name: str, template: str) -> None:
        with self.administration() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )


def _with_database(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)
