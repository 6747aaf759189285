"""The states of webhooks on the pages of lineage and of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.features.console.rendering import StateWords, webhook_state
from app.features.console.visit import Visit

_WEBHOOKS: Final = 100


async def webhook_states(
    visit: Visit, nodes: Iterable[Mapping[str, Any]], dataset: str | None = None
) -> Mapping[str, StateWords]:
    """The states of the first active webhooks among nodes of lineage, by id: lineage does not state which fail.

    `dataset`: the only one that they are of.
    """
    ids = {each["id"] for each in nodes if each["kind"] == "webhook" and each["state"] == "active"}
    if not ids:
        return {}
    part = await visit.api.part("/webhooks", dataset=dataset, state="active", page_size=_WEBHOOKS)
    items = [] if part.problem else part.value["items"]
    return {each["id"]: webhook_state(each) for each in items if each["id"] in ids}
