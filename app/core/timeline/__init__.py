"""The timeline: every attempt to change a dataset, and the files that make up each version.

An instant is requested with its job, in flight while a worker runs it, and completed by the commit transaction, which
locks the head of the dataset, checks for conflicts with the versions since it was planned, adds and removes files,
numbers the changes and moves the head. Instants and files that are not kept any more are archived, or removed.

- values.py, instants.py: commits to publish, their outcomes, entries of the timeline; ports.py, archives.py: the ports
- service/publish.py: publish a commit; version_pins.py: keep a version readable; version_definition.py: the dataset
  under the schema of a version; read_timeline.py: pages of entries
- repository/publish.py: the commit transaction; timeline.py: versions and files; archives.py, read_leases.py
- files.py: archives of instants as files; handlers.py, schemas.py: the resource `timeline`

    GET /datasets/orders/timeline?action=commit&state=completed&since_time=2026-11-21T00:00:00Z
"""
