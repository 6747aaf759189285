"""Retention: what of a dataset's past is kept, and the deletion of the rest.

`services.history` of a dataset bounds the versions that can be read, `services.timeline` its instants, and the
retention of its changelog the feed. A clean is a job (`handlers`, `service/run_clean`): it moves the start of the
history, deletes the files that no retained version uses, and archives old instants. `service/history_reconciler` starts
cleans by itself; `service/feed` cuts feeds; `service/expired_rows` deletes ended jobs and deleted datasets;
`service/reaper` deletes files that no commit refers to and that no running job can publish, uploads that no write has
used, and results of read jobs (`repository/references`). Versions with a name, versions that are being read and
positions of consumers keep what they need (`repository`).

    POST /datasets/orders/cleans {"versions": 10}
"""
