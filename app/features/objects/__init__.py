"""Objects: the files of tables in S3's protocol, for clients of open table formats. Everything is read only.

A client gets a key for one table, which names the table, the caller and its own end, and signs its
requests with it. What stands below the location of a table is given by trees, one for each first segment of a path:
`data` by this room, others by the features whose formats need them (`object_trees` of `FeatureApi`).

- ports.py: `ObjectTree` and `ObjectContent`, which other features implement
- values.py: entries of listings, keys for one table, addresses of objects
- service/: keys and secrets, signatures, what a key finds and lists
- handlers/, schemas.py: requests and documents of the protocol; repository/: secrets, data files of tables

    GET /hw-tables/{dataset id}/v3/data/0/part-1.parquet
"""
