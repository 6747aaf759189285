"""Webhooks: what each waits for, its messages, and what can be done about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done, Shown
from app.features.console.pages.field_values import present, whole_number, words
from app.features.console.pages.pipelines.requests import change, change_state, delete_confirmed, read_list
from app.features.console.rendering import clipped, duration
from app.features.console.visit import PagePart, Visit, path_of, together

FORMS: Final = ("two_event", "single_event", "retract", "upsert", "debezium", "delta")
"""The forms of changes, as `POST /webhooks` has them."""
DELIVERY_STATES: Final = ("pending", "delivered", "dead")
"""The states of messages."""
_MESSAGES: Final = 50
# A notice is in a cookie, which has 4 kB at most.
_ERROR_CHARACTERS: Final = 200


async def _read_list(visit: Visit) -> Context:
    return {**await read_list(visit, "/webhooks", dataset=visit.query.get("dataset")), "forms": FORMS}


async def _read_webhook(visit: Visit) -> Context:
    path = path_of("webhooks", visit.variables["webhook"])
    response, attempts, deliveries = await together(
        visit.api.response("GET", path),
        _attempts(visit, path),
        visit.api.part(
            f"{path}/deliveries",
            state=visit.query.get("state"),
            page_size=_MESSAGES,
            page_token=visit.query.get("page_token"),
        ),
    )
    return {
        "webhook": response.value(),
        "etag": response.headers["etag"],
        "deliveries": deliveries,
        "attempts": attempts,
        "latencies": latencies([] if attempts.problem else (attempts.value or {}).get("items", [])),
        "forms": FORMS,
        "message_tabs": [
            (visit.link(f"/console{path}", state=state), state or "all", None)
            for state in (None, *DELIVERY_STATES)
        ],
        "ended_after": ended_after,
    }


async def _attempts(visit: Visit, path: str) -> PagePart:
    """The latest attempts; without a value for a reader that may not see what receivers answer."""
    return await visit.api.part(f"{path}/attempts") if visit.may("manage") else PagePart()


def latencies(attempts: Sequence[Any]) -> tuple[float, float] | None:
    """Of the seconds that attempts took, those that half and 95 % of them did not exceed; None without an attempt."""
    seconds = sorted(each["seconds"] for each in attempts)
    if not seconds:
        return None
    return seconds[(len(seconds) - 1) // 2], seconds[math.ceil(len(seconds) * 0.95) - 1]


def ended_after(delivery: Any) -> float | None:
    """The seconds from when a message was made until it arrived or was given up; None before that."""
    if delivery["ended_at"] is None:
        return None
    end, begin = (datetime.fromisoformat(delivery[name]) for name in ("ended_at", "created_at"))
    return (end - begin).total_seconds()


async def _create(visit: Visit, form: ConsoleForm) -> Shown:
    members = present(
        {
            "dataset": form.text("dataset"),
            "url": form.text("url"),
            "events": form.text("events"),
            "form": form.text("form") if form.text("events") in ("", "changes") else None,
            "columns": words(form.text("columns")),
            "where": form.text("where"),
            "since": form.text("since"),
            "batch_changes_max": whole_number("batch_changes_max", form.text("batch_changes_max")),
            "description": form.text("description"),
        }
    )
    webhook = await visit.api.send("POST", "/webhooks", members)
    return _secret(webhook, webhook["secret"], "The webhook is registered.")


def _secret(webhook: Any, secret: str, notice: str) -> Shown:
    return Shown(
        template="webhook_secret.html",
        context={"webhook_id": webhook["id"], "url": webhook["url"], "secret": secret, "done": notice},
    )


def _path(visit: Visit, *more: str) -> str:
    return path_of("webhooks", visit.variables["webhook"], *more)


def _page(visit: Visit) -> str:
    return "/console" + _path(visit)


async def _state(visit: Visit, form: ConsoleForm) -> Done:
    state = await change_state(visit, _path(visit), form)
    return Done(to=_page(visit), notice=f"The webhook is {state}.")


async def _settings(visit: Visit, form: ConsoleForm) -> Done:
    members: dict[str, Any] = {
        "url": form.text("url"),
        "description": form.text("description") or None,
        "batch_changes_max": whole_number("batch_changes_max", form.text("batch_changes_max")),
    }
    if "form" in form.fields:
        members |= {
            "form": form.text("form"),
            "where": form.text("where") or None,
            "columns": words(form.text("columns")),
        }
    await change(visit, _path(visit), members, form.text("etag"))
    return Done(to=_page(visit), notice="The webhook is changed.")


async def _rewind(visit: Visit, form: ConsoleForm) -> Done:
    by = form.text("by") or "since"
    place = whole_number("place", form.text("place")) if by == "since_version" else form.text("place")
    members: dict[str, Any] = {by: place}
    if form.checked("resume"):
        members["state"] = "active"
    await change(visit, _path(visit), members, form.text("etag"))
    return Done(to=_page(visit), notice="The webhook continues from there.")


async def _rotate(visit: Visit, _: ConsoleForm) -> Shown:
    webhook = await visit.api.get(_path(visit))
    rotation = await visit.api.send("POST", _path(visit, "rotate-secret"))
    hours = rotation["overlap_seconds"] // 3_600
    return _secret(
        webhook, rotation["secret"], f"For {hours} hours messages are also signed with the previous secret."
    )


async def _test(visit: Visit, _: ConsoleForm) -> Done:
    result = await visit.api.send("POST", _path(visit, "tests"))
    return Done(to=_page(visit), notice=_test_notice(result))


def _test_notice(result: Any) -> str:
    word = "was delivered" if result["delivered"] else "was not delivered"
    status = f", with status {result['status']}" if result["status"] else ""
    error = f": {clipped(result['error'], _ERROR_CHARACTERS)}" if result["error"] else ""
    return f"The test message {word}{status}, after {duration(result['seconds'])}{error}."


async def _redeliver(visit: Visit, form: ConsoleForm) -> Done:
    delivery = form.text("delivery")
    webhook = await visit.api.get(_path(visit))
    when = ", once the webhook is resumed" if webhook["state"] == "paused" else ""
    if delivery:
        await visit.api.send("POST", _path(visit, "deliveries", delivery, "redeliver"))
        return Done(to=_page(visit), notice=f"The message is sent again{when}.")
    count = (await visit.api.send("POST", _path(visit, "redeliveries")))["deliveries"]
    return Done(to=_page(visit), notice=f"Messages that are sent again{when}: {count}.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    await delete_confirmed(visit, form, _path(visit))
    return Done(to="/console/webhooks", notice="The webhook is deleted.")


_LIST: Final = ConsolePage(path="/webhooks", template="webhooks.html", read=_read_list)
_WEBHOOK: Final = ConsolePage(path="/webhooks/{webhook:str}", template="webhook.html", read=_read_webhook)
PAGES: Final = (_LIST, _WEBHOOK)
ACTIONS: Final = (
    ConsoleAction(path="/webhooks", run=_create, page=_LIST),
    ConsoleAction(path="/webhooks/{webhook:str}/state", run=_state, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/settings", run=_settings, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/position", run=_rewind, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/secret", run=_rotate, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/test", run=_test, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/redeliveries", run=_redeliver, page=_WEBHOOK),
    ConsoleAction(path="/webhooks/{webhook:str}/delete", run=_delete, page=_WEBHOOK),
)
