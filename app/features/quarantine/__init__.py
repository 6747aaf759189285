"""Quarantine: bad records of writes, kept with what is wrong with each, to be repaired and redriven.

A write with `on_error=quarantine` keeps its bad records in files of the dataset, and commits the others. A redrive is a
new job that writes some of them again, repaired or as they were, with the operation of the write that they came with.
The records are marked in the transaction that accepts the job, so each is redriven once; a job that fails gives them
back.

- values.py: parts of files, ranges of records; service.py: list, redrive, discard
- repository.py: which records there are and which were redriven; their bytes are in files (app/infra/files)
- handlers.py, schemas.py: the resources `/quarantine` and `/quarantine/redrives`

    POST /datasets/orders/quarantine/redrives
    {"records": [{"id": "12-0", "payload": "{\\"id\\": 1}"}]}
"""
