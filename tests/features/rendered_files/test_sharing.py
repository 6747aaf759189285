"""Renderings are made once for all, fairly between tenants, and within bounds of time and number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import pytest

from app.core.catalog.values import Dataset
from app.features.rendered_files.errors import RenderingUnderWay
from app.features.rendered_files.repository.renderings import RenderingStore
from app.features.rendered_files.service.objects import RenderedObjects
from app.features.rendered_files.service.threads import RenderingThreads
from app.features.rendered_files.values import RenderedRows, RenderingEntry, RenderingOrigin
from app.infra.files.checksums import HashingSink
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import LocalStorage
from app.kernel.format.paths import dataset_prefix
from app.kernel.sql.conditions.row_access import RowAccess
from tests.features.rendered_files.conftest import Renderer, read_all
from tests.support.service import SCOPES

COLUMNS = {"id": "int64", "note": "string"}


@dataclass
class KnownRendering:
    """A rendering of bytes that a test knows. `hold`: it waits for this event."""

    content: bytes
    hold: threading.Event | None = None
    error: Exception | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    writes: list[int] = field(default_factory=list)
    view: str = "0" * 16

    @property
    def origin(self) -> RenderingOrigin:
        return RenderingOrigin(version=1)

    @property
    def key(self) -> bytes:
        return blake2b(self.content, digest_size=16).digest()

    def write(self, sink: HashingSink) -> RenderedRows:
        self.begun.set()
        self.writes.append(1)
        if self.hold is not None:
            assert self.hold.wait(30)
        if self.error is not None:
            raise self.error
        sink.write(self.content)
        return RenderedRows(row_count=len(self.content))


def objects(renderer: Renderer, **settings: object) -> RenderedObjects:
    """The objects of another API process."""
    platform = renderer.service.platform
    made = RenderedObjects(
        store=RenderingStore(platform.database), storage=platform.storage, threads=RenderingThreads()
    )
    return replace(made, **settings)


@pytest.fixture
def dataset(renderer: Renderer) -> Dataset:
    renderer.register("orders", COLUMNS, record_key=["id"])
    return renderer.dataset("orders")


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def stored_paths(renderer: Renderer, dataset: Dataset) -> list[str]:
    storage = renderer.service.platform.storage
    return [path for path, _ in storage.list(f"{dataset_prefix(dataset.tenant_id, dataset.id)}/rendered")]


def test_requests_at_once_share_one_rendering(
    renderer: Renderer, dataset: Dataset, released: threading.Event
) -> None:
    rendering = KnownRendering(b"shared", hold=released)
    renders = objects(renderer)
    with ThreadPoolExecutor(3) as pool:
        results = [pool.submit(renders.require, dataset, [rendering]) for _ in range(3)]
        assert rendering.begun.wait(10)
        released.set()
        [first], *rest = [each.result() for each in results]
    assert all(each == [first] for each in rest)
    assert len(rendering.writes) == 1
    assert stored_paths(renderer, dataset) == [first.path]


def test_two_processes_at_once_keep_one_object(
    renderer: Renderer, dataset: Dataset, released: threading.Event
) -> None:
    renderings = [KnownRendering(b"of two", hold=released) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(objects(renderer).require, dataset, [each]) for each in renderings]
        assert all(each.begun.wait(10) for each in renderings)
        released.set()
        [first], [second] = [each.result() for each in results]
    assert first.path == second.path
    assert stored_paths(renderer, dataset) == [first.path]
    assert [len(each.writes) for each in renderings] == [1, 1]


def test_request_that_waits_too_long_says_how_many_files_are_ready(
    renderer: Renderer, dataset: Dataset, released: threading.Event
) -> None:
    slow = KnownRendering(b"slow", hold=released)
    renders = objects(renderer, wait_seconds=0.2)
    quick = [KnownRendering(bytes([number])) for number in range(3)]
    renders.require(dataset, quick)
    with pytest.raises(RenderingUnderWay) as caught:
        renders.require(dataset, [*quick, slow])
    assert caught.value.facts == {"done": 3, "total": 4, "retry_after_seconds": 1}
    released.set()
    patient = replace(renders, wait_seconds=10.0)
    assert [each.row_count for each in patient.require(dataset, [slow, *quick])] == [4, 1, 1, 1]
    assert len(slow.writes) == 1


def test_fault_of_one_file_is_reported_and_stops_no_other(renderer: Renderer, dataset: Dataset) -> None:
    broken = KnownRendering(b"broken", error=CorruptFile("a file is damaged", path="p"))
    others = [KnownRendering(f"other {number}".encode()) for number in range(5)]
    renders = objects(renderer)
    with pytest.raises(CorruptFile, match="a file is damaged"):
        renders.require(dataset, [others[0], broken, *others[1:]])
    assert len(renders.require(dataset, others)) == 5
    assert [len(each.writes) for each in others] == [1] * 5
    assert len(stored_paths(renderer, dataset)) == 5


def test_nothing_stays_of_a_rendering_without_rows(renderer: Renderer, dataset: Dataset) -> None:
    nothing = KnownRendering(b"")
    [entry] = objects(renderer).require(dataset, [nothing])
    assert (entry.row_count, entry.path, entry.content) == (0, None, "")
    assert objects(renderer).require(dataset, [nothing]) == [entry]
    assert len(nothing.writes) == 1
    assert stored_paths(renderer, dataset) == []


def test_crash_between_object_and_row_leaves_an_orphan_and_no_row(
    renderer: Renderer, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendering = KnownRendering(b"lost")

    def crash(*_: object) -> RenderingEntry:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(RenderingStore, "put", crash)
        with pytest.raises(SystemExit):
            objects(renderer).require(dataset, [rendering])
    [orphan] = stored_paths(renderer, dataset)
    renders = objects(renderer)
    [entry] = renders.require(dataset, [rendering])
    assert entry.path is not None
    assert sorted(stored_paths(renderer, dataset)) == sorted([orphan, entry.path])
    assert read_all(renders.content(dataset, rendering, entry)) == b"lost"


def test_tenant_with_many_files_delays_no_other(
    renderer: Renderer, dataset: Dataset, released: threading.Event
) -> None:
    """Of 10,000 files only this number wait in the process, and a thread is left for another tenant."""
    many = [KnownRendering(f"many {number}".encode(), hold=released) for number in range(10_000)]
    renders = objects(renderer, wait_seconds=0.1)
    with pytest.raises(RenderingUnderWay) as caught:
        renders.require(dataset, many)
    assert caught.value.facts["total"] == 10_000
    assert caught.value.facts["retry_after_seconds"] == 30
    other = Renderer(
        service=renderer.service,
        tenant_id=renderer.service.tenants.add_tenant("tenant-beside-many-files"),
        client=renderer.client,
    )
    key = renderer.service.tenants.make_key(other.tenant_id, SCOPES).api_key
    with renderer.service.client(key) as client:
        beside = replace(other, client=client)
        beside.register("orders", COLUMNS, record_key=["id"])
        few = [KnownRendering(f"few {number}".encode()) for number in range(5)]
        patient = replace(renders, wait_seconds=10.0)
        assert len(patient.require(beside.dataset("orders"), few)) == 5
    assert sum(len(each.writes) for each in many) == 2
    assert sum(each.begun.is_set() for each in many) == 2


def test_requests_beyond_those_that_may_wait_are_answered_at_once(
    renderer: Renderer, dataset: Dataset, released: threading.Event
) -> None:
    rendering = KnownRendering(b"awaited", hold=released)
    renders = objects(renderer, wait_seconds=20.0)
    with ThreadPoolExecutor(8) as pool:
        results = [pool.submit(renders.require, dataset, [rendering]) for _ in range(8)]
        assert rendering.begun.wait(10)
        refused = sum(
            isinstance(each.exception(0.5), RenderingUnderWay) for each in results if ended(each.exception)
        )
        released.set()
        ready = [each for each in results if each.exception() is None]
    assert refused == 5
    assert len(ready) == 3


def ended(exception: Callable[[float], object]) -> bool:
    try:
        exception(0.5)
    except TimeoutError:
        return False
    return True


def test_views_of_different_readers_are_shared_if_they_see_the_same(
    renderer: Renderer, dataset: Dataset
) -> None:
    renderer.write("orders", [{"id": number, "note": "x"} for number in range(10)])
    first = renderer.require("orders", RowAccess(where=("id = 1", "id = 2")))
    assert renderer.require("orders", RowAccess(where=("id = 2", "id = 1"))) == first
    assert isinstance(renderer.service.platform.storage, LocalStorage)
    assert len(stored_paths(renderer, dataset)) == 1
