"""Rendered objects stay within their bounds, are rendered again when they are read, and go with what they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from app.access.errors import NotFound
from app.features.rendered_files.repository.evictions import EvictionStore
from app.features.rendered_files.service.eviction import EvictRenderings
from app.features.rendered_files.values import RenderedFile, UsedObject
from app.infra.files.storage import LocalStorage
from app.kernel.format.paths import dataset_prefix
from app.kernel.sql.conditions.row_access import RowAccess
from tests.features.rendered_files.conftest import Renderer

COLUMNS = {"id": "int64", "note": "string"}
PART = RowAccess(where=("id > 3",), masked=("note",))
OTHER = RowAccess(where=("id > 5",))
_LARGE = 2**60


def rendered(renderer: Renderer, access: RowAccess = PART) -> RenderedFile:
    [file] = renderer.require("orders", access)
    return file


def written(renderer: Renderer) -> None:
    renderer.register("orders", COLUMNS, record_key=["id"])
    renderer.write("orders", [{"id": number, "note": f"text {number}"} for number in range(20)])


def objects(renderer: Renderer) -> list[Path]:
    """The rendered objects of the dataset on the storage."""
    storage = renderer.service.platform.storage
    assert isinstance(storage, LocalStorage)
    prefix = f"{dataset_prefix(renderer.tenant_id, renderer.dataset('orders').id)}/rendered"
    return sorted(storage.root / path for path, _ in storage.list(prefix))


def evict(renderer: Renderer, *, bytes_max: int = _LARGE, tenant_bytes_max: int = _LARGE) -> int:
    platform = renderer.service.platform
    return EvictRenderings(
        store=EvictionStore(platform.database),
        storage=platform.storage,
        bytes_max=bytes_max,
        tenant_bytes_max=tenant_bytes_max,
    ).run()


def used_before(renderer: Renderer, file: RenderedFile, seconds: float) -> None:
    with renderer.service.database.tenant(renderer.tenant_id) as connection:
        connection.execute(
            text("UPDATE rendered_files SET used_at = now() - make_interval(secs => :s) WHERE content = :c"),
            {"s": seconds, "c": file.content},
        )


def test_second_reader_renders_nothing(renderer: Renderer) -> None:
    written(renderer)
    first = rendered(renderer)
    before = objects(renderer)
    assert rendered(renderer) == first
    assert renderer.content("orders", PART, first) == renderer.content("orders", PART, first)
    assert objects(renderer) == before
    assert len(before) == 1


@pytest.mark.parametrize("of_tenant", [True, False])
def test_objects_that_were_used_longest_ago_are_deleted_first(renderer: Renderer, of_tenant: bool) -> None:
    written(renderer)
    first, second = rendered(renderer), rendered(renderer, OTHER)
    used_before(renderer, first, 100.0)
    # Other tests have tenants, too.
    evict(renderer, bytes_max=_LARGE)
    bound = {"tenant_bytes_max": second.size_bytes}
    if not of_tenant:
        store = EvictionStore(renderer.service.database)
        others = sum(store.stored_bytes().values()) - first.size_bytes
        used_before(renderer, first, 10_000.0)
        bound = {"bytes_max": others}
    assert evict(renderer, **bound) >= 1
    [left] = objects(renderer)
    assert left.read_bytes() == renderer.content("orders", OTHER, second)


def test_evicted_object_is_listed_without_rendering_and_rendered_again_when_it_is_read(
    renderer: Renderer,
) -> None:
    written(renderer)
    file = rendered(renderer)
    content = renderer.content("orders", PART, file)
    evict(renderer, tenant_bytes_max=0)
    assert objects(renderer) == []
    assert rendered(renderer) == file
    assert objects(renderer) == []
    assert renderer.found("orders", PART, file).size_bytes == len(content)
    assert renderer.content("orders", PART, file) == content
    assert len(objects(renderer)) == 1


@pytest.mark.parametrize("damage", ["missing", "shorter", "other"])
def test_object_that_a_crash_has_damaged_is_rendered_again(renderer: Renderer, damage: str) -> None:
    written(renderer)
    file = rendered(renderer)
    [path] = objects(renderer)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-7] if damage == "shorter" else bytes(len(content)))
    assert renderer.content("orders", PART, file) == content
    assert [each.read_bytes() for each in objects(renderer) if each != path] == [content]


def test_object_is_read_while_it_is_evicted(renderer: Renderer) -> None:
    written(renderer)
    file = rendered(renderer)
    content = renderer.found("orders", PART, file)
    start = content.read(0, 4)
    evict(renderer, tenant_bytes_max=0)
    assert start + content.read(4, file.size_bytes - 4) == renderer.content("orders", PART, file)


def test_renderings_go_with_the_entry_of_their_data_file(renderer: Renderer) -> None:
    written(renderer)
    file = rendered(renderer)
    with renderer.service.database.tenant(renderer.tenant_id) as connection:
        connection.execute(text("DELETE FROM files WHERE path = :path"), {"path": file.source.path})
    with pytest.raises(NotFound):
        renderer.found("orders", PART, file)
    evict(renderer)
    assert objects(renderer) == []
    with renderer.service.database.tenant(renderer.tenant_id) as connection:
        assert connection.execute(text("SELECT count(*) FROM rendered_files")).scalar_one() == 0


def test_idle_renderings_are_removed(renderer: Renderer) -> None:
    written(renderer)
    file, other = rendered(renderer), rendered(renderer, OTHER)
    used_before(renderer, file, 31 * 86_400.0)
    evict(renderer)
    with pytest.raises(NotFound):
        renderer.found("orders", PART, file)
    assert renderer.content("orders", OTHER, other) == objects(renderer)[0].read_bytes()


def test_failure_of_one_tenant_does_not_stop_the_others(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(renderer)
    rendered(renderer)
    oldest = EvictionStore.oldest
    sizes = EvictionStore.stored_bytes
    broken = renderer.service.tenants.add_tenant("another-tenant-of-evictions")

    def failing(store: EvictionStore, tenant_id: str, limit: int) -> Sequence[UsedObject]:
        if tenant_id == broken:
            raise RuntimeError("no objects")
        return oldest(store, tenant_id, limit)

    def with_broken(store: EvictionStore) -> dict[str, int]:
        return {broken: 1, **sizes(store)}

    monkeypatch.setattr(EvictionStore, "oldest", failing)
    monkeypatch.setattr(EvictionStore, "stored_bytes", with_broken)
    assert evict(renderer, tenant_bytes_max=0) >= 1
    assert objects(renderer) == []


def test_eviction_beside_readers_gives_each_the_same_bytes(renderer: Renderer) -> None:
    written(renderer)
    file = rendered(renderer)
    content = renderer.content("orders", PART, file)

    def reads() -> Iterator[bytes]:
        for _ in range(10):
            yield renderer.content("orders", PART, file)

    with ThreadPoolExecutor(3) as pool:
        results = [pool.submit(lambda: set(reads())) for _ in range(2)]
        while not all(each.done() for each in results):
            evict(renderer, tenant_bytes_max=0)
        assert [each.result() for each in results] == [{content}] * 2
