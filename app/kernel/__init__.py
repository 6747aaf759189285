"""What a table, a commit and a change are. Pure values and rules: no framework, no store, no I/O.

    format         what a dataset is, and how its rows and files are laid out
    codecs         JSON, NDJSON, CSV, Arrow and Parquet to rows and back
    sql            conditions (`where`) and queries (views)
    commit         plans, merge and conflict rules
    changelog      changes as values: selection, delivery formats, corrections, verification
    derivation     rows that SQL computes: the request to the engine, and its interface
    paging, arrow  opaque page tokens; Arrow without pandas

It imports nothing of the other wings. What it needs of the world, its callers pass in: files as tables of Arrow, rows
as they are stored. So every rule is tested by itself, and an engine, a worker and the API run the same one.
"""
