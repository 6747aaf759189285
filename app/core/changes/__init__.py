"""The feed: every change of a dataset's rows, in commit order, from any position that is kept.

`handlers/changes.py` returns pages, `handlers/events.py` server-sent events, `handlers/corrections.py` which changes
were taken back. They share `handlers/feed_options.py` (query options), `handlers/shared_pages.py` (a page that several
clients request at once is read once) and `handlers/head_polls.py` (waiting for the next commit).

`service/read_changes.py` makes a page: `repository.py` finds the changelog files of the requested offsets in
Postgres, `app.kernel.changelog` reads them, filters them and gives them their form. `service/feed_starts.py` resolves
starts that are not offsets, `service/read_corrections.py` reads corrections, `positions.py` and `values.py` have the
values.

    GET /datasets/orders/changes?since=120&limit=100
    GET /datasets/orders/changes?since_version=7&feed=longpoll
"""
