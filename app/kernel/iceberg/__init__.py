"""A table in Iceberg's format: schemas, partition specs, manifests and metadata as values and bytes, without I/O.

    schemas           a schema as Iceberg's, and which types Iceberg reads of older files
    omitted_columns   the columns that a table is published without
    partition_specs   the partition spec, and the values that the path of a partition has under it
    bounds            column statistics as Iceberg's counts and bounds
    avro              the bytes of Avro values and of Avro files
    manifest_schemas  the Avro schemas of manifests and of manifest lists
    manifests         manifests of data files and of deletes, and manifest lists
    table_metadata    the metadata document of a table
    puffin            the Puffin file of one deletion vector
    position_deletes  the same deleted rows as a Parquet file, for readers without deletion vectors

Versions are snapshots: the id and the sequence number of a snapshot are the version.
"""
