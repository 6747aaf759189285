"""Rendered files end with their dataset and with their tenant; processes that render the same file keep one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, Final

import pytest
from sqlalchemy import text

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.values import Dataset
from app.core.jobs.repository.outbox import OutboxStore
from app.features.rendered_files.repository.renderings import RenderingStore
from app.features.rendered_files.service.data_file import DataFileRendering
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.service.objects import RenderedObjects
from app.features.rendered_files.service.threads import RenderingThreads
from app.features.rendered_files.values import RenderedFile
from app.features.retention.compose import end_tenants, reaper
from app.features.retention.repository.expired_rows import DeletedDatasetStore
from app.infra.identifiers import new_id
from app.kernel.format.paths import dataset_prefix
from tests.features.rendered_files.conftest import Renderer
from tests.features.rendered_files.test_eviction import PART, evict, objects, rendered, written

_OPERATOR: Final = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset({KeyScope.OPERATE}))


def of_dataset(renderer: Renderer, dataset: Dataset) -> list[str]:
    """The rendered objects of a dataset, which may be gone."""
    prefix = f"{dataset_prefix(renderer.tenant_id, dataset.id)}/rendered"
    return [path for path, _ in renderer.service.platform.storage.list(prefix)]


def row_count(renderer: Renderer) -> int:
    """How many renderings of the tenant are known."""
    with renderer.service.database.tenant(renderer.tenant_id) as connection:
        return int(connection.execute(text("SELECT count(*) FROM rendered_files")).scalar_one())


def test_rendered_files_end_with_their_dataset(renderer: Renderer) -> None:
    written(renderer)
    rendered(renderer)
    dataset = renderer.dataset("orders")
    assert (len(of_dataset(renderer, dataset)), row_count(renderer)) == (1, 1)
    answer = renderer.client.delete("/datasets/orders")
    assert answer.status_code == 204, answer.text
    service = renderer.service
    replace(reaper(service.platform), grace_seconds=0.0).run()
    assert of_dataset(renderer, dataset) == []
    deleted = DeletedDatasetStore(service.database)
    assert list(deleted.ended(renderer.tenant_id, grace_seconds=0.0)) == [dataset.id]
    while deleted.purge(renderer.tenant_id, dataset.id, 1_000):
        pass
    assert row_count(renderer) == 0


def test_rendered_files_end_with_their_tenant(renderer: Renderer) -> None:
    written(renderer)
    rendered(renderer)
    dataset, service = renderer.dataset("orders"), renderer.service
    assert (len(of_dataset(renderer, dataset)), row_count(renderer)) == (1, 1)
    tenants = service.tenants
    name = tenants.tenant(renderer.tenant_id).name
    tenants.begin_deletion(renderer.tenant_id, confirmation=name, actor=_OPERATOR)
    ending = replace(end_tenants(service.platform), lease_seconds=0.0)
    for _ in range(3):
        ending.run()
        while OutboxStore(service.database).relay(lambda _: None, 100):
            pass
    assert of_dataset(renderer, dataset) == []
    assert row_count(renderer) == 0
    # The loop of another worker finds nothing of it.
    evict(renderer, tenant_bytes_max=0)


@pytest.fixture
def processes(renderer: Renderer) -> list[RenderedFiles]:
    """What renders files in two processes on the same database and storage."""
    platform = renderer.service.platform
    return [
        replace(
            renderer.files,
            objects=RenderedObjects(
                store=RenderingStore(platform.database), storage=platform.storage, threads=RenderingThreads()
            ),
        )
        for _ in range(2)
    ]


def test_processes_that_render_a_file_at_once_keep_one_object(
    renderer: Renderer, processes: list[RenderedFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(renderer)
    dataset, together = renderer.dataset("orders"), Barrier(2, timeout=30)
    sources, write = renderer.sources(dataset), DataFileRendering.write

    def write_together(rendering: DataFileRendering, sink: Any) -> Any:
        rows = write(rendering, sink)
        together.wait()
        return rows

    monkeypatch.setattr(DataFileRendering, "write", write_together)

    def require(files: RenderedFiles) -> list[RenderedFile]:
        return files.require(dataset, dataset.definition, PART, sources)

    with ThreadPoolExecutor(2) as pool:
        [first, second] = pool.map(require, processes)
    assert first == second
    [path] = objects(renderer)
    assert path.read_bytes() == renderer.content("orders", PART, first[0])
    assert row_count(renderer) == 1


def test_file_that_is_rendered_with_other_bytes_later_is_listed_with_these(renderer: Renderer) -> None:
    written(renderer)
    file = rendered(renderer)
    content = renderer.content("orders", PART, file)
    evict(renderer, tenant_bytes_max=0)
    with renderer.service.database.tenant(renderer.tenant_id) as connection:
        # As an earlier release has rendered it, whose libraries wrote other bytes.
        connection.execute(text("UPDATE rendered_files SET content = :other"), {"other": "f" * 32})
    other = rendered(renderer)
    assert other.content == "f" * 32
    with pytest.raises(NotFound):
        renderer.content("orders", PART, other)
    assert rendered(renderer) == file
    assert renderer.content("orders", PART, file) == content
    assert len(objects(renderer)) == 1
