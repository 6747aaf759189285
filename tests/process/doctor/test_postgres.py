"""The checks of a real Postgres, with the logins of a deployment."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from app.infra.settings import Settings
from app.process.doctor.examine import Examined, examine
from app.process.doctor.postgres import service_checks
from app.process.doctor.values import Diagnosis, Verdict
from tests.support.postgres import TestServer

CHECKS = ["postgres", "clock", "roles", "row level security", "schema"]


@pytest.fixture
def name(postgres: TestServer) -> Iterator[str]:
    with postgres.fresh_database() as name:
        yield name


def settings_of(postgres: TestServer, name: str, **urls: str) -> Settings:
    return Settings(
        database_url=urls.get("database", postgres.application_url(name)),
        migration_database_url=postgres.owner_url(name),
        admin_database_url=postgres.admin_url(name),
        redis_url="redis://127.0.0.1:1/0",
    )


def faults(settings: Settings) -> dict[str, str]:
    return {each.name: each.detail for each in service_checks(settings) if each.verdict is not Verdict.OK}


def owner_runs(postgres: TestServer, name: str, statement: str) -> None:
    with postgres.administration(name) as connection:
        connection.execute(statement.encode())


def test_database_of_this_release_is_well(postgres: TestServer, name: str) -> None:
    settings = settings_of(postgres, name)
    found: list[Diagnosis] = list(examine(settings, Examined.DATABASE))
    assert [each.name for each in found] == [*CHECKS, "administrator"]
    assert {each.verdict for each in found} == {Verdict.OK}, found


def test_missing_columns_are_found_by_a_login_that_cannot_read_the_migrations(
    postgres: TestServer, name: str
) -> None:
    owner_runs(postgres, name, "ALTER TABLE workers DROP COLUMN executors")
    assert "lacks workers.executors" in faults(settings_of(postgres, name))["schema"]


def test_pending_migrations_are_found_by_the_owner(postgres: TestServer, name: str) -> None:
    owner_runs(postgres, name, "UPDATE alembic_version SET version_num = '0018'")
    found = {each.name: each for each in examine(settings_of(postgres, name), Examined.DEPLOYMENT)}
    assert found["migrations"].verdict is Verdict.FAILED
    assert "migrations are pending (0019" in found["migrations"].detail


def test_table_without_forced_row_security_is_named(postgres: TestServer, name: str) -> None:
    owner_runs(postgres, name, "ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY")
    assert "not forced for jobs" in faults(settings_of(postgres, name))["row level security"]


def test_login_of_the_owner_is_a_risk_for_the_service(postgres: TestServer, name: str) -> None:
    found = faults(settings_of(postgres, name, database=postgres.owner_url(name)))
    assert "bypasses row level security" in found["roles"]


def test_login_without_the_roles_is_refused(postgres: TestServer, name: str) -> None:
    owner_runs(postgres, name, "CREATE ROLE stranger LOGIN PASSWORD 'p@ss/w%rd'")
    try:
        url = psycopg.conninfo.make_conninfo(postgres.owner_url(name))
        parts = psycopg.conninfo.conninfo_to_dict(url)
        # The password travels beside the URL, with characters that have a meaning in URLs.
        settings = Settings(
            database_url=f"postgresql://stranger@{parts['host']}:{parts['port']}/{name}",
            database_password="p@ss/w%rd",
            redis_url="redis://127.0.0.1:1/0",
        )
        assert "may not take headwater_app, headwater_monitor, headwater_relay" in faults(settings)["roles"]
    finally:
        owner_runs(postgres, name, "DROP ROLE stranger")


def test_empty_and_missing_servers_are_reported_without_a_trace(postgres: TestServer) -> None:
    with postgres.fresh_database(template="template0") as name:
        assert "is empty" in faults(settings_of(postgres, name))["schema"]
    gone = Settings(database_url="postgresql://u@127.0.0.1:1/d", redis_url="redis://127.0.0.1:1/0")
    [found] = service_checks(gone)
    assert found.verdict is Verdict.FAILED
    assert "the server of HEADWATER_DATABASE_URL does not answer" in found.detail
