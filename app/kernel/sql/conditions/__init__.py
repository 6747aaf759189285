"""Filters: conditions on rows, bound to the columns of one schema.

language    the words and signs of conditions
parse       text and schema to a `Filter`
bind        syntax tree to conditions: every column known, every literal of its column's type
literals    a literal as a value of a column's type, exactly
tree        the `Filter` and its conditions: plain values that travel to tasks
evaluate    which rows of a table match
prune       whether any row, or every row, of a file can match, from the bounds of its columns
row_access  which rows and columns a reader may see: the texts of conditions, and names
bound_access  a `RowAccess` with a meaning for one schema

>>> from app.kernel.format.schema.schema import Field, Schema
>>> from app.kernel.sql.conditions.parse import parse_filter
>>> schema = Schema(id=1, fields=(Field(id=1, name="value", type="double"),))
>>> parse_filter("value>4.5 and value is not null", schema).text
'value > 4.5 AND value IS NOT NULL'
"""
