"""Partitions: from fields, nested paths and transforms to folders, and back to what a folder says of its rows.

fields        the entries of `partition_by`: their text, what they read and what their folders are called
codes         the partition of every row
segments      values as parts of a path: `name=value` in Hive's form, percent-escaped
globs         patterns of partition paths
statistics    bounds of columns that a path implies; import it by itself: what a file is depends on the others
"""

from app.format.partition.codes import partition_codes
from app.format.partition.fields import (
    PartitionField,
    PartitionSyntaxError,
    Transform,
    parse_partition,
    partition_name,
    partition_sources,
)
from app.format.partition.globs import check_partition_glob, matches_partition_glob
from app.format.partition.segments import partition_path

__all__ = [
    "PartitionField",
    "PartitionSyntaxError",
    "Transform",
    "check_partition_glob",
    "matches_partition_glob",
    "parse_partition",
    "partition_codes",
    "partition_name",
    "partition_path",
    "partition_sources",
]
