"""Postgres: its version, its clock, the logins, row level security and the migrations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from app.infra.db.examination import DatabaseUnreachable, Examination, Login, examination
from app.infra.db.session import ADMINISTRATOR_ROLE, APPLICATION_ROLE, MONITOR_ROLE, RELAY_ROLE
from app.infra.settings import Settings
from app.process.doctor.values import Diagnosis, failed, ok, warning
from app.process.tables import metadata
from migrations import revisions

POSTGRES_MIN: Final = 16
"""The oldest major version of PostgreSQL: memberships have the option SET since then."""
CLOCK_SECONDS_MAX: Final = 5.0
_NAMES_SHOWN: Final = 5

SERVICE_LOGIN: Final = "HEADWATER_DATABASE_URL"
OWNER_LOGIN: Final = "HEADWATER_MIGRATION_DATABASE_URL"
ADMINISTRATOR_LOGIN: Final = "HEADWATER_ADMIN_DATABASE_URL"


def server_fault(url: str, variable: str) -> Diagnosis | None:
    """What forbids to create the schema on the server of a URL; None if nothing does."""
    try:
        with examination(url) as server:
            diagnosis = version_check(server.server_major(), server.server_version())
    except DatabaseUnreachable as error:
        return failed("postgres", f"the server of {variable} does not answer: {error}")
    return None if diagnosis.verdict.value == "ok" else diagnosis


def service_checks(settings: Settings) -> list[Diagnosis]:
    """The checks with the login of the service."""
    try:
        with examination(settings.database_url) as server:
            version = version_check(server.server_major(), server.server_version())
            login = server.login({APPLICATION_ROLE, RELAY_ROLE, MONITOR_ROLE})
            return [
                version,
                clock_check(server.clock_ahead()),
                login_check(login, SERVICE_LOGIN),
                _row_security_check(server),
                schema_check(server.revision(), server.missing(_expected_columns()), revisions()),
            ]
    except DatabaseUnreachable as error:
        return [failed("postgres", f"the server of {SERVICE_LOGIN} does not answer: {error}")]


def owner_checks(settings: Settings) -> list[Diagnosis]:
    """The checks with the owner's login, if it is another one: the service may not read the last migration."""
    if settings.migration_database_url == settings.database_url:
        return []
    try:
        with examination(settings.migration_database_url) as server:
            missing = server.missing(_expected_columns())
            return [schema_check(server.revision(), missing, revisions(), name="migrations")]
    except DatabaseUnreachable as error:
        return [failed("migrations", f"the server of {OWNER_LOGIN} does not answer: {error}")]


def administrator_checks(settings: Settings) -> list[Diagnosis]:
    """The checks with the login that administers tenants and keys, if there is one."""
    if not settings.admin_database_url:
        return []
    try:
        with examination(settings.admin_database_url) as server:
            return [
                login_check(server.login({ADMINISTRATOR_ROLE}), ADMINISTRATOR_LOGIN, name="administrator")
            ]
    except DatabaseUnreachable as error:
        return [failed("administrator", f"the server of {ADMINISTRATOR_LOGIN} does not answer: {error}")]


def version_check(major: int, version: str) -> Diagnosis:
    """Whether the server is new enough."""
    if major < POSTGRES_MIN:
        return failed(
            "postgres", f"the server is PostgreSQL {version}; Headwater needs {POSTGRES_MIN} or later"
        )
    return ok("postgres", f"PostgreSQL {version}")


def clock_check(ahead: timedelta) -> Diagnosis:
    """Whether the clocks of the server and of this machine agree."""
    seconds = ahead.total_seconds()
    if abs(seconds) > CLOCK_SECONDS_MAX:
        side = "ahead of" if seconds > 0 else "behind"
        return warning(
            "clock",
            f"the clock of the database is {abs(seconds):.1f} s {side} the clock of this machine; "
            f"more than {CLOCK_SECONDS_MAX:g} s make times in logs and tokens wrong: synchronise them (NTP)",
        )
    return ok("clock", f"{abs(seconds):.2f} s between the database and this machine")


def login_check(login: Login, variable: str, *, name: str = "roles") -> Diagnosis:
    """Whether a login may do what it must, and no more."""
    if login.missing:
        return failed(
            name,
            f"the login {login.name} of {variable} may not take {_listed(login.missing)}: "
            f"run `headwater init` with this {variable}",
        )
    if login.superuser or login.bypasses_row_security:
        return warning(
            name,
            f"the login {login.name} of {variable} bypasses row level security "
            "(SUPERUSER or BYPASSRLS): use a login of its own for the service",
        )
    if login.own_table_count:
        return warning(
            name, f"the login {login.name} of {variable} owns the schema: use a login that owns nothing"
        )
    return ok(name, f"{login.name} has the roles that it needs, and no others")


def schema_check(
    revision: str | None, missing: list[str], migrations: list[str], *, name: str = "schema"
) -> Diagnosis:
    """Whether all migrations have run. `migrations`: those of this release, the first one first."""
    head = migrations[-1]
    if revision == "":
        return failed(name, "the database is empty: run `headwater init`")
    if revision is not None and revision not in migrations:
        return failed(
            name, f"the schema is at migration {revision}, which is of a later release; this one has {head}"
        )
    if revision is not None and revision != head:
        pending = migrations[migrations.index(revision) + 1 :]
        return failed(name, f"migrations are pending ({', '.join(pending)}): run `headwater init`")
    if missing:
        return failed(name, f"the schema lacks {_listed(missing)}: run `headwater init` of this release")
    return ok(name, f"the schema is that of this release (migration {head})")


def _row_security_check(server: Examination) -> Diagnosis:
    if open_tables := server.tables_without_row_security():
        return failed(
            "row level security",
            f"it is not forced for {_listed(open_tables)}: tenants could see each other's rows. "
            "Restore it: ALTER TABLE … ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        )
    return ok("row level security", "it is forced for all tables with rows of tenants")


def _expected_columns() -> dict[str, list[str]]:
    return {name: [column.name for column in table.columns] for name, table in metadata.tables.items()}


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMES_SHOWN} others" if len(every) > _NAMES_SHOWN else ""
    return ", ".join(every[:_NAMES_SHOWN]) + more
