"""What requests for objects are answered from: what an earlier request of the same second has found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.access.errors import NotFound
from app.access.tenants.values import Grant, KeyScope, Principal
from app.core.catalog.values import Dataset
from app.features.objects.handlers.lookups import ObjectLookup, ObjectLookups
from app.features.objects.ports import ServedTable
from app.features.objects.service.keys import TableKey, table_key
from app.features.objects.values import table_prefix
from app.http.limits.threads import Threads
from app.infra.sharing.next_flight import NextFlight
from tests.features.objects.conftest import World
from tests.support.tables_in_s3 import KnownContent, KnownTree, principal_of
from tests.support.waiting import until


@dataclass
class Table:
    """A table whose lookups are counted."""

    key: TableKey
    principal: Principal
    dataset: Dataset
    tree: KnownTree = field(default_factory=lambda: KnownTree("notes", {"a": KnownContent(b"a")}))
    reads: int = 0
    finds: int = 0

    async def read(self, *_: object) -> Dataset:
        """The dataset."""
        self.reads += 1
        return self.dataset

    @property
    def segment(self) -> str:
        """That of the tree."""
        return self.tree.segment

    def find(self, table: ServedTable, path: str) -> KnownContent:
        """An object; that of an earlier version of the dataset has no path."""
        self.finds += 1
        if table.dataset is not self.dataset:
            raise NotFound("an earlier version")
        return self.tree.find(table, path)

    def listing(self, *_: object) -> tuple[()]:
        """Nothing."""
        return ()


@pytest.fixture
def table(world: World) -> Table:
    principal = principal_of(world.service, world.api_key)
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    return Table(table_key(world.table().key.access_key_id), principal, dataset)


def found(table: Table, steps: Callable[[Callable[..., Any]], Any]) -> None:
    """Runs the steps with a function that finds an object of the table by its name."""
    lookups, datasets = ObjectLookups(threads=Threads(1)), NextFlight(table.read)

    async def find(name: str, principal: Principal | None = None) -> ObjectLookup:
        key = f"{table_prefix(table.dataset.id, 'v3')}notes/{name}".encode()
        trees = {table.segment: table}
        return await lookups.object(table.key, principal or table.principal, key, datasets, trees)

    asyncio.run(steps(find))


def test_object_is_found_once_for_the_requests_of_a_second(table: Table) -> None:
    async def steps(find: Callable[..., Any]) -> None:
        first, second = await find("a"), await find("a")
        assert first is second
        assert (table.reads, table.finds) == (1, 1)
        table.tree.contents["b"] = KnownContent(b"b")
        assert (await find("b")).content.read(0, 1) == b"b"
        assert (table.reads, table.finds) == (1, 2)

    found(table, steps)


def test_object_that_is_new_is_found_in_the_dataset_as_it_is_now(table: Table) -> None:
    async def steps(find: Callable[..., Any]) -> None:
        await find("a")
        table.dataset = msgspec.structs.replace(table.dataset, version=table.dataset.version + 1)
        table.tree.contents["b"] = KnownContent(b"b")
        assert (await find("b")).content.read(0, 1) == b"b"
        with pytest.raises(NotFound):
            await find("c")

    found(table, steps)


def test_other_principal_is_checked_and_finds_again(table: Table) -> None:
    async def steps(find: Callable[..., Any]) -> None:
        await find("a")
        await find("a", msgspec.structs.replace(table.principal))
        assert (table.reads, table.finds) == (2, 2)
        for grants in ((), (Grant(datasets="others"),), (Grant(datasets="orders", where="id > 1"),)):
            with pytest.raises(Exception, match=r"scope|granted"):
                await find("a", msgspec.structs.replace(table.principal, grants=grants))

    found(table, steps)


def test_rename_ends_a_key_whose_grant_has_the_name(world: World) -> None:
    world.tree.contents["m.json"] = KnownContent(b"content")
    granted = world.key(grants=(Grant(datasets="orders", scopes=(KeyScope.READ,)),))
    table = world.table(granted)
    assert table.get("notes/m.json").status_code == 200
    tag = world.client.get("/datasets/orders").headers["etag"]
    answer = world.client.patch("/datasets/orders", json={"name": "renamed"}, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text
    until(lambda: table.get("notes/m.json").status_code == 403, "the refusal of the key")


def test_key_that_expires_is_refused_whatever_was_found(world: World) -> None:
    world.tree.contents["m.json"] = KnownContent(b"content")
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    table = world.table(world.key(expires_at=ends))
    assert table.get("notes/m.json").status_code == 200
    until(lambda: table.get("notes/m.json").status_code == 403, "the end of the key")
