"""Tables in Delta's format: schemas, deletion vectors, statistics, and the actions of Delta Sharing.

- schemas.py: schemas as Spark's JSON, with column mapping by field id
- vectors.py: deletion vectors that an action contains
- statistics.py: counts and bounds of files
- actions.py: the lines of responses, in the formats `parquet` and `delta`
- predicates.py: the hints of a reader, as conditions that prune files

Facts of the formats: PROTOCOL.md of delta-io/delta and of delta-io/delta-sharing.
"""
