"""Tenants, for operators: their state, quotas, keys and usage, and how one is made, suspended and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done, Shown
from app.features.console.pages.administration.day_charts import by_day
from app.features.console.pages.administration.key_words import description, new_key_body
from app.features.console.pages.administration.keys import new_key_context
from app.features.console.pages.field_values import decimal_number, whole_number
from app.features.console.visit import Visit, path_of, together

_PAGE_SIZE: Final = 1_000
_KEYS: Final = 100
_DAYS: Final = 31
_SCOPES: Final = ("manage", "operate", "read", "write")
_FRACTIONS: Final = ("weight", "job_seconds")
"""The quotas that need not be whole numbers."""
_QUOTA: Final = "quota."
"""What the names of the fields of quotas begin with."""
_BYTES: Final = frozenset({"storage_bytes", "bytes_per_day"})


async def _read_all(visit: Visit) -> Context:
    page = await visit.api.get("/tenants", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token"))
    # Those come first that will reach a quota first.
    items = sorted(
        page["items"], key=lambda each: -max((q["share"] for q in each["quota_shares"]), default=0)
    )
    return {"items": items, "next_token": page["next_page_token"]}


async def _read(visit: Visit) -> Context:
    path = path_of("tenants", visit.variables["tenant"])
    tenant = await visit.api.get(path)
    if tenant["deletion"] is not None:
        # Its keys do not exist any more, and its numbers are those of the report.
        return {"tenant": tenant, "keys": None, "quotas": None, "usage": None, "scopes": _SCOPES}
    keys, quotas, usage = await together(
        visit.api.part(f"{path}/keys", page_size=_KEYS),
        visit.api.part(f"{path}/quotas"),
        visit.api.part(f"{path}/usage", page_size=_DAYS),
    )
    if keys.value is not None:
        keys = keys._replace(
            value={**keys.value, "items": [description(each, visit.now) for each in keys.value["items"]]}
        )
    if usage.value is not None:
        usage = usage._replace(value=by_day(usage.value["items"], visit.now.date(), days=_DAYS))
    return {
        "tenant": tenant,
        "keys": keys,
        "quotas": quotas,
        "bytes_quotas": _BYTES,
        "usage": usage,
        "scopes": _SCOPES,
    }


async def _make(visit: Visit, form: ConsoleForm) -> Shown:
    new = await visit.api.send("POST", "/tenants", {"name": form.text("name")})
    return Shown(template="new_tenant.html", context={"tenant": new, "api_key": new["api_key"]})


async def _suspend(visit: Visit, form: ConsoleForm) -> Done:
    body = {"state": "suspended", "reason": form.text("reason") or None}
    return await _changed(visit, body, "is suspended: it reads, and does not write")


async def _resume(visit: Visit, _: ConsoleForm) -> Done:
    return await _changed(visit, {"state": "active"}, "may write again")


async def _set_quotas(visit: Visit, form: ConsoleForm) -> Done:
    names = [name.removeprefix(_QUOTA) for name in form.fields if name.startswith(_QUOTA)]
    quotas = {name: _limit(name, form.text(f"{_QUOTA}{name}")) for name in names}
    return await _changed(visit, {"quotas": quotas}, "has other quotas from now on")


async def _changed(visit: Visit, body: Mapping[str, Any], words: str) -> Done:
    tenant = await visit.api.send("PATCH", path_of("tenants", visit.variables["tenant"]), body)
    return Done(to=f"/console/tenants/{tenant['id']}", notice=f"{tenant['name']} {words}.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    path = path_of("tenants", visit.variables["tenant"])
    tenant = await visit.api.send("DELETE", path, confirm=form.text("confirm") or "-")
    return Done(
        to=f"/console/tenants/{tenant['id']}", notice="All keys are revoked. The data are being deleted."
    )


async def _make_key(visit: Visit, form: ConsoleForm) -> Shown:
    path = path_of("tenants", visit.variables["tenant"])
    new = await visit.api.send("POST", f"{path}/keys", new_key_body(form))
    context = new_key_context(new, f"/console{path}", "The tenant")
    return Shown(template="new_key.html", context=context)


async def _revoke(visit: Visit, form: ConsoleForm) -> Done:
    path, key = path_of("tenants", visit.variables["tenant"]), visit.variables["key"]
    await visit.api.send("DELETE", f"{path}{path_of('keys', key)}")
    return Done(to=f"/console{path}", notice=f"The key {form.text('name') or key} is revoked.")


def _limit(name: str, text: str) -> float | None:
    """The limit in a field; None for an empty one, which removes it. Raises FieldFault."""
    return decimal_number(name, text) if name in _FRACTIONS else whole_number(name, text)


_ALL: Final = ConsolePage(path="/tenants", template="tenants.html", read=_read_all)
_ONE: Final = ConsolePage(path="/tenants/{tenant:str}", template="tenant.html", read=_read)
PAGES: Final = (_ALL, _ONE)
ACTIONS: Final = (
    ConsoleAction(path="/tenants", run=_make, page=_ALL),
    ConsoleAction(path="/tenants/{tenant:str}/suspend", run=_suspend, page=_ONE),
    ConsoleAction(path="/tenants/{tenant:str}/resume", run=_resume, page=_ONE),
    ConsoleAction(path="/tenants/{tenant:str}/quotas", run=_set_quotas, page=_ONE),
    ConsoleAction(path="/tenants/{tenant:str}/delete", run=_delete, page=_ONE),
    ConsoleAction(path="/tenants/{tenant:str}/keys", run=_make_key, page=_ONE),
    ConsoleAction(path="/tenants/{tenant:str}/keys/{key:str}/revoke", run=_revoke, page=_ONE),
)
