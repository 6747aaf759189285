"""What the metrics of a large service cost the database: each part that a leader gathers, and the samples of datasets.

python -m bench.monitoring [--tenants 1000] [--datasets 100000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.repository.dataset_samples import DatasetSampleStore
from app.features.monitoring.repository.numbers import NumberStore
from app.infra.db.session import Database
from tests.support.postgres import TestServer

_FILL = (
    "INSERT INTO tenants (tenant_id, name) "
    "SELECT gen_random_uuid(), 'tenant ' || n FROM generate_series(2, {tenants}) n",
    "INSERT INTO datasets (tenant_id, id, name, definition) SELECT tenant_id, gen_random_uuid(), 'dataset ' || n, "
    "json_build_object('schema', repeat('x', 900)) FROM tenants, generate_series(1, {datasets} / {tenants}) n",
    "INSERT INTO heads (tenant_id, dataset_id, version, next_offset, committed_at) "
    "SELECT tenant_id, id, 20, 2000, now() - random() * interval '1 day' FROM datasets",
    "INSERT INTO commits (tenant_id, dataset_id, version, action, instant_id, committed_at, first_offset, next_offset, "
    "schema_id, files_added, files_removed, bytes_added, counts) SELECT tenant_id, id, v, 'commit', 'i' || v, "
    "now() - (21 - v) * interval '1 minute', 100 * (v - 1), 100 * v, 1, 1, 0, 100, '{{}}' "
    "FROM datasets, generate_series(1, 20) v",
    "INSERT INTO consumers (tenant_id, dataset_id, name, kind, position) "
    "SELECT tenant_id, id, k, k, (random() * 2000)::bigint FROM datasets, unnest(ARRAY['reader', 'view']) k",
    "INSERT INTO dataset_samples (tenant_id, dataset_id, version, rows, deleted_rows, files, logs, size_bytes, "
    "write_gap_seconds) SELECT tenant_id, id, 20, 1000, 0, 10, 0, 100000, 60 FROM datasets",
    "INSERT INTO storage_samples (tenant_id, stored_bytes) SELECT tenant_id, 1 FROM tenants",
    "INSERT INTO jobs (tenant_id, id, dataset_id, kind, state, lane, task, progress, rows, created_at, finished_at) "
    "SELECT tenant_id, gen_random_uuid(), id, 'analysis', CASE WHEN n = 1 THEN 'queued' ELSE 'succeeded' END, 'tasks', "
    "'{{}}', '{{}}', '{{}}', now(), CASE WHEN n = 1 THEN NULL ELSE now() END FROM datasets, generate_series(1, 5) n",
    "INSERT INTO quarantine_files (tenant_id, dataset_id, path, job_id, row_count, size_bytes, checksum) "
    "SELECT tenant_id, dataset_id, 'q', id, 3, 1, 'c' FROM jobs WHERE state = 'queued'",
    "INSERT INTO dataset_hours (tenant_id, dataset_id, hour, writes) "
    "SELECT tenant_id, id, date_trunc('hour', now()) - n * interval '1 hour', 60 "
    "FROM datasets, generate_series(0, 9) n",
    "ANALYZE",
)


def _measure(name: str, run: Callable[[], object]) -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    print(f"{name:<16} {sorted(times)[2] * 1000:8.1f} ms")


def main() -> None:
    """Fills a database, and prints the median time of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--datasets", type=int, default=100_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as directory,
        TestServer.running(Path(directory)) as server,
        server.fresh_database() as name,
    ):
        with server.administration(name) as superuser:
            for statement in _FILL:
                superuser.execute(
                    statement.format(tenants=options.tenants, datasets=options.datasets).encode()
                )
            [tenant_id] = superuser.execute("SELECT tenant_id::text FROM tenants LIMIT 1").fetchone() or [""]
            rows = superuser.execute(
                "SELECT id::text FROM datasets WHERE tenant_id = %s LIMIT 200", [tenant_id]
            ).fetchall()
        dataset_ids = [row[0] for row in rows]
        database = Database(server.application_url(name))
        for part, read in NumberStore(database).parts().items():
            _measure(part, read)
        samples, numbers = DatasetSampleStore(database), DatasetNumberStore(database)
        _measure("due samples", lambda: samples.due(2_000))
        _measure(f"sample {len(dataset_ids)}", lambda: samples.sample(tenant_id, dataset_ids))
        _measure(f"overview {len(dataset_ids)}", lambda: numbers.of(tenant_id, dataset_ids))
        database.close()


if __name__ == "__main__":
    main()
