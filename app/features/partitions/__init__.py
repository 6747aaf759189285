"""Partitions that are done: which have all of their data, and the events of those that were done or reopened.

A dataset with `services.partition_done` has a mark for each partition. It is done when a client or a write marks it, or
when nothing was written to it for long enough; a later write reopens it. Each is an event, numbered without gaps.

`handlers.py` marks partitions and returns events, `schemas.py` has the JSON. `repository/marks.py` reads what commits
changed, marks, and numbers the events, all under one lock of the dataset. `service.py` has the maintenance
policy: it marks idle partitions as done, and writes or removes the marker files. Webhooks deliver the events.

    POST /datasets/visits/partitions/done   {"partitions": ["day=2026-11-21"]}
    GET /datasets/visits/partitions/events?since=0
"""
