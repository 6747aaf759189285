"""The secrets of the deployment in Postgres."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from sqlalchemy import delete, func, insert, select, text

from app.features.objects.tables import table_key_secrets
from app.infra.db.session import Database

_SECRET_BYTES: Final = 32
# The one that signs and the one before.
_GENERATIONS: Final = 2


class TableKeySecretStore:
    """The secrets from which keys for tables are derived."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self) -> Mapping[int, bytes]:
        """The secrets by generation; the greatest one signs. Raises Unavailable."""
        with self._database.relay() as connection:
            rows = connection.execute(select(table_key_secrets.c.generation, table_key_secrets.c.secret))
            return {row.generation: row.secret for row in rows}

    def rotate(self) -> int:
        """Makes another generation, which signs from now on; keys of the one before are still accepted.

        Returns its number. Raises Unavailable.
        """
        generations = table_key_secrets.c.generation
        with self._database.relay() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": 0x5EC2E7})
            latest = connection.execute(select(func.coalesce(func.max(generations), 0))).scalar_one()
            row = {"generation": latest + 1, "secret": secrets.token_bytes(_SECRET_BYTES)}
            connection.execute(insert(table_key_secrets).values(row))
            connection.execute(delete(table_key_secrets).where(generations <= latest + 1 - _GENERATIONS))
        return int(latest) + 1
