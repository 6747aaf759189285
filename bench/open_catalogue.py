"""Tables in the Postgres of a running service, whose commits and files are rows without bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import psycopg
from sqlalchemy import make_url

from app.core.catalog.values import Dataset
from app.core.platform import Stores
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.infra.runtime.postgres import OWNER
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.process.features import stores_on
from bench.in_process import InProcess
from bench.service import API, Service

_COLUMNS: Final = 19
_REPORT_SECONDS: Final = 12.0
_WRITTEN: Final = "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
_COMMITS: Final = """
    INSERT INTO commits (dataset_id, version, action, instant_id, committed_at, first_offset, next_offset, schema_id,
        files_added, files_removed, bytes_added, counts)
    SELECT %(dataset)s, version, 'commit', version::text, now() + version * interval '1 second', 0, 0, 1, 1, 0, 1, '{}'
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS version
"""
_FILES: Final = """
    INSERT INTO files (dataset_id, path, file_group, partition_path, bucket, added_version, size_bytes, row_count,
        checksum, schema_id, statistics, layout)
    SELECT %(dataset)s, %(folder)s || number || '.parquet', 'day=' || day || '/append-' || number, 'day=' || day, 0,
        version, 1000000, 10000, '', 1,
        ('{"1":{"minimum":' || day || ',"maximum":' || day || ',"null_count":0}' || (
            SELECT string_agg(',"' || place || '":{"minimum":' || number * 1000 || ',"maximum":' || number * 1000 + 999
                || ',"null_count":0}', '') FROM generate_series(2, %(columns)s) AS place
        ) || '}')::json, 1
    FROM (
        SELECT version, (version - 1) * %(each)s + place AS number, (version - 1) %% %(days)s AS day
        FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS version, generate_series(1, %(each)s) AS place
    ) AS numbers
"""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The tenant of a running service, in whose Postgres rows are made directly."""

    stores: Stores
    tenant_id: str
    owner_url: str

    @classmethod
    def of(cls, service: Service) -> Catalogue:
        """That of the service's key."""
        url = make_url(service.process(API).environ()["HEADWATER_DATABASE_URL"])
        password = (service.data / "postgres-owner.password").read_text().strip()
        owner = url.set(drivername="postgresql", username=OWNER, password=password)
        return cls(
            stores=stores_on(Database(url.render_as_string(hide_password=False))),
            tenant_id=InProcess.of(service).tenant_id,
            owner_url=owner.render_as_string(hide_password=False),
        )

    def table(self, name: str, *, commits: int, each: int, days: int) -> Dataset:
        """A table with the files of this many commits, `each` of them, in partitions of days."""
        fields = [CreateField(name="day", type="int32")]
        fields += [CreateField(name=f"c{number}", type="int64") for number in range(2, _COLUMNS + 1)]
        made = self.stores.catalog.create(
            self.tenant_id,
            new_id(),
            define_dataset(
                CreateDataset(name=name, schema=CreateSchema(fields=fields), partition_by=["day"])
            ),
        )
        self.commit(made, first=1, last=commits, each=each, days=days)
        return self.at_head(made)

    def commit(self, dataset: Dataset, *, first: int, last: int, each: int, days: int) -> None:
        """Adds the commits [first, last]."""
        values = {
            "dataset": dataset.id, "first": first, "last": last, "each": each, "days": days, "columns": _COLUMNS,
            "folder": f"{self.tenant_id}/{dataset.id}/data/",
        }  # fmt: skip
        with self.stores.database.tenant(self.tenant_id) as connection:
            connection.exec_driver_sql(_COMMITS, values)
            connection.exec_driver_sql(_FILES, values)
            connection.exec_driver_sql(
                "UPDATE heads SET version = %(last)s WHERE dataset_id = %(dataset)s", values
            )

    def at_head(self, dataset: Dataset) -> Dataset:
        """The dataset at its latest version."""
        return self.stores.catalog.get(self.tenant_id, dataset.id)

    def written(self) -> dict[str, int]:
        """How many rows of each table of Postgres were inserted, updated and deleted so far."""
        # Idle connections report what they did after ten seconds.
        time.sleep(_REPORT_SECONDS)
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            return dict(connection.execute(_WRITTEN).fetchall())
