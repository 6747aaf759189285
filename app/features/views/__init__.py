"""Views: datasets that are derived from others by SQL, and refreshed whenever these change.

`handlers.py` registers, pauses and refreshes them; `schemas.py` has the JSON, `new_view.py` the definition of the
dataset that a view is. A view has a consumer in the feed of each input, whose position is how far the view shows it.

`service/views.py` checks the SQL (`app.kernel.sql`) and registers. `service/refresh.py` follows the inputs: a commit of
one makes the consumer due, which queues a refresh, a write without rows of its own; the engine computes what it writes
(`refresh_plan.py`, `app.kernel.derivation`): from the changes of the inputs where the SQL works row by row, else from
all rows. `service/origins.py` finds the changes of the input that changes of the view were made of.
`repository/views.py` stores views, `repository/participant.py` is called by the transactions of other rooms.

    POST /views                     {"name": "totals", "sql": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1"}
    POST /views/totals/refreshes    Prefer: wait=20
"""
