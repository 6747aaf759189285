"""Tenants and keys with the Python client and on the command line."""

from __future__ import annotations

import httpx2
import pytest

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import TenantChange
from headwater_client import Headwater, Problem
from headwater_client.models import Grant
from tests.support.command_line import command_line, use_service
from tests.support.service import Service


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


def test_commands_administer_tenants_and_keys(
    service: Service, api_key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_service(monkeypatch, service.url, api_key)
    headwater = command_line(capsys)
    made = headwater("tenants", "create", "cli-tenant", "-o", "table")
    assert made.out.splitlines()[-1].startswith("hw_")
    suspended = headwater("tenants", "suspend", "cli-tenant", "--reason", "unpaid").value
    assert (suspended["state"], suspended["suspended_reason"]) == ("suspended", "unpaid")
    headwater("tenants", "resume", "cli-tenant")
    service.tenants.change("cli-tenant", TenantChange(quotas=Quotas(rows_per_day=10)))
    [row] = [cells for cells in headwater("tenants", "list", "-o", "table").cells if "cli-tenant" in cells]
    assert row[1:] == ["cli-tenant", "active", "0", "bytes", "0", "0%", "rows_per_day", "-"]
    in_tenant = ("--tenant", "cli-tenant")
    key = headwater("keys", "create", "reader", "--scope", "read", "--datasets", "orders_*", *in_tenant).value
    assert key["api_key"].startswith("hw_")
    listed = headwater("keys", *in_tenant, "-o", "table").cells
    [row] = [cells for cells in listed if key["id"] in cells]
    assert row[1:4] == ["reader", "read", "orders_*"]
    assert "is revoked" in headwater("keys", "revoke", key["id"], *in_tenant).out
    assert "there is no tenant" in headwater("tenants", "show", "nobody", fails=3).err
