"""Partitions: from fields, nested paths and transforms to folders, and back to what a folder says of its rows.

fields          the entries of `partition_by`: their text, what they read and what their folders are called
row_partitions  the partition of every row: values of fields and transforms, as one code a row
segments        values as parts of a path: `name=value` in Hive's form, percent-escaped
globs           patterns of partition paths
statistics      bounds of columns that a path implies; import it by itself: what a file is depends on the others
"""
