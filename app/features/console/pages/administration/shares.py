"""Shares: what recipients outside of the tenant read, their last use, and their tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done, Shown
from app.features.console.pages.administration.key_words import reach
from app.features.console.pages.field_values import time_of, whole_number
from app.features.console.visit import Visit, path_of, together

_PAGE_SIZE: Final = 20
_RECIPIENTS: Final = 100
_CHANGES: Final = "manage"


async def _read(visit: Visit) -> Context:
    page = await visit.api.get("/shares", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token"))
    lists = await together(
        *(
            visit.api.part(f"{path_of('shares', each['id'])}/recipients", page_size=_RECIPIENTS)
            for each in page["items"]
        )
    )
    recipients = {
        share["id"]: part if part.value is None else part._replace(value=_in_words(part.value))
        for share, part in zip(page["items"], lists, strict=True)
    }
    return {
        "items": page["items"],
        "recipients": recipients,
        "next_token": page["next_page_token"],
        "may_change": visit.may(_CHANGES),
    }


def _in_words(page: Mapping[str, Any]) -> Mapping[str, Any]:
    items = []
    for each in page["items"]:
        grants = each["grants"]
        in_words = None if grants is None else [{**grant, "datasets": grant["dataset"]} for grant in grants]
        items.append({**each, "reach": ["all of the share"] if in_words is None else reach(in_words)})
    return {**page, "items": items}


async def _make(visit: Visit, form: ConsoleForm) -> Done:
    names = form.text("datasets").replace(",", " ").split()
    body = {"name": form.text("name"), "datasets": [{"name": each} for each in names]}
    share = await visit.api.send("POST", "/shares", body)
    return Done(to="/console/shares", notice=f"The share {share['name']} is made. It has no recipient yet.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    share = visit.variables["share"]
    await visit.api.send("DELETE", path_of("shares", share))
    return Done(to="/console/shares", notice=f"The share {form.text('name') or share} is deleted.")


async def _make_recipient(visit: Visit, form: ConsoleForm) -> Shown:
    body: dict[str, Any] = {"name": form.text("recipient")}
    if expires := form.text("expires_at"):
        body["expires_at"] = time_of("expires_at", expires).isoformat()
    if rate := form.text("requests_per_second"):
        body["requests_per_second"] = whole_number("requests_per_second", rate)
    if dataset := form.text("dataset"):
        grant: dict[str, Any] = {"dataset": dataset}
        if where := form.text("where"):
            grant["where"] = where
        if mask := form.text("mask").replace(",", " ").split():
            grant["mask"] = mask
        body["grants"] = [grant]
    path = path_of("shares", visit.variables["share"])
    return _profile(await visit.api.send("POST", f"{path}/recipients", body))


async def _rotate(visit: Visit, form: ConsoleForm) -> Shown:
    seconds = whole_number("overlap_seconds", form.text("overlap_seconds") or "0")
    path = f"{_recipient(visit)}/rotate-token"
    return _profile(await visit.api.send("POST", path, {"overlap_seconds": seconds}))


async def _revoke(visit: Visit, form: ConsoleForm) -> Done:
    await visit.api.send("DELETE", _recipient(visit))
    name = form.text("name") or visit.variables["recipient"]
    return Done(
        to="/console/shares", notice=f"The recipient {name} is deleted. Its tokens and links have ended."
    )


def _recipient(visit: Visit) -> str:
    return path_of("shares", visit.variables["share"], "recipients", visit.variables["recipient"])


def _profile(new: Mapping[str, Any]) -> Shown:
    text = json.dumps(new["profile"], indent=2)
    return Shown(template="profile.html", context={"recipient": new, "profile": text})


_PAGE: Final = ConsolePage(path="/shares", template="shares.html", read=_read)
_ONE: Final = "/shares/{share:str}/recipients/{recipient:str}"
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/shares", run=_make, page=_PAGE),
    ConsoleAction(path="/shares/{share:str}/delete", run=_delete, page=_PAGE),
    ConsoleAction(path="/shares/{share:str}/recipients", run=_make_recipient, page=_PAGE),
    ConsoleAction(path=f"{_ONE}/rotate", run=_rotate, page=_PAGE),
    ConsoleAction(path=f"{_ONE}/revoke", run=_revoke, page=_PAGE),
)
