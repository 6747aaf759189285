"""The scopes of keys that earlier releases made."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

from app.access.tenants.bootstrap import migrate
from tests.support.postgres import TestServer

TENANT = "11111111-1111-7111-8111-111111111111"
SCOPES = {
    ("operator", "read", "write"): ["manage", "operate", "read", "write"],
    ("read", "write"): ["manage", "read", "write"],
    ("operator",): ["manage", "operate"],
    ("read",): ["read"],
}


@pytest.mark.parametrize("before", SCOPES)
def test_keys_keep_what_they_could_do(postgres: TestServer, before: tuple[str, ...]) -> None:
    with postgres.fresh_database(template="template0") as name:
        url = make_url(postgres.owner_url(name)).set(drivername="postgresql+psycopg")
        with create_engine(url, poolclass=NullPool).connect() as connection:
            migrate(connection, "0006")
            with postgres.administration(name) as owner:
                owner.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'acme')", (TENANT,))
                owner.execute(
                    "INSERT INTO api_keys (tenant_id, id, digest, scopes, name) "
                    "VALUES (%s, gen_random_uuid(), sha256('k'), %s, 'k')",
                    (TENANT, list(before)),
                )
            migrate(connection)
        with postgres.administration(name) as owner:
            row = owner.execute("SELECT scopes, grants, expires_at, revoked_at FROM api_keys").fetchone()
            assert row == (SCOPES[before], None, None, None)
            forced = owner.execute(
                "SELECT relforcerowsecurity FROM pg_class WHERE relname = 'api_keys'"
            ).fetchone()
            assert forced == (True,)
            assert owner.execute("SELECT state, quotas FROM tenants").fetchone() == ("active", {})
