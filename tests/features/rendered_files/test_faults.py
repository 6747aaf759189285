"""A rendering that fails is tried again after a pause that grows, and says why; other files of the table are served."""

from __future__ import annotations

from dataclasses import replace
from errno import EIO
from typing import Any, Final

import pytest

from app.features.rendered_files.errors import RenderingFailed
from app.features.rendered_files.service import faults
from app.features.rendered_files.service.data_file import DataFileRendering
from app.features.rendered_files.service.faults import RenderingFaults
from app.features.rendered_files.service.files import RenderedFiles
from app.infra.errors import StorageUnavailable
from app.infra.files.errors import CorruptFile
from app.kernel.format.errors import HeadwaterError
from app.kernel.sql.conditions.row_access import RowAccess
from tests.features.rendered_files.conftest import Renderer
from tests.support.http import problem

_PART: Final = RowAccess(masked=("place",))
_SECRET: Final = "hidden-place"


class Attempts:
    """Renderings that fail with an error, until there is none; how many there were."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.count = 0

    def replace_rendering(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(rendering: DataFileRendering, sink: Any) -> Any:
            self.count += 1
            if self.error is not None:
                raise self.error
            return _WRITE(rendering, sink)

        monkeypatch.setattr(DataFileRendering, "write", write)


_WRITE: Final = DataFileRendering.write


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def files(renderer: Renderer, now: list[float]) -> RenderedFiles:
    """What renders the files of a table, by a clock of the test."""
    renderer.register("orders", {"id": "int64", "place": "string"}, record_key=["place", "id"])
    renderer.write("orders", [{"id": 1, "place": _SECRET}])
    return replace(
        renderer.files,
        objects=replace(renderer.files.objects, faults=RenderingFaults(clock=lambda: now[0])),
    )


def fault_of(renderer: Renderer, files: RenderedFiles) -> HeadwaterError | None:
    """The error of a request for the files; None once they are rendered."""
    dataset = renderer.dataset("orders")
    try:
        files.require(dataset, dataset.definition, _PART, renderer.sources(dataset))
    except HeadwaterError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        (ValueError(f"no place {_SECRET}"), faults.PAUSE_SECONDS_MAX),
        (CorruptFile("data/x is damaged", path="data/x"), faults.PAUSE_SECONDS_MAX),
        (StorageUnavailable("away"), faults.OUTAGE_PAUSE_SECONDS_MAX),
        (OSError(EIO, "input/output error"), faults.OUTAGE_PAUSE_SECONDS_MAX),
    ],
    ids=["bug", "damage", "outage", "disk"],
)
def test_pause_between_attempts_grows_to_its_bound(
    renderer: Renderer, files: RenderedFiles, now: list[float], monkeypatch: pytest.MonkeyPatch,
    error: Exception, longest: float,
) -> None:  # fmt: skip
    attempts = Attempts(error)
    attempts.replace_rendering(monkeypatch)
    for pause in (1.0, 2.0, 4.0):
        known = attempts.count
        first = fault_of(renderer, files)
        assert attempts.count == known + 1
        now[0] += pause - 0.01
        assert type(fault_of(renderer, files)) is type(first)
        assert attempts.count == known + 1
        now[0] += 0.01
    for _ in range(20):
        fault_of(renderer, files)
        now[0] += longest
    assert attempts.count == 3 + 20
    attempts.error = None
    assert fault_of(renderer, files) is None
    # What has succeeded fails for the first time then.
    renderer.write("orders", [{"id": 2, "place": "x"}])
    attempts.error = error
    assert fault_of(renderer, files) is not None
    now[0] += 1.0
    known = attempts.count
    fault_of(renderer, files)
    assert attempts.count == known + 1


def test_fault_says_nothing_of_what_is_hidden(
    renderer: Renderer,
    files: RenderedFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts = Attempts(ValueError(f"no place {_SECRET}"))
    attempts.replace_rendering(monkeypatch)
    error = fault_of(renderer, files)
    assert isinstance(error, RenderingFailed)
    assert _SECRET not in error.detail
    assert _SECRET in caplog.text
    assert error.facts == {"attempts": 1, "retry_after_seconds": 1}
    grants = [{"datasets": "orders", "scopes": ["read"], "mask": ["place"]}]
    key = renderer.service.tenants.make_key(renderer.tenant_id, ("read",), grants=grants).api_key
    with renderer.service.client(key) as reader:
        for _ in range(3):
            answer = reader.post("/datasets/orders/scans", json={})
            if answer.status_code == 200:
                answer = reader.get(answer.json()["parts"][0]["links"]["self"])
            members = problem(answer, 500, "rendering-failed")
            assert answer.headers["retry-after"] == str(members["retry_after_seconds"])
            assert _SECRET not in answer.text
        answer = reader.get("/iceberg/v1/v3/namespaces/headwater/tables/orders")
        assert answer.status_code == 500
        assert _SECRET not in answer.text
    # One of the test, and of the API process one for each access.
    assert attempts.count <= 4


def test_other_files_are_rendered_all_the_same(
    renderer: Renderer, files: RenderedFiles, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(ValueError())
    attempts.replace_rendering(monkeypatch)
    assert fault_of(renderer, files) is not None
    monkeypatch.setattr(DataFileRendering, "write", _WRITE)
    renderer.register("others", {"id": "int64", "place": "string"})
    renderer.write("others", [{"id": 1, "place": "x"}], "insert")
    other = renderer.dataset("others")
    assert files.require(other, other.definition, _PART, renderer.sources(other))
    assert isinstance(fault_of(renderer, files), RenderingFailed)
    now[0] += 1.0
    assert fault_of(renderer, files) is None
