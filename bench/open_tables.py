"""Planning of reads of open tables: scans planned by the service, and manifests, beside what a client plans from them.

The catalogue is a Postgres of its own, in which the rows of files are made directly: planning reads nothing else. A
client that plans by itself loads the manifest list and all manifests; here it only decodes them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import psycopg

from app.access.tenants.bootstrap import initialise
from app.access.tenants.repository.administration import AdministrationStore
from app.core.catalog.values import Dataset
from app.core.platform import Stores
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.service.plan_files import FilePlanner
from app.features.iceberg.plans import PlanRequest
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.manifests import SnapshotManifests, list_name
from app.features.iceberg.service.plans import PlanScans
from app.features.iceberg.service.table_form import TableForms
from app.features.objects.repository.table_files import TableFileStore
from app.features.objects.service.published_files import FilePublication
from app.features.objects.service.renderings import Renderings
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.infra.runtime.postgres import EmbeddedPostgres
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.process.features import stores_on
from bench.options import parser
from bench.report import publish

_VARIANT: Final = "v3"
_COLUMNS: Final = 19
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
    """A tenant in a Postgres of its own."""

    stores: Stores
    tenant_id: str
    owner_url: str

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
        # Postgres does so by itself, a while later.
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            connection.execute("ANALYZE files")
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


@contextmanager
def catalogue(directory: Path) -> Iterator[Catalogue]:
    """A Postgres below the directory."""
    with EmbeddedPostgres(directory) as server:
        initialise(server.owner_url, application_url=server.url, administration_url=server.admin_url)
        database = Database(server.url)
        administration = Database(server.admin_url, role=ADMINISTRATOR_ROLE)
        tenant_id = AdministrationStore(administration).add_tenant("bench")
        yield Catalogue(stores=stores_on(database), tenant_id=tenant_id, owner_url=server.owner_url)
        database.close()
        administration.close()


def use_cases(stores: Stores, directory: Path) -> tuple[SnapshotManifests, PlanScans]:
    """What renders manifests and plans scans, with nothing cached."""
    leases = ReadLeaseStore(stores.database)
    forms = TableForms(
        publication=FilePublication(
            catalog=stores.catalog,
            renderings=Renderings(stores.catalog, TableFileStore(stores.database).kept_schemas),
        )
    )
    deletes = DeleteFiles(vectors=VectorReader(LocalStorage(directory)))
    manifests = SnapshotManifests(blocks=FileBlockStore(stores.database), forms=forms, deletes=deletes)
    plans = PlanScans(
        planner=FilePlanner(timeline=stores.timeline),
        timeline=stores.timeline,
        forms=forms,
        deletes=deletes,
        versions=leases,
    )
    return manifests, plans


def planned_by_client(manifests: SnapshotManifests, dataset: Dataset, day: int) -> int:
    """The number of files of a day, from the manifest list and all manifests."""
    form = manifests.forms.of(dataset, _VARIANT)
    name = list_name(form, dataset.version, dataset.version - 1)
    prefix = f"{form.location}/metadata/"
    count = 0
    for listed in _records(manifests.find(dataset, _VARIANT, name)):
        content = manifests.find(dataset, _VARIANT, listed["manifest_path"].removeprefix(prefix))
        count += sum(entry["data_file"]["partition"]["day"] == day for entry in _records(content))
    return count


def _records(content: bytes) -> list[Any]:
    return list(fastavro.reader(BytesIO(content)))


def milliseconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1_000


def measure(known: Catalogue, directory: Path, *, files: int, runs: int) -> list[dict[str, Any]]:
    """Plans of one partition of a table of `files` files, and manifests of a table of a tenth as many commits."""
    days = max(files // 100, 1)
    large = known.table("large", commits=days, each=100, days=days)
    manifests, plans = use_cases(known.stores, directory)
    requests = [
        PlanRequest(filter={"type": "eq", "term": "day", "value": day * 7 % days}) for day in range(runs)
    ]
    by_service = [
        milliseconds(lambda request=request: plans.plan(large, _VARIANT, request)) for request in requests
    ]
    by_column = [
        milliseconds(
            lambda number=number: plans.plan(
                large, _VARIANT, PlanRequest(filter={"type": "eq", "term": "c7", "value": number * 1_000})
            )
        )
        for number in range(1, min(runs, 5) + 1)
    ]
    by_client = [milliseconds(lambda: planned_by_client(manifests, large, 7)) for _ in range(2)]
    many = known.table("many", commits=files // 10, each=1, days=days)
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(3):
        manifests, _ = use_cases(known.stores, directory)
        cold.append(milliseconds(lambda rendered=manifests, table=many: _list(rendered, table)))
        for _ in range(runs):
            known.commit(many, first=many.version + 1, last=many.version + 1, each=1, days=days)
            many = known.at_head(many)
            warm.append(milliseconds(lambda rendered=manifests, table=many: _list(rendered, table)))
    return [
        _row(f"plan of a partition of {files:,} files", by_service),
        _row(f"plan by a column of {files:,} files", by_column),
        _row(f"plan by a client of {files:,} files, first", by_client[:1]),
        _row(f"plan by a client of {files:,} files, manifests known", by_client[1:]),
        _row(f"manifests of {files // 10:,} files, cold", cold),
        _row(f"manifests of {files // 10:,} files, after one more commit", warm),
    ]


def _list(manifests: SnapshotManifests, dataset: Dataset) -> bytes:
    form = manifests.forms.of(dataset, _VARIANT)
    return manifests.find(dataset, _VARIANT, list_name(form, dataset.version, dataset.version - 1))


def _row(case: str, values: list[float]) -> dict[str, Any]:
    return {
        "case": case,
        "runs": len(values),
        "p50 (ms)": round(statistics.median(values), 1),
        "max (ms)": round(max(values), 1),
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--files", type=int, default=100_000, help="files of the large table")
    options.add_argument("--runs", type=int, default=20, help="measured plans and commits")
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="headwater-open-", dir=chosen.scratch) as directory,
        catalogue(Path(directory) / "postgres") as known,
    ):
        figures = measure(known, Path(directory), files=chosen.files, runs=chosen.runs)
    publish("open_tables", {"files": chosen.files, "runs": chosen.runs}, figures)


if __name__ == "__main__":
    main()
