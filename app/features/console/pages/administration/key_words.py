"""Keys in words: their state, what their grants show, and the body of a request that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.features.console.page import ConsoleForm
from app.features.console.pages.field_values import FieldFault, json_value, time_of, whole_number


def description(key: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """A key of the API with its state as kind and word (`state`), and its grants as sentences (`reach`)."""
    return {**key, "state": _state(key, now), "reach": reach(key["grants"])}


def reach(grants: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """What grants give, a sentence each."""
    if grants is None:
        return ["all datasets"]
    return [_sentence(each) for each in grants]


def new_key_body(form: ConsoleForm) -> Mapping[str, Any]:
    """The body of the request that makes the key of a form. Raises FieldFault for what no request can carry."""
    body: dict[str, Any] = {"name": form.text("name"), "scopes": list(form.texts("scopes"))}
    if grants := _grants(form):
        body["grants"] = grants
    if expires := form.text("expires_at"):
        body["expires_at"] = time_of("expires_at", expires).isoformat()
    if rate := form.text("requests_per_second"):
        body["requests_per_second"] = whole_number("requests_per_second", rate)
    return body


def _grants(form: ConsoleForm) -> list[Mapping[str, Any]]:
    """The grants of a form: one a line of patterns, or JSON for those with filters and masks."""
    if text := form.text("grants"):
        grants = json_value("grants", text)
        if not isinstance(grants, list):
            raise FieldFault("grants", "expected a JSON list of grants")
        return grants
    patterns = form.text("datasets").replace(",", " ").split()
    where, mask = form.text("where"), form.text("mask").replace(",", " ").split()
    if not patterns and (where or mask):
        raise FieldFault("datasets", "expected the datasets that the condition or the mask is about")
    return [_grant(pattern, where, mask) for pattern in patterns]


def _grant(pattern: str, where: str, mask: Sequence[str]) -> Mapping[str, Any]:
    grant: dict[str, Any] = {"datasets": pattern}
    if where:
        grant["where"] = where
    if mask:
        grant["mask"] = list(mask)
    return grant


def _state(key: Mapping[str, Any], now: datetime) -> tuple[str, str]:
    if key["revoked_at"] is not None:
        return "idle", "revoked"
    if key["expires_at"] is not None and datetime.fromisoformat(key["expires_at"]) <= now:
        return "idle", "expired"
    return "good", "live"


def _sentence(grant: Mapping[str, Any]) -> str:
    parts = [grant["datasets"]]
    if scopes := grant.get("scopes"):
        parts.append(f"{' and '.join(scopes)} only")
    if where := grant.get("where"):
        parts.append(f"rows where {where}")
    if mask := grant.get("mask"):
        parts.append(f"without the values of {', '.join(mask)}")
    return ", ".join(parts)
