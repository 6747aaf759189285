"""A full disk of Postgres: the errors of transactions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import text

from app.infra.db.session import Database
from app.infra.errors import DatabaseFull, Unavailable
from app.infra.identifiers import new_id
from tests.support.postgres import TestServer

RAISES = "DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{sqlstate}'; END $$"
FULL = "The disk of the database is full"


def test_a_full_disk_is_an_error_of_its_own(database: Database) -> None:
    with pytest.raises(DatabaseFull, match=FULL), database.tenant(new_id()) as connection:
        connection.execute(text(RAISES.format(message="could not extend file", sqlstate="53100")))


@pytest.mark.parametrize("sqlstate", ["53300", "57P01"])
def test_a_text_of_a_user_is_no_full_disk(database: Database, sqlstate: str) -> None:
    failing = text(RAISES.format(message="No space left on device", sqlstate=sqlstate))
    with (
        pytest.raises(Unavailable, match="does not answer") as failure,
        database.tenant(new_id()) as connection,
    ):
        connection.execute(failing)
    assert not isinstance(failure.value, DatabaseFull)


@pytest.fixture
def small_disk(postgres: TestServer) -> Iterator[str]:
    """The name of a tablespace on a file system of 4 MiB."""
    with TemporaryDirectory(prefix="headwater-tests-") as name:
        folder = Path(name)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", name], check=False).returncode:
            pytest.skip("mounting a file system is not permitted")
        try:
            with postgres.administration() as connection:
                [(data,)] = connection.execute("SELECT current_setting('data_directory')").fetchall()
                owner = Path(data).stat()
                os.chown(folder, owner.st_uid, owner.st_gid)
                connection.execute(f"CREATE TABLESPACE small_disk LOCATION '{folder}'".encode())
                connection.execute("GRANT CREATE ON TABLESPACE small_disk TO PUBLIC")
            yield "small_disk"
            with postgres.administration() as connection:
                connection.execute("DROP TABLESPACE small_disk")
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def test_a_disk_that_fills_up_refuses_writes_and_is_read(
    postgres: TestServer, database: Database, database_url: str, small_disk: str
) -> None:
    fill = text("INSERT INTO filled SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
    count = text("SELECT count(*) FROM filled")
    with postgres.administration(database_url.rsplit("/", 1)[1]) as owner:
        owner.execute(f"CREATE TABLE filled (content text) TABLESPACE {small_disk}".encode())
        owner.execute("GRANT ALL ON filled TO PUBLIC")
        with pytest.raises(DatabaseFull, match=FULL), database.tenant(new_id()) as connection:
            connection.execute(fill)
        with database.tenant(new_id()) as connection:
            assert connection.execute(count).scalar_one() == 0
        owner.execute("DROP TABLE filled")
