"""Exports: a range of a feed, or a whole table, written to files, once or on a schedule, with a manifest of each run.

`handlers/exports.py` creates and changes exports and starts runs, `handlers/files.py` serves the files; `schemas.py`
has the JSON. An export has a consumer, which keeps the changes that it has not written; where that stands, the next run
starts. A run is a job of kind `export`.

`service/exports.py` is what the API does. `service/run.py` runs a job: it splits the range into tasks (`tasks.py`), has
the engine write their files (`app.kernel.changelog` reads and filters the changes; `app.infra.files.export_file` ends a
file at `target_bytes`), and records the manifest, the files, the position and the success of the job in one transaction
(`repository/runs.py`). `schedules.py` computes the times of schedules. `values.py` has the values.

    POST /datasets/orders/exports   {"query": "changes", "format": "parquet", "schedule": {"every_seconds": 3600}}
    GET /exports/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2/runs/1
"""
