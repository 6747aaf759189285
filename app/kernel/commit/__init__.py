"""Commits: what a write, a read, a restore or a table service does to the files of a table. Pure, no I/O.

    write_options, write_rules          what a write requests, and which options go together
    write_scope                         what a write removes without naming keys
    write_plan                          live files and staged rows to one `MergeTask` per touched file group
    merge_bundle                        which tasks run together and share a changelog file
    storing                             which of the four ways a task stores its rows
    merge                               rows of a group of writes and live rows to the new rows and the changes
    small_files                         which files are small, and which of them a write or a compaction rewrites
    commit_message                      the result of a task: files written, files replaced, what it has read
    conflict                            whether a commit that was planned earlier may be published at the head
    compaction_*, clustering_plan       which file groups a table service rewrites; `rebase` moves its deletion vectors
    restore_plan, comparison            which file groups differ between two versions
    read_plan                           which file groups and files a read has to open
    table_rows                          which pieces of them its tasks read

A plan becomes tasks, tasks return messages, and the messages are checked against what was committed meanwhile:

>>> from app.kernel.commit.commit_message import CommitMessage
>>> from app.kernel.commit.conflict import CommittedChange, check_conflicts
>>> group = "day=1/0"
>>> message = CommitMessage(file_group=group, counts={})
>>> change = CommittedChange(
...     version=8, instant_id="i", file_group=group, partition_path="day=1", path="p", removed=False
... )
>>> check_conflicts([message], [change], head_version=8).file_groups
('day=1/0',)
"""
