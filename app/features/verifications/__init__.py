"""Verifications: whether a table has the rows that its feed of changes results in.

A verification is a job. It applies the changes up to a version, in order, to the earliest rows that are kept (none if
the whole feed is), and compares the outcome with the table at that version, row by row. A difference does not fail the
job: its `result` has the number of differences and the first one.

`service` accepts the request, plans the work by file group, and runs it on Spark. The comparison itself is
app/kernel/changelog/fold_check.

    POST /datasets/orders/verifications {"version": 7}
"""
