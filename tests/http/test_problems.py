"""Problem documents: their size is bounded, whatever the request contains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from app.http.problems import PROBLEMS, assembled, document
from app.infra.errors import StorageFull, StorageUnavailable
from app.infra.files.errors import without_place
from app.kernel.format.errors import Fault, FieldError, HeadwaterError, InvalidRequest, ReportedError


def test_texts_and_lists_of_a_problem_are_bounded() -> None:
    long = "x" * 10_000
    error = InvalidRequest(long, [FieldError(pointer=f"/{long}", detail=long)] * 50_000)
    members = document(error.code, error.title, error.detail, error.facts)
    assert (len(members["detail"]), members["detail"][-1]) == (2_001, "…")
    assert (len(members["errors"]), members["error_count"]) == (100, 50_000)
    assert members["errors"][0] == {"pointer": f"/{long[:1_999]}…", "detail": f"{long[:2_000]}…"}


def test_texts_and_lists_within_the_bounds_are_unchanged() -> None:
    error = InvalidRequest("no", [FieldError(pointer="/a", detail="no")] * 100)
    members = document(error.code, error.title, error.detail, error.facts)
    assert (members["detail"], len(members["errors"])) == ("no", 100)
    assert "error_count" not in members


def test_outage_of_the_storage_names_no_place_in_it() -> None:
    path = "tenants/3f/data/file.parquet"
    for error in (StorageFull("full", path=path), StorageUnavailable(f"S3 refused {path}", path=path)):
        shown = without_place(error)
        assert (type(shown), shown.code) == (type(error), error.code)
        assert path not in shown.detail
        assert shown.facts == {}
        assert error.facts == {"path": path}


class _Lost(HeadwaterError):
    code = "lost"
    title = "Lost"


def test_statuses_are_assembled_from_the_tables_of_the_rooms() -> None:
    assert assembled([{HeadwaterError: 500}, {_Lost: 410}], [HeadwaterError, _Lost]) == {
        "internal": 500,
        "lost": 410,
    }


def test_error_without_a_status_stops_the_start() -> None:
    with pytest.raises(ValueError, match=r"errors without a status .*: tests\.http\.test_problems\._Lost"):
        assembled([PROBLEMS], [HeadwaterError, _Lost])


def test_code_that_is_stated_twice_stops_the_start() -> None:
    with pytest.raises(ValueError, match="the code lost is stated twice"):
        assembled([{_Lost: 410}, {_Lost: 410}], [])


def test_process_does_not_start_with_an_error_that_has_no_status() -> None:
    program = """
from app.kernel.format.errors import HeadwaterError
Lost = type("Lost", (HeadwaterError,), {"code": "lost", "__module__": "app.features.lost.errors"})
import app.process.api
"""
    start = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert start.returncode == 1
    assert (
        "errors without a status in the `problems` of their room: app.features.lost.errors.Lost"
        in start.stderr
    )


def test_error_of_a_stored_fault_has_its_code_and_title() -> None:
    fault = Fault(code="of-another-release", title="Old", detail="no", facts={"a": 1})
    assert Fault.of(ReportedError(fault)) == fault
