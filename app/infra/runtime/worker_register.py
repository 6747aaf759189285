"""Whether a worker has reported since a time, from the register of processes in Postgres.

The API would answer the same question with all checks of the service, each of which takes time from the worker that
starts. The toolkit of the service is not used: it would stay in the memory of the supervisor.
"""

import contextlib
from datetime import datetime

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_CONNECT_SECONDS = 2
_CLOCK = "SELECT clock_timestamp()"
_REPORTED = "SELECT EXISTS (SELECT FROM workers WHERE kind = 'worker' AND started_at > %s)"


class WorkerRegister:
    """The workers that have reported for the first time since this was made."""

    def __init__(self, database_url: str, password: str | None = None) -> None:
        """`database_url`: of the login of the service. `password`: its password, if the URL has none."""
        self._url = database_url
        if password is not None and "password" not in conninfo_to_dict(database_url):
            self._url = make_conninfo(database_url, password=password)
        self._connection: psycopg.Connection | None = None
        self._since: datetime | None = None
        self.has_worker()

    def has_worker(self) -> bool:
        """Whether there is one. False while the database does not answer. Closes the connection with the answer yes."""
        try:
            connection = self._connected()
            if self._since is None:
                [self._since] = connection.execute(_CLOCK).fetchone() or [None]
                return False
            [reported] = connection.execute(_REPORTED, (self._since,)).fetchone() or [False]
        except psycopg.Error:
            self.close()
            return False
        if reported:
            self.close()
        return bool(reported)

    def close(self) -> None:
        """Closes the connection; the next question opens another one."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                application_name="headwater up",
                # Only this role sees the register.
                options=f"-c role=headwater_relay -c statement_timeout={_CONNECT_SECONDS}s",
            )
        return self._connection
