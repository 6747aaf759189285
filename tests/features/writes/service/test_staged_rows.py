"""Staged rows of large writes: removed with the commit, kept for another attempt."""

from __future__ import annotations

from typing import Any, NoReturn

from app.core.jobs.errors import EngineStopped
from app.core.jobs.values import JobState
from app.infra.errors import StorageUnavailable
from app.infra.files.storage import LocalStorage
from tests.support.writing import Writing

ROW = {"id": 2, "day": "2026-11-23", "n": 0, "note": None}
BODY = b'{"id": 2, "day": "2026-11-23", "n": 0, "note": null}'


def staged_files(writing: Writing) -> list[str]:
    """The files of rows that are staged."""
    return [path for path, _ in writing.storage.list("") if path.endswith(".arrow")]


def stop() -> NoReturn:
    raise EngineStopped("cancelled")


def test_staged_rows_are_removed_with_the_commit_and_kept_for_another_attempt(writing: Writing) -> None:
    job_id = writing.send_raw(BODY)
    writing.engine.before_merge = [stop]
    assert writing.run()
    [staged] = staged_files(writing)
    writing.jobs.release(writing.tenant_id, [writing.job(job_id).claim])
    assert writing.run()
    assert writing.job(job_id).state is JobState.SUCCEEDED
    # The reaper removes what an attempt without a commit has left.
    assert staged_files(writing) == [staged]
    assert writing.rows() == [ROW]


def test_write_succeeds_though_its_staged_rows_cannot_be_removed(writing: Writing) -> None:
    job_id = writing.send_raw(BODY)

    class Away(LocalStorage):
        def delete(self, paths: Any) -> NoReturn:
            raise StorageUnavailable("away")

    assert writing.run(storage=Away(writing.storage.root))
    assert writing.job(job_id).state is JobState.SUCCEEDED
    assert writing.announced == [True]
