"""Maintenance: table services, and the reconcilers that carry out the policies of datasets by themselves.

The names, from a service to its work:

- Table service: maintains a table for its readers, beside its writes (`service/table_service`).
  `service/compaction` rewrites logs and small files as base files, `service/clustering` orders the rows of files by
  some columns, `service/analysis` counts the distinct values of columns. All are listed in `compose`; each has a kind
  of job and a policy.
- Policy: a member of `services` of a dataset, which states when a service is due.
- Task: what a service is to do once, such as the columns of an order, or the file groups that are due. A user requests
  one, or the policy does (`service/policy_reconciler`).
- Job: a task that was accepted (`service/requests`). A policy starts one of a kind at a time.
- Run: what a worker does for a job, again if a worker dies. A run of a service that rewrites files
  (`service/rewrite_file_groups`) has a plan, the merge tasks, each of another file group; a slot, the time between two
  groups of writes in which it publishes (`service/publish_in_slot`); and yields to writes, since it changes no row.
- Result: what a job shows once it has succeeded. A service that makes no version also keeps its last result with the
  version that it has read (`repository/service_results`), for readers and for its own policy.

What calls the services after commits:

- Reconciler: carries out one policy of all datasets, most of them by jobs. `service/run_maintenance` calls the
  reconcilers of a dataset after its commits and when they are due, under a claim; `repository/maintenance` has the
  claim and the state of each. Many are of other features. `service/merge_changelog` does its work itself.
- Measurement: what a reconciler reads to find what is due. `service/touched_groups` reads only the file groups that
  were written to since the last one.

A new table service is a module in `service` that has the members of `TableService`, its kind of job, its policy, its
line in `compose`, and its route in `handlers` if users can request it.

    POST /datasets/orders/compactions
    POST /datasets/orders/clusterings {"columns": ["customer"]}
    POST /datasets/orders/analyses
"""
