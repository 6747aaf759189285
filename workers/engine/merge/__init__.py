"""Merging one file group: `merge_handle` runs a `MergeTask` in the way that `app.kernel.commit.storing` names.

append_write      no key: the rows in new files, each a +A in the feed
log_write         merge_on_read whose feed needs no old rows, and bucket mode `postpone`: rows beside the base files
delete_marking    merge_on_read with a full feed: rows in new files; deletion vectors hide the old rows, by position
file_rewrite      copy_on_write, scopes on logs, compaction, clustering: new base files with logs and vectors merged in
task_report       changes of the feed, counts, conflicts and quarantined rows, whatever the way
"""
