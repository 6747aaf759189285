"""Iceberg: the REST catalogue of the tables, read only, below `/iceberg/v1`.

Each commit is a snapshot at once: its id is the version. Metadata are rendered for a request and written nowhere. The
warehouse, which is the prefix of paths, is the variant of the tables: `v3` with deletion vectors, `v2` with position
deletes. Files are fetched through `objects`, with a key for one table that comes with the table.

    GET /iceberg/v1/v3/namespaces/headwater/tables/orders
"""
