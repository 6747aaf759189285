"""What usage and audit have of requests for files of tables: counts and bytes under the credential of the key."""

from __future__ import annotations

from typing import Any

from app.infra.identifiers import new_id
from tests.features.objects.conftest import World
from tests.support.tables_in_s3 import KnownContent
from tests.support.waiting import until

SIZE = 300_000


def entries(world: World, outcome: str) -> list[dict[str, Any]]:
    """The entries of the audit of requests for objects."""
    world.service.api.counts.flush(everything=True)
    query = {"operation": "read_object", "outcome": outcome}
    items: list[dict[str, Any]] = world.client.get("/audit", params=query).json()["items"]
    return items


def test_reads_of_objects_count_for_the_key_with_which_the_table_was_loaded(world: World) -> None:
    world.tree.contents["m.json"] = KnownContent(bytes(SIZE))
    reader = world.service.tenants.make_key(world.tenant_id, ("read",), name=f"reader-{new_id()}")
    table = world.table(reader.api_key)
    for _ in range(3):
        assert len(table.get("notes/m.json").content) == SIZE
    assert table.get("notes/missing.json").status_code == 404

    def egress() -> dict[str, Any]:
        items = world.client.get("/usage", params={"by": "key"}).json()["items"]
        return next((each for each in items if each["key_id"] == reader.key_id), {"egress_bytes": 0})

    until(lambda: egress()["egress_bytes"] >= 3 * SIZE, "the counted bytes", seconds_max=30)
    assert egress()["egress_bytes"] < 4 * SIZE
    [read] = entries(world, "allowed")
    assert (read["count"], read["key_id"], read["resources"]) == (3, reader.key_id, {"dataset": "orders"})
    [missing] = entries(world, "denied")
    assert (missing["count"], missing["key_id"], missing["code"]) == (1, reader.key_id, "not-found")
