"""What the service offers, a room for each capability. Whatever a feature adds lies in its room.

    writes, transactions, quarantine      rows come in: from a request to a version, to several datasets, bad records
    sources, views                        rows come in by themselves: from files, topics and databases, from SQL
    reads, exports, webhooks, overview    rows go out: pages and jobs, ranges of a feed, messages, statistics
    versions, partitions, verifications   savepoints and restores, partitions that are done, feed and table compared
    maintenance, retention, metastore     table services, the end of what is not kept, reports to Hive
    administration                        tenants, keys and the audit over HTTP

The parts of a feature have the same names everywhere: `values`, `tables`, `repository`, `service`, `schemas`,
`handlers`, `providers`, `compose` and `api`, each a module or a package that imports only those before it. `compose`
and `api` state what the feature adds to the processes. Its handlers, repository and tables are its own; other features
use what it composes, its services, schemas and values.
"""
