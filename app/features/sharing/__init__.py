"""Sharing: datasets for readers outside of the tenant, who read them with any client of Delta Sharing.

A share is a list of datasets under names of their own. A recipient of a share has a token, and reads all of the share,
or what its grants show of it. `handlers/shares.py` and `handlers/recipients.py` manage them for the tenant,
`schemas.py` has the JSON, and `service/shares.py` and `service/recipients.py` check what a key may share.

A request below `/delta-sharing` has the token of a recipient (`handlers/credentials.py`). `repository/credentials.py`
resolves it to a principal, whose grants name the datasets of the share as they are called now, so whatever reads with
the access of a principal needs no rule of its own for recipients. `service/shared_tables.py` finds the tables that a
recipient sees, by the ids of the datasets.

`handlers/listings.py` and `handlers/tables.py` serve the protocol of Delta Sharing, in the shapes of `protocol.py`.
`service/table_forms.py` chooses the format of a response, `service/table_queries.py` gives the files of a version, and
`service/table_changes.py` those with changes, which `service/change_files.py` renders from the feed.

    POST /shares                     {"name": "sales", "datasets": [{"name": "orders"}]}
    POST /shares/sales/recipients    {"name": "acme", "grants": [{"dataset": "orders", "where": "region = 'EU'"}]}
"""
