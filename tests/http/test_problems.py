"""Problem documents: their size is bounded, whatever the request contains."""

from __future__ import annotations

from app.http.problems import document
from app.kernel.format.errors import FieldError, InvalidRequest


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
