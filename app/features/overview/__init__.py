"""Overviews: the files, partitions and numbers of a table, from the catalogue alone.

A list is of one version: what is there at a version never changes, so a page token holds the version and how many items
came before. Sums are computed by the database; summaries of columns read the statistics of each base file, and the
distinct values that the last analysis has counted.

- values.py: what is listed and summed up; service.py: lists and sums; repository.py: the queries
- handlers.py, schemas.py: the resources `files`, `statistics` and `partitions`

    GET /datasets/orders/files?version=7&kind=base
    GET /datasets/orders/statistics?columns=amount
"""
