"""The name of every file that an attempt writes contains its instant, whatever the kind."""

from __future__ import annotations

import pytest

from app.kernel.format.file_group import Slot
from app.kernel.format.paths import (
    Folder,
    attempt_name,
    instant_of,
    job_of,
    quarantine_prefix,
    read_folder,
    staged_path,
    written_path,
)

INSTANT = "20261121064518123456-0a1b2c"
JOB = "0192f3a4-0000-7000-8000-000000000000"


@pytest.mark.parametrize("folder", list(Folder))
@pytest.mark.parametrize("partition", ["", "day=2013-01-01/origin=EWR"])
def test_written_path_contains_its_mark_and_its_instant(folder: Folder, partition: str) -> None:
    slot = Slot(partition_path=partition, bucket=7)
    one = written_path("t/d", folder, slot, attempt_name(INSTANT, 2, 1), "0a1b2c3d")
    assert "-0a1b2c3d." in one
    assert one.startswith(f"t/d/{folder.value}/")
    assert (instant_of(one), job_of(one)) == (INSTANT, None)


def test_paths_of_jobs_contain_the_job_and_no_instant() -> None:
    for path in (
        staged_path("t/d", JOB),
        f"{quarantine_prefix('t/d', JOB, 2)}-00001.parquet",
        f"{read_folder('t/d', JOB, 2)}/part-00000-00000.csv",
    ):
        assert (instant_of(path), job_of(path)) == (None, JOB)
