"""The merge: the rows of a group of writes and the live rows of their keys, to new rows, changes, counts and conflicts.

merge            the entry: numbers all rows, runs the steps below, gathers the result
new_rows         the result where all rows are new, without the steps below
numbered_rows    rows under numbers, so that decisions are made on numbers and columns are gathered once
incoming_rows    the rows of one write and key as a unit, and each row as a step of its key
key_steps        steps and their composition: a live row, a tombstone or nothing, before and after each row
key_merger       applies the units of each key in order of acceptance to the state of the key
kept_fields      fields of which a row keeps the stored value
row_changes      the result of changes to rows without a key
fold, values     field-by-field merge modes (`partial`, `aggregate`); equality of values of any type
outcome          changes in feed order, rows to store, counts, conflicts
"""
