"""Sources: data that arrive by themselves, from files, other datasets, HTTP APIs, databases and topics.

A source belongs to a dataset. When it is due, a worker plans a *round*: what to read next, from the position of the
source on. If there is something, the round is queued as a write of the dataset (a job of kind `source_round`). When the
write runs, `service/rounds.py` reads the plan again, fetches its parts to the storage of the dataset, and has them
decoded as any other input. The commit of the rows moves the position of the source, so both happen or neither does.

    kinds/            one module for each kind of source, behind the port in `ports.py`
    service/          sources on request, due sources, the rounds
    repository/       sources in Postgres, and what a commit does to them

    POST /sources {"name": "orders-in", "dataset": "orders", "kind": "files",
                   "config": {"path": "file:///srv/incoming/orders", "format": "ndjson"}, "mode": "continuous"}
"""
