"""Reads of a table: small pages of rows at once, read jobs for any number of rows, and scans.

A page (`handlers/rows`, `service/rows`) is read in the process of the API, at any version that is kept, and so are rows
by key (`handlers/lookups`, `service/lookup`), through the indexes that writes keep. A read job is
accepted by `service/jobs`, which determines the version; `service/run` has Spark write the rows, or the rows that
changed in a range of versions, to files. `tasks` cuts the work into parts. `repository` stores the files of a result,
which is kept for a while; `handlers/results` serves it as one response, joined by `content`, or file by file.

A scan (`handlers/scans`, `service/scans`) lists files of the table, which its reader fetches itself, and parts whose
rows are merged when they are requested. `scans` has its request and its plan.

`jobs` has the request and the result of a read job, `schemas` the JSON forms of a result and of a plan.

    GET /datasets/orders/rows?version=7&where=amount>100
    GET /datasets/orders/rows/42?history=true
    POST /datasets/orders/reads {"format": "parquet", "disposition": "files"}
    POST /datasets/orders/scans {"columns": ["id", "amount"]}
"""
