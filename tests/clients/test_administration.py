"""Tenants and keys with the Python client and on the command line."""

from __future__ import annotations

import os
import subprocess
import sys

import httpx2
import pytest

from headwater_client import Headwater, Problem
from headwater_client.models import Grant
from tests.support.service import Service
from tests.support.shares import share


def connected(service: Service, api_key: str) -> Headwater:
    return Headwater(service.url, api_key, transport=httpx2.HTTPTransport())


def test_client_makes_suspends_and_lists_tenants_and_keys(service: Service, headwater: Headwater) -> None:
    made = headwater.create_tenant("client-tenant")
    assert made.name in [each.name for each in headwater.tenants()]
    with connected(service, made.api_key) as first:
        grants = [Grant(datasets="orders_*", scopes=("read",))]
        key = first.create_key("reader", ["read"], grants=grants)
        assert [each.name for each in first.api_keys()] == ["reader", "first"]
        assert first.get_key(key.id).grants == tuple(grants)
        with connected(service, key.api_key) as reader:
            assert (reader.me().tenant.id, reader.me().key.name) == (made.id, "reader")
        first.revoke_key(key.id)
    assert headwater.suspend_tenant(made.id, "unpaid").suspended_reason == "unpaid"
    assert headwater.resume_tenant(made.id).state == "active"
    assert headwater.get_tenant("client-tenant").state == "active"
    with pytest.raises(Problem, match="client-tenant"):
        headwater.create_tenant("client-tenant")


@share(2)
def test_commands_administer_tenants_and_keys(service: Service, api_key: str) -> None:
    def headwater(*arguments: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "clients.cli", *arguments],
            env={**os.environ, "HEADWATER_URL": service.url, "HEADWATER_API_KEY": api_key, "NO_PROXY": "*"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.stdout + ran.stderr

    key = headwater("tenants", "create", "cli-tenant").splitlines()[-1]
    assert key.startswith("hw_")
    shown = headwater("tenants", "suspend", "cli-tenant", "--reason", "unpaid").splitlines()
    assert {"state: suspended", "suspended_reason: unpaid"} <= set(shown)
    headwater("tenants", "resume", "cli-tenant")
    [row] = [line for line in headwater("tenants", "list").splitlines() if "cli-tenant" in line]
    assert row.split()[1:] == ["cli-tenant", "active", "-"]
    made = headwater(
        "keys", "create", "reader", "--scope", "read", "--datasets", "orders_*", "--tenant", "cli-tenant"
    )
    key_id = made.split()[5].rstrip(".")
    [row] = [
        line for line in headwater("keys", "list", "--tenant", "cli-tenant").splitlines() if key_id in line
    ]
    assert row.split()[1:4] == ["reader", "read", "orders_*"]
    assert "is revoked" in headwater("keys", "revoke", key_id, "--tenant", "cli-tenant")
    assert "there is no tenant" in headwater("tenants", "show", "nobody")
