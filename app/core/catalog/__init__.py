"""The catalogue: which datasets there are, what they are, and the uploads that wait to be written to them.

A request to register or change a dataset is checked by the rules of app/kernel/format/definition, and stored by the
repository. Each change of a definition (its name, schema, retention, table services) makes a version without files, so
that it has a place in the timeline and `If-Match` guards it. A dataset is deleted by marking it: its name is free at
once, its files are removed later by the reaper.

- values.py: datasets, their schemas, uploads; ports.py: what readers of datasets need of it
- service.py: register, find, list, change, delete
- repository/catalog.py: datasets and uploads; compares `If-Match` with the locked head
- repository/live_datasets.py: names that are taken, and the quota of datasets; schemas.py: definitions and schemas;
  head.py: the next version
- handlers.py, schemas.py: the resources `/datasets`; providers.py: the dataset of a path

    POST /datasets
    {"name": "orders", "schema": {"fields": [{"name": "id", "type": "int64"}]}, "record_key": ["id"]}
"""
