"""Maintenance: tasks that rewrite the files of a dataset, and the reconcilers that start tasks by themselves.

- Policy: a member of `services` of a dataset, which states when something is due.
- Reconciler: carries out one policy of all datasets. `service/run_maintenance` calls the reconcilers of a dataset after
  its commits and when they are due, under a claim; `repository/maintenance` has the claim and the state of each. Most
  are of other features.
- Table service: `service/compaction` rewrites logs and small files as base files, `service/clustering` orders the rows
  of files by some columns. It states which file groups are due, the job for them, and the plan of the job.
  `service/file_group_reconciler` carries out the policies of both.
- Job: what a policy or a request starts (`service/policy_jobs`, `service/table_services`), one of a kind at a time.
- Plan: the merge tasks of a job, each of another file group. `service/run_table_service` runs them beside writes, to
  which it yields: they change no row.
- Slot: the time between two groups of writes in which the commit of a job is published (`service/publish_in_slot`).

    POST /datasets/orders/compactions
    POST /datasets/orders/clusterings {"columns": ["customer"]}
"""
