"""Rendered files: files of tables with the rows and values that a reader may see, for readers of a part of a dataset.

A data file is rendered once for all readers that see the same of it. It has only its live rows that they see, the
columns of the version's schema with its names and types, and nulls in place of masked values. The bytes are an object
on the storage of the deployment, and its row in Postgres has their size, digest and statistics. What was used longest
ago is deleted, and rendered again when it is read: the path of a rendered file has the digest of its bytes.

- ports.py: `Rendering`, what is rendered: a data file by this room, other files by the features that need them
- service/: `RenderedFiles`, for what lists the files of a table; `RenderedObjects`, for all renderings
- service/tree.py: `rendered/{view}/{content}.parquet` below the location of a table
- service/eviction.py: the loop that keeps the objects within their bounds
"""
