"""Making a database ready: from nothing, again, and by two at once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from app.access.tenants.bootstrap import DEFAULT_TENANT_ID, OPERATOR_SCOPES, BootstrapResult, initialise
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import new_api_key
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from tests.support.postgres import TestServer
from tests.support.threads import together


@pytest.fixture
def empty(postgres: TestServer) -> Iterator[str]:
    """The name of a database with nothing in it."""
    with postgres.fresh_database(template="template0") as name:
        yield name


def scopes_of(url: str, api_key: str) -> frozenset[str]:
    database = Database(url)
    principal = CredentialStore(database).authenticate(api_key)
    database.close()
    assert principal is not None
    assert principal.tenant_id == DEFAULT_TENANT_ID
    return principal.scopes


def test_first_call_returns_the_operator_key_and_later_ones_do_not(postgres: TestServer, empty: str) -> None:
    owner, application = postgres.owner_url(empty), postgres.application_url(empty)
    first = initialise(owner, application_url=application)
    assert first.tenant_id == DEFAULT_TENANT_ID
    assert first.api_key is not None
    assert scopes_of(application, first.api_key) == set(OPERATOR_SCOPES)
    again = initialise(owner, application_url=application)
    assert again == BootstrapResult(tenant_id=DEFAULT_TENANT_ID, api_key=None)
    assert first.api_key not in repr(first)


def test_provided_key_is_used_once(postgres: TestServer, empty: str) -> None:
    provided_key = new_api_key()
    assert initialise(postgres.owner_url(empty), api_key=provided_key).api_key == provided_key
    assert initialise(postgres.owner_url(empty), api_key=provided_key).api_key is None
    assert initialise(postgres.owner_url(empty), api_key=new_api_key()).api_key is None
    assert scopes_of(postgres.owner_url(empty), provided_key) == set(OPERATOR_SCOPES)


def test_malformed_key_is_refused_and_the_next_call_makes_one(postgres: TestServer, empty: str) -> None:
    with pytest.raises(ValueError, match="hw_"):
        initialise(postgres.owner_url(empty), api_key="secret")
    assert initialise(postgres.owner_url(empty)).api_key is not None


def test_one_of_racing_callers_makes_the_key(postgres: TestServer, empty: str) -> None:
    barrier = Barrier(3)

    def race() -> str | None:
        barrier.wait()
        return initialise(postgres.owner_url(empty)).api_key

    keys = together([race] * 3)
    assert keys.count(None) == 2


def test_owner_without_superuser_and_plain_login_suffice(postgres: TestServer) -> None:
    """As on a managed server, without a superuser."""
    with postgres.fresh_database(template="template0") as name, postgres.administration() as administration:
        logins = {"plain_owner": "CREATEROLE", "plain_service": "NOCREATEROLE", "plain_admin": "NOCREATEROLE"}
        for login, rights in logins.items():
            administration.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p' {}").format(sql.Identifier(login), sql.SQL(rights))
            )
        administration.execute(
            "GRANT headwater_app, headwater_relay, headwater_admin, headwater_monitor TO plain_owner WITH ADMIN TRUE"
        )
        administration.execute(sql.SQL("ALTER DATABASE {} OWNER TO plain_owner").format(sql.Identifier(name)))
        address = make_url(postgres.owner_url(name))
        owner, service, admin = (
            address.set(username=login, password="p").render_as_string(hide_password=False)
            for login in logins
        )
        result = initialise(owner, application_url=service, administration_url=admin)
        assert result.api_key is not None
        database = Database(admin, role=ADMINISTRATOR_ROLE)
        assert AdministrationStore(database).tenant(DEFAULT_TENANT_ID).name == "default"
        database.close()
        assert scopes_of(service, result.api_key) == set(OPERATOR_SCOPES)
        assert initialise(owner, application_url=service).api_key is None
        with psycopg.connect(service) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM jobs")
        with postgres.administration(name) as inside:
            inside.execute("DROP OWNED BY plain_service, plain_admin, plain_owner CASCADE")
        administration.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO CURRENT_USER").format(sql.Identifier(name))
        )
        administration.execute("DROP ROLE plain_service, plain_admin, plain_owner")
