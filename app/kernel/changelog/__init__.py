"""The feed of changes as values: selection, delivery formats, corrections and verification. Pure, no I/O.

    changelog_scan      the changes that a reader requests, from changelog files that its caller opens
    change_selection    adds offset, version and time to stored changes; applies filter, partitions and columns,
                        and hides what the reader may not see
    change_positions    tables of changes by offset, with gaps
    delivery_forms      delivery formats: two_event, single_event, retract, upsert, debezium, delta
    corrections         which earlier change a -C or -R takes back
    verification, fold_check    folds a feed and compares the result with a table

A change has an op: 0 append (+A), 1 retract (-R), 2 correct-from (-C), 3 correct-to (+C). A -C is directly followed by
its +C, and no page ends between them. Folding the changes up to a version over an empty table gives the table at it.
"""
