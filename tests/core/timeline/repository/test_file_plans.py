"""What planning reads of a table with many files that Postgres has no statistics of: its result, whatever the order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.repository.file_blocks import _files_of
from app.core.timeline.repository.live_files import _PARTITION_PATHS, _read_in_order
from app.core.timeline.values import FileBlock, Published
from app.kernel.commit.commit_message import CommitMessage
from tests.support.lakehouse import commit_of, data_file
from tests.support.query_plans import plan_of, rows_read
from tests.support.store_fixtures import Stores

DAYS = 200
FILES_OF_DAY = 100
_FILES = """
    INSERT INTO files (dataset_id, path, file_group, partition_path, bucket, added_version, written_version, size_bytes,
        row_count, checksum, schema_id, statistics)
    SELECT %(dataset)s, 'many/' || day || '/' || number, 'day=' || day || '/append-' || number, 'day=' || day, 0, 1,
        day, 1, 1, '', 1, '{}'
    FROM generate_series(1, %(days)s) AS day, generate_series(1, %(files)s) AS number
"""


@pytest.fixture
def connection(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> Iterator[Connection]:
    """A transaction that sees the files."""
    one = CommitMessage(file_group=data_file().file_group, removed=(), added=(data_file(),), changelog=())
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([running()], [one])), Published)
    with stores.database.tenant(tenant_id) as opened:
        opened.exec_driver_sql(_FILES, {"dataset": dataset.id, "days": DAYS, "files": FILES_OF_DAY})
        yield opened
        opened.rollback()


def test_each_partition_takes_one_search(connection: Connection, dataset: Dataset) -> None:
    _read_in_order(connection)
    plan = plan_of(connection, _PARTITION_PATHS.params(dataset=dataset.id, version=1))
    # A file of each partition, and the file that belongs to none.
    assert rows_read(plan, "files") <= DAYS + 2


def test_files_of_other_commits_are_not_read(connection: Connection, dataset: Dataset) -> None:
    query = _files_of([FileBlock(7, 9)])
    plan = plan_of(connection, query.params(dataset=dataset.id, version=1))
    assert rows_read(plan, "files") == 2 * FILES_OF_DAY
