"""Filters: conditions on rows that users write as text in the manner of SQL.

    grammar     text to a syntax tree, by a small dialect of sqlglot
    parse       syntax tree and schema to a `Filter`: every column known, every literal of its column's type
    literals    what a literal is as a value of a column's type, exactly
    tree        the `Filter` and its conditions: plain values that travel to tasks
    evaluate    which rows of a table match
    prune       whether any row, or every row, of a file can match, from the bounds of its columns

The text is never handed to an engine. Import what you need from its module: only `parse` needs sqlglot.
"""
